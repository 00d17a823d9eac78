"""Reads what a trainer has written about its rollouts, a step at a time, whatever the format and size."""

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from cooper_audit.rollouts.files import DATABASE, find_files, records, tracked_run
from cooper_audit.rollouts.formats import (
    ENDED_EARLY,
    FILE,
    FORMATS,
    Format,
    Values,
    chosen_format,
    is_of_evaluation,
    named_paths,
    paths_in,
)
from cooper_audit.rollouts.references import references_in
from cooper_audit.rollouts.rollout import Rollout, digest_of, short_hash
from cooper_audit.rollouts.unrolling import EVALUATION, DumpRecord, messages_in, number, unrolled
from cooper_audit.run.run_record import is_run
from cooper_base.data.answer import Answer
from cooper_base.data.text import one_line
from cooper_base.data.transcript import END_OF_TURN, turns_in, turns_of
from cooper_base.errors import InputError, did_you_mean

MOST_ROWS, MOST_CHARACTERS = 1 << 17, 1 << 28
"""What a step may hold, because it is read into memory."""
MOST_RESTARTS = 20
"""How often a file's steps may go back, as they do after a resumed run. More often they are in no order."""
ALTERNATIVES = 8
"""Most reference answers of a problem that are tried."""
PLACE = 4
"""Parts of a file's path in which its step is looked for."""
STRANGERS = 100
"""A file that begins with so many rows of no known format is taken for something else beside the rollouts."""
_EXAMPLES = {"prompt": "question", "completion": "response", "reward": "score"}
"""Fields without which nothing is read, with paths as somebody might write them."""
MOST_NAMES = 50
"""Fields of a row that a message may show."""
REPEATED = "a row of a step that a resumed run repeated"
FAILED = "a row whose grading failed"
PREDICTION = "a reference, since those to one prompt differ; name the right answer with --map reference=…"
DATA_SETS = ("data_source", "dataset", "data_set", "task_name", "env_name")
"""Where writers of any format say of which data set a problem is."""
CUT = ("true", "incomplete", "max_output_tokens")
"""What says of a completion that it was cut off, besides `ENDED_EARLY`."""

Decode = Callable[[list[int]], str]
Choose = Callable[[DumpRecord], Format | None]


@dataclass
class Source:
    """What has been read, for the page."""

    format: Format | None = None
    files: list[Path] = field(default_factory=list)
    rewards: list[str] = field(default_factory=list)
    """The columns whose sum is taken for the reward, where the trainer does not write a total."""
    rows: int = 0
    trains: bool = False
    """Whether a row was seen that is not of an evaluation; those of evaluations are left out then."""
    has_steps: bool = True
    """Whether anything says to which steps the rows belong."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows that cannot be used, by why."""
    mapped: set[str] = field(default_factory=set)
    """The fields of `--map` that some row has."""
    paths: tuple[str, ...] = ()
    """The paths of the first row."""
    has_predictions: bool = False
    """Whether the references are no right answers, because they differ among the completions of a prompt."""
    ungraded: dict[int | None, int] = field(default_factory=dict)
    """By step the rows that have no reward, or whose grading failed."""

    def leave_out(self, why: str, rows: int = 1) -> None:
        self.left_out[why] = self.left_out.get(why, 0) + rows


def read_steps(
    paths: Sequence[Path], source: Source, choose: Choose | None = None, decode: Decode | None = None
) -> Iterator[tuple[int | None, list[Rollout]]]:
    """The rows of one step after another, and into `source` what was read. A step that comes again, because the run was
    resumed, takes the place of all from that step on. Rows without a step come together, under None.

    Raises InputError, for rows that several writers wrote, too: a run is what one writer wrote. At the end also for a
    path of `--map` that no row has.
    """
    for step, rows in _steps_of(paths, source, choose, decode):
        yield step, _without_predictions(rows, source)
    _check_mapped(source)


def _without_predictions(rows: list[Rollout], source: Source) -> list[Rollout]:
    """The rows, without references if those to one prompt mostly differ: these are what each completion answered, or a
    label of it.
    """
    by_prompt: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for row in rows:
        by_prompt.setdefault((row.group, row.prompt), []).append(row.references)
    several = [references for references in by_prompt.values() if len(references) > 1]
    source.has_predictions |= sum(len(set(references)) > 1 for references in several) > len(several) / 2
    if not source.has_predictions:
        return rows
    source.leave_out(PREDICTION, sum(bool(row.references) for row in rows))
    return [replace(row, references=()) for row in rows]


