"""Reads what a trainer has written about its rollouts, a step at a time, whatever the format and size."""

import json
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2s
from pathlib import Path
from typing import Any

from cooper_audit.rollouts.files import find_files, records, tracked_run
from cooper_audit.rollouts.formats import FORMATS, Format, Values, as_json, chosen_format
from cooper_audit.rollouts.unrolling import DumpRecord, number, unrolled
from cooper_base.data.answer import Answer
from cooper_base.data.text import one_line
from cooper_base.data.transcript import END_OF_TURN, turns_in, turns_of
from cooper_base.errors import InputError

logger = logging.getLogger(__name__)

MOST_ROWS, MOST_CHARACTERS = 1 << 17, 1 << 28
"""What a step may hold, because it is read into memory."""
MOST_RESTARTS = 20
"""How often a file's steps may go back, as they do after a resumed run. More often they are in no order."""
ALTERNATIVES = 8
"""Most reference answers of a problem that are tried."""
PLACE = 4
"""Parts of a file's path in which its step is looked for."""
STRANGERS = 100
"""With so many rows of no known format at its beginning, a file is one of something else that lies beside rollouts."""
CUT = ("length", "max_tokens", "max_output_tokens", "max_length", "true")

Decode = Callable[[list[int]], str]
Choose = Callable[[DumpRecord], Format | None]


@dataclass(frozen=True)
class Rollout:
    """A completion with what its trainer wrote about it."""

    step: int
    group: str
    prompt: str
    question: str
    answer: Answer
    references: tuple[str, ...]
    reward: float
    advantage: float | None
    location: str