def _check_mapped(source: Source) -> None:
    """Raises InputError for a path of `--map` that no row has."""
    given = {} if source.format is None else source.format.given
    for name, path in given.items():
        if name not in source.mapped:
            there = f"there are {one_line(', '.join(source.paths), 400)}"
            raise InputError(f"--map {name}={path}: no row has it; {did_you_mean(path, source.paths, there)}")


def _steps_of(
    paths: Sequence[Path], source: Source, choose: Choose | None, decode: Decode | None
) -> Iterator[tuple[int | None, list[Rollout]]]:
    choose = choose or chosen_format()
    read = [_File(path, source, choose, decode) for path in find_files(paths)]
    files = [file for file in read if file.has_rows]
    if not files:
        for file in read:
            _check_mapped(file.trial)
        raise InputError(_unknown(read))
    training = [file for file in files if not file.is_evaluation] or files
    for _ in range(len(files) - len(training)):
        source.leave_out("a file of an evaluation")
    for place, file in enumerate(files := training, start=1):
        file.set_number(place)
    waiting = sorted((file for file in files if file.step is not None), key=lambda file: file.step or 0)
    source.has_steps = bool(waiting)
    source.files = [file.path for file in waiting or files]
    if not waiting:
        yield None, _together(files)
        return
    for _ in range(len(files) - len(waiting)):
        source.leave_out("a file whose rows say no step")
    runs = sorted({run for path in source.files if (run := tracked_run(path))})
    if len(runs) > 1:
        raise InputError(f"{paths[0]}: holds the runs {', '.join(runs)}; name the folder or file of one")
    if not runs:
        _check_writers(paths, waiting)
    active: list[_File] = []
    last, restarts, before, counts = -1, 0, "", dict[int, int]()
    while waiting or active:
        step = min(file.step for file in (*active, *waiting[:1]) if file.step is not None)
        while waiting and waiting[0].step == step:
            active.append(waiting.pop(0))
        rows = _of_one_writer([(file, file.take(step)) for file in active], bool(runs), source)
        active = [file for file in active if file.step is not None]
        restarts += step <= last
        if restarts > MOST_RESTARTS:
            raise InputError(f"{rows[0].location}: step {step} comes after step {last}; sort the rows by step")
        _note_repeated(step, rows, counts, source)
        last, digest = step, digest_of(rows)
        if rows and digest == before:
            source.leave_out("a batch that was logged again", len(rows))
        elif rows:
            yield step, rows
        before = digest


def _note_repeated(step: int, rows: Sequence[Rollout], counts: dict[int, int], source: Source) -> None:
    """Count the rows of steps that come again, because those of the resumed run take their place. Raises InputError for
    a run that begins again.
    """
    repeated = [earlier for earlier in counts if earlier >= step]
    if rows and 2 < len(repeated) == len(counts):
        raise InputError(
            f"{rows[0].location}: step {step} comes again after step {max(repeated)}, so there are two runs in one, "
            "its steps begin anew in every epoch, or its rows are in no order; keep the rows of one run, name another "
            "field with --map step=…, or sort the rows by step"
        )
    if repeated:
        source.leave_out(REPEATED, sum(counts.pop(earlier) for earlier in repeated))
    counts[step] = len(rows)


def _together(files: Sequence["_File"]) -> list[Rollout]:
    """All rows of files that say no step."""
    rows: list[Rollout] = []
    for file in files:
        rows += file.take(None, len(rows))
    return rows


def _of_one_writer(taken: Sequence[tuple["_File", list[Rollout]]], tracked: bool, source: Source) -> list[Rollout]:
    """The rows of a step: of a tracker's tables those of the first, of folders that were resumed those of the last."""
    rows = [row for _, own in taken for row in own]
    if not rows:
        return rows
    if tracked and not (source.format and source.format.steps_overlap):
        others, why = [row for row in rows if row.location != rows[0].location], "a row of a further table of its step"
        if others:
            source.leave_out(f"{why}, as an evaluation logs it", len(others))
        return [row for row in rows if row.location == rows[0].location]
    newest = max(file.part for file, own in taken if own)
    kept = [row for file, own in taken if file.part == newest for row in own]
    if len(kept) < len(rows):
        source.leave_out(REPEATED, len(rows) - len(kept))
    return kept


def _check_writers(paths: Sequence[Path], files: Sequence["_File"]) -> None:
    """Sets each file's part of the run. Raises InputError for what several writers wrote."""
    parts: dict[str, list[_File]] = {}
    for file in files:
        folder = next((path for path in paths if path.is_dir() and path in file.path.parents), None)
        parts.setdefault(file.writer if folder is None else str(folder), []).append(file)
    begun_by: dict[int, str] = {}
    for name, inner in parts.items():
        _check_writer(name, inner)
        start = min(file.first_step for file in inner)
        if (other := begun_by.setdefault(start, name)) != name:
            raise InputError(
                f"{other} and {name}: both begin with step {start}, so they are two runs; name one of them, or put the "
                "files of one run's processes into one folder"
            )
        starts: dict[Path, int] = {}
        for file in inner:
            starts[file.path.parent] = min(file.first_step, starts.get(file.path.parent, file.first_step))
        for file in inner:
            file.part = (start, start if file.overlaps else starts[file.path.parent])


def _check_writer(name: str, files: Sequence["_File"]) -> None:
    """Raises InputError for folders that differ in more than numbers, and for two folders with the same step."""
    first, folder_of = files[0], dict[int, Path]()
    for file in files:
        folder = file.path.parent
        other = first.path.parent if file.writer != first.writer else folder
        if not file.overlaps:
            other = folder_of.setdefault(file.first_step, folder) if other == folder else other
        if other != folder:
            raise InputError(
                f"{name}: holds what several writers wrote, in {other} and in {folder}, and a run is what one wrote; "
                "name one of these folders, or each folder of a run that was resumed"
            )


def _unknown(files: Sequence["_File"]) -> str:
    seen = next((file for file in files if file.names), None)
    if seen is None:
        of_numbers = ", only numbers; log its completions too, as tables or traces" if files[0].is_database else ""
        return f"{files[0].path}: holds no rows{of_numbers}"
    if is_run(run := seen.path.parent.parent):
        return f"{seen.path}: is of a run of Cooper; `cooper report {run}` has its verdict"
    there = one_line(", ".join(seen.trial.paths or seen.names), 300)
    if seen.trial.left_out:
        missing = " or ".join(seen.trial.left_out).replace("a row without ", "")
        return (
            f"{seen.path}: no row, with {there}, has {missing}; name its place with --map, such as reward=scores.total"
        )
    known = named_paths(seen.names)
    given = ", ".join(f"{path} as {name}" for name, path in known.items())
    lacking = [name for name in _EXAMPLES if name not in known]
    remedy = "name another --format, or none"
    if lacking:
        given = f"{given or 'nothing that is known'}, {' and '.join(f'no {name}' for name in lacking)}"
        remedy = f"describe what is missing, such as {' '.join(f'--map {name}={_EXAMPLES[name]}' for name in lacking)}"
    return (
        f"{seen.path}: the rows, with {there}, are of no known format ({', '.join(one.name for one in FORMATS)}), and "
        f"by their names have {given}; {remedy}"
    )