@dataclass
class Source:
    """What has been read, for the page."""

    format: Format | None = None
    files: list[Path] = field(default_factory=list)
    rewards: list[str] = field(default_factory=list)
    """The columns whose sum is taken for the reward, where the trainer does not write a total."""
    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows that cannot be used, by why."""

    def leave_out(self, why: str, rows: int = 1) -> None:
        self.left_out[why] = self.left_out.get(why, 0) + rows


def read_steps(
    paths: Sequence[Path], source: Source, choose: Choose | None = None, decode: Decode | None = None
) -> Iterator[tuple[int, list[Rollout]]]:
    """The rows of one step after another, and into `source` what was read. A step that comes again, because the run was
    resumed, takes the place of all from that step on. Raises InputError.
    """
    choose = choose or chosen_format()
    files = [_File(path, place, source, choose, decode) for place, path in enumerate(find_files(paths), start=1)]
    waiting = sorted((file for file in files if file.step is not None), key=lambda file: file.step or 0)
    if not waiting:
        raise InputError(_unknown(files))
    source.files = [file.path for file in waiting]
    runs = sorted({run for path in source.files if (run := tracked_run(path))})
    if len(runs) > 1:
        raise InputError(f"{paths[0]}: holds the runs {', '.join(runs)}; name the folder or file of one")
    if len(waiting) == 1 and not waiting[0].has_steps:
        logger.warning("%s: no row says its step, so all are one; name it with --map step=…", waiting[0].path)
    active: list[_File] = []
    last, restarts, before = -1, 0, ""
    while waiting or active:
        step = min(file.step for file in (*active, *waiting[:1]) if file.step is not None)
        while waiting and waiting[0].step == step:
            active.append(waiting.pop(0))
        rows = [row for file in active for row in file.take(step)]
        if runs and (others := [row for row in rows if row.location != rows[0].location]):
            source.leave_out("a row of a further table of its step, as an evaluation logs it", len(others))
            rows = [row for row in rows if row.location == rows[0].location]
        active = [file for file in active if file.step is not None]
        restarts += step <= last
        if restarts > MOST_RESTARTS:
            raise InputError(f"{rows[0].location}: step {step} comes after step {last}; sort the rows by step")
        last, digest = step, digest_of(rows)
        if rows and digest == before:
            source.leave_out("a batch that was logged again", len(rows))
        elif rows:
            yield step, rows
        before = digest


def digest_of(rows: Sequence[Rollout]) -> str:
    """Equal for rows in which an audit sees no difference, whatever their step and place."""
    digest = blake2s(digest_size=12)
    for row in rows:
        values = (row.group, row.prompt, row.answer.transcript, row.answer.stopped, row.reward, row.advantage)
        digest.update("\0".join(map(str, (*values, row.references))).encode("utf-8", "replace"))
    return digest.hexdigest()


def _unknown(files: Sequence["_File"]) -> str:
    seen = next((file for file in files if file.first is not None), None)
    if seen is None or seen.first is None:
        return f"{files[0].path}: holds no rows"
    there = one_line(", ".join(map(str, seen.first)), 200)
    if seen.trial.left_out:
        missing = " or ".join(seen.trial.left_out).replace("a row without ", "")
        return (
            f"{seen.path}: no row, with {there}, has {missing}; name its place with --map, such as reward=scores.total"
        )
    return (
        f"{seen.path}: the rows, with {there}, are of no known format ({', '.join(one.name for one in FORMATS)}); "
        "describe them, such as --map prompt=question --map completion=response --map reward=score --map step=step"
    )


class _File:
    """The rows of a file, of which the next is kept. It is opened when its first step is looked at, and again when its
    rows are wanted, so that thousands of files may wait.
    """

    def __init__(self, path: Path, place: int, source: Source, choose: Choose, decode: Decode | None) -> None:
        self.path, self._place, self._source, self._choose, self._decode = path, place, source, choose, decode
        self._last_parts = "/".join(path.resolve().parts[-PLACE:])
        self.first: DumpRecord | None = None
        self.has_steps = False
        self.trial = Source(source.format)
        peeked = self._rollouts(self.trial)
        first = next(peeked, None)
        peeked.close()
        source.format = self.trial.format
        self.step = None if first is None else first.step
        """That of the next row; None at the end."""
        self._next: Rollout | None = None
        self._rows: Iterator[Rollout] | None = None

    def take(self, step: int) -> list[Rollout]:
        """The rows from here on that are of this step."""
        if self._rows is None:
            self._rows = self._rollouts(self._source)
            self._next = next(self._rows, None)
        taken, characters = [], 0
        while self._next is not None and self._next.step == step:
            taken.append(self._next)
            characters += len(self._next.answer.text) + len(self._next.prompt)
            if len(taken) > MOST_ROWS or characters > MOST_CHARACTERS:
                raise InputError(
                    f"{self._next.location}: step {step} has more than {len(taken) - 1} rows, which is no step; "
                    "name the field that has it with --map step=…"
                )
            self._next = next(self._rows, None)
        self.step = None if self._next is None else self._next.step
        return taken

    def _rollouts(self, source: Source) -> Generator[Rollout, None, None]:
        values: Values | None = None
        strangers = 0
        for row in records(self.path, source.leave_out):
            for record in unrolled(row.fields):
                self.first = self.first or record
                form = self._choose(record)
                if form is None:
                    strangers += 1
                    if values is None and strangers > STRANGERS:
                        return
                    continue
                if source.format is not None and form.name != source.format.name and values is None:
                    raise InputError(
                        f"{self.path}: rows of {form.name}, but others are of {source.format.name}; name one folder"
                    )
                values = values or Values(form)
                source.format = form
                yield from self._of_record(record, values, row.location, source)
        if values is not None:
            source.rewards = list(values.rewards)
            if strangers:
                source.leave_out("a row with other fields", strangers)

    def _of_record(self, record: DumpRecord, values: Values, location: str, source: Source) -> list[Rollout]:
        """The rollouts of a row. Raises InputError for one that has the keys of its format and not its shape."""
        form = values.format
        try:
            inner = list(form.unroll(record)) if form.unroll else [record]
            return [rollout for row in inner for rollout in self._rollout(row, values, location, source)]
        except InputError as error:
            raise error if str(error).startswith(location) else InputError(f"{location}: {error}") from error
        except RecursionError as error:
            raise InputError(f"{location}: nested too deeply; this is no row of rollouts") from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            why = one_line(f"{type(error).__name__}: {error}", 100)
            raise InputError(f"{location}: not what {form.name} writes ({why}); describe it with --map") from error

    def _rollout(self, record: DumpRecord, values: Values, location: str, source: Source) -> Iterator[Rollout]:
        source.rows += 1
        fields = {name: values.of(record, name, self._last_parts) for name in values.format.paths}
        reward, completion = number(fields.get("reward")), fields.get("completion")
        if reward is None or completion is None:
            source.leave_out("a row without a reward" if reward is None else "a row without a completion")
            return
        prompt, question = self._prompt(fields.get("prompt"))
        answer = Answer.of(self._completion(completion), str(fields.get("cut")).lower() not in CUT)
        references = tuple(dict.fromkeys(self._references(fields.get("reference"))))[:ALTERNATIVES]
        group = fields.get("group")
        name = prompt if group is None else json.dumps(group, default=str)
        step, advantage = self._step(fields.get("step")), number(fields.get("advantage"))
        yield Rollout(step, short_hash(name), prompt, question, answer, references, reward, advantage, location)

    def _step(self, value: Any) -> int:
        if value is None:
            return self._place
        step = number(value)
        if step is None or not step.is_integer() or not 0 <= step < 10**9:
            raise InputError(
                f"the step {one_line(str(value), 40)!r} is no whole number; name its place with --map step=…"
            )
        self.has_steps = True
        return int(step)

    def _completion(self, value: Any) -> Any:
        """A completion as text or messages: some trainers keep the marks with which a chat template ends a turn."""
        text = self._text(value)
        return turns_in(END_OF_TURN.split(text)) if isinstance(text, str) and END_OF_TURN.search(text) else text

    def _text(self, value: Any) -> Any:
        """A prompt or a completion as text or messages."""
        if isinstance(value, list) and value and all(type(item) is int for item in value):
            if self._decode is None:
                raise InputError("the text is token ids; name the policy's tokenizer with --tokenizer")
            return self._decode(value)
        if isinstance(value, Mapping):
            return [value]
        if isinstance(value, list) and not all(isinstance(item, Mapping) for item in value):
            return "\n".join(map(str, value))
        return value if isinstance(value, list) else _clean(str(value))

    def _prompt(self, value: Any) -> tuple[str, str]:
        """A prompt as text, and the last of it that the user said."""
        value = self._text("" if value is None else value)
        if isinstance(value, str):
            return value, value.strip()
        turns = turns_of({**turn, "role": "user"} for turn in value)
        texts = [(given.get("role"), _clean(turn["content"])) for given, turn in zip(value, turns, strict=True)]
        users = [text for role, text in texts if role == "user"]
        return "\n\n".join(text for _, text in texts), (users or [text for _, text in texts] or [""])[-1].strip()

    def _references(self, value: Any) -> Iterator[str]:
        """Reference answers as texts: of a list each, of an object its answer, or else its JSON."""
        if isinstance(value, str) and value[:1] in ("[", "{"):
            value = as_json(value)
        if isinstance(value, list):
            if value and all(type(item) is int for item in value) and len(value) > 1 and self._decode is not None:
                value = [self._decode(value)]
            for item in value:
                yield from self._references(item)
        elif isinstance(value, Mapping):
            named = next(
                (value[name] for name in ("answer", "ground_truth", "target", "value") if value.get(name)), None
            )
            text = json.dumps(value, ensure_ascii=False, default=str)
            yield from [_clean(text)] if named is None else self._references(named)
        elif value is not None and value != "" and value == value:
            yield _clean(f"{value:g}" if isinstance(value, float) else str(value)).strip()


def _clean(text: str) -> str:
    """The text without halves of characters, which no file may hold."""
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def short_hash(*texts: str, size: int = 8) -> str:
    """A hash of texts, of `size` bytes in hexadecimal digits."""
    return blake2s("\0".join(texts).encode("utf-8", "replace"), digest_size=size).hexdigest()