class _File:
    """The rows of a file, of which the next is kept. It is opened when its first step is looked at, and again when its
    rows are wanted, so that thousands of files may wait.
    """

    def __init__(self, path: Path, source: Source, choose: Choose, decode: Decode | None) -> None:
        self.path, self._source, self._choose, self._decode = path, source, choose, decode
        self._last_parts = "/".join(path.resolve().parts[-PLACE:])
        self._number = 0
        self.names: tuple[str, ...] = ()
        """The fields of the first row."""
        self.trial = Source(source.format)
        peeked = self._rollouts(self.trial)
        first = next(peeked, None)
        if first is not None and not self.trial.trains:  # an evaluation before training, or nothing else
            first = next((rollout for rollout in islice(peeked, MOST_ROWS) if self.trial.trains), first)
        peeked.close()
        source.format, source.trains = self.trial.format, source.trains or self.trial.trains
        self.has_rows = first is not None
        self.step = None if first is None else first.step
        """That of the next row; None at the end, and where nothing says it."""
        self.first_step = self.step or 0
        self.part: tuple[int, int] = (0, 0)
        """Of files with the same step, those with the largest are of the newest part of the run."""
        self._next: Rollout | None = None
        self._rows: Iterator[Rollout] | None = None

    @property
    def is_database(self) -> bool:
        return self.path.suffix.lower() == DATABASE

    @property
    def is_evaluation(self) -> bool:
        """Whether its name says so; that of a tracker's table may be a path."""
        name = self.path.as_posix().rpartition("/media/table/")[2] if tracked_run(self.path) else self.path.name
        return not self.is_database and EVALUATION.search(name) is not None

    @property
    def overlaps(self) -> bool:
        """Whether a step's rows may be in several folders."""
        return self.trial.format is not None and (self.trial.format.steps_overlap or self._is_a_step)

    @property
    def writer(self) -> str:
        """The folder, in which numbers may be steps."""
        return "" if self._is_a_step else re.sub(r"\d+", "#", str(self.path.parent))

    @property
    def _is_a_step(self) -> bool:
        """Whether the user says that each file is a step."""
        return self.trial.format is not None and self.trial.format.paths.get("step") == FILE

    def set_number(self, number: int) -> None:
        """Say which of the files with rows this is."""
        self._number = number
        if self._is_a_step:
            self.step = self.first_step = number

    def take(self, step: int | None, before: int = 0) -> list[Rollout]:
        """The rows from here on that are of this step, which has `before` rows already."""
        if self._rows is None:
            self._rows = self._rollouts(self._source)
            self._advance(step)
        taken, characters = [], 0
        while self._next is not None and self._next.step == step:
            taken.append(self._next)
            characters += len(self._next.answer.text) + len(self._next.prompt)
            if before + len(taken) > MOST_ROWS or characters > MOST_CHARACTERS:
                named = "all rows that say no step" if step is None else f"step {step}"
                raise InputError(
                    f"{self._next.location}: {named} are more than {before + len(taken) - 1} rows, which is no step; "
                    "name the field that has it with --map step=…"
                )
            self._advance(step)
        self.step = None if self._next is None else self._next.step
        return taken

    def _advance(self, step: int | None) -> None:
        """Go to the next row, in a file with steps to the next one that says its step."""
        assert self._rows is not None
        self._next = next(self._rows, None)
        while step is not None and self._next is not None and self._next.step is None:
            self._source.leave_out("a row without a step")
            self._next = next(self._rows, None)

    def _rollouts(self, source: Source) -> Generator[Rollout, None, None]:
        values: Values | None = None
        strangers = 0
        for row in records(self.path, source.leave_out):
            for record in unrolled(row.fields):
                self.names = self.names or tuple(map(str, islice(record, MOST_NAMES)))
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
        source.paths = source.paths or tuple(islice(paths_in(record), MOST_NAMES))
        for name in values.format.given.keys() - source.mapped:
            if values.has(record, name, self._last_parts):
                source.mapped.add(name)
        fields = {name: values.of(record, name, self._last_parts) for name in values.format.paths}
        step = self._number if self._is_a_step else self._step(fields.get("step"))
        reward, completion = number(fields.get("reward")), fields.get("completion")
        if reward is None and completion is None:
            source.leave_out("a row with other fields")  # such as a summary at the end
            return
        if source.trains and is_of_evaluation(record):
            source.leave_out("a row of an evaluation")
            return
        source.trains |= not is_of_evaluation(record)
        source.rows += 1
        if values.has_failed(record, self._last_parts) or reward is None:
            source.leave_out("a row without a reward" if reward is None else FAILED)
            source.ungraded[step] = source.ungraded.get(step, 0) + 1
            return
        if completion is None:
            source.leave_out("a row without a completion")
            return
        prompt, question = self._prompt(fields.get("prompt"))
        cut = None if (said := values.cut(record, self._last_parts)) is None else _is_early(str(said).lower())
        answer = Answer.of(self._completion(completion), not cut)
        references = tuple(dict.fromkeys(references_in(fields.get("reference"), self._decode)))[:ALTERNATIVES]
        group = fields.get("group")
        name = prompt if group is None else json.dumps(group, default=str)
        advantage = number(fields.get("advantage"))
        data_set = next((named for column in DATA_SETS if isinstance(named := record.get(column), str)), "")
        known = (prompt, question, answer, cut, references, reward, advantage, location, data_set)
        yield Rollout(step, short_hash(name), *known)

    def _step(self, value: Any) -> int | None:
        if value is None:
            return None
        step = number(value)
        if step is None or not step.is_integer() or not 0 <= step < 10**9:
            raise InputError(
                f"the step {one_line(str(value), 40)!r} is no whole number; name its place with --map step=…"
            )
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
        if isinstance(value, str):
            value = messages_in(value)
        if isinstance(value, list) and not all(isinstance(item, Mapping) for item in value):
            return "\n".join(map(str, value))
        return value if isinstance(value, list) else str(value)

    def _prompt(self, value: Any) -> tuple[str, str]:
        """A prompt as text, and the last of it that the user said."""
        value = self._text("" if value is None else value)
        if isinstance(value, str):
            return value, value.strip()
        turns = turns_of({**turn, "role": "user"} for turn in value)
        texts = [(given.get("role"), turn["content"]) for given, turn in zip(value, turns, strict=True)]
        users = [text for role, text in texts if role == "user"]
        return "\n\n".join(text for _, text in texts), (users or [text for _, text in texts] or [""])[-1].strip()


def _is_early(said: str) -> bool:
    return said in CUT or any(part in said for part in ENDED_EARLY)
