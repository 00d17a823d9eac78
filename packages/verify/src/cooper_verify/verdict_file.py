"""A grader's opinions on a file of answers: a rule's as they are found, those of others through a journal."""

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Any, get_args

from cooper_base.data.labelled import completion_of, label_of, read_rows, require, text_field
from cooper_base.data.problem import Problem
from cooper_base.data.readers import DataRow, check_name_of_jsonl
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_base.files.durable import REFUSED, append, check_name, check_target, naming, open_to_append
from cooper_base.files.folder_lock import FileLock
from cooper_base.files.journal import journal_path
from cooper_base.files.owned_file import OwnedFile, check_input
from cooper_verify.faults import FAULTS_FILE, faults_so_far, faults_written_to, isolated
from cooper_verify.grader import Asked, Grader, asked_texts, in_chunks, opinions_of
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.rule import Rule, RuleConfig

logger = logging.getLogger(__name__)

COMMAND = "cooper verify"
CHUNK = 256
"""Rows verified between two writes; an interruption loses at most this many."""

ADDED = ("verdict", "seconds")
"""The fields that a rule adds to a row."""
ADDED_BY_GRADERS = ("verdict", "score", "why")
"""The fields that any other grader adds to a row."""


@dataclass
class VerdictCounts:
    """How often each verdict was given, by the row's `gold_correct`: 1.0 (right), 0.0 (wrong) or None (unknown)."""

    by_gold: Counter[tuple[str, float | None]]
    why: Counter[str] = field(default_factory=Counter)
    """Why verdicts are no plain yes or no, such as `no_answer_from_server`."""
    scored: int = 0
    """Silent rows with a score on a scale that nobody knows; on the other silent ones there is no opinion."""
    faults: int = 0
    """Rows on which the grader raised an exception in this call."""
    unread: Sequence[str] = ()
    """What is wrong with each row that cannot be read, and so has no verdict."""

    @property
    def verdicts(self) -> Counter[str]:
        return Counter(verdict for verdict, _ in self.by_gold.elements())

    @property
    def with_gold(self) -> int:
        """Number of rows that say whether their completion is right, and on which the rule is not silent."""
        return sum(count for (verdict, gold), count in self.by_gold.items() if gold is not None and verdict != "silent")

    @property
    def precision(self) -> float | None:
        """Share of accepted completions that are right; None without any."""
        accepted = self.by_gold["correct", 1.0] + self.by_gold["correct", 0.0]
        return self.by_gold["correct", 1.0] / accepted if accepted else None

    @property
    def recall(self) -> float | None:
        """Share of right completions that are accepted, of those on which the rule is not silent; None without any."""
        right = sum(count for (verdict, gold), count in self.by_gold.items() if gold == 1 and verdict != "silent")
        return self.by_gold["correct", 1.0] / right if right else None


_Task = tuple[Problem, str, float | None]
"""A problem, whose metadata are the row's fields, a completion, and whether that is right."""


def verify_file(
    data: Path,
    out: Path,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    rule: RuleConfig = MathsRule(),  # noqa: B008 - a frozen record
) -> VerdictCounts:
    """`grade_file` for a rule with these settings."""
    with closing(rule.build()) as built:
        return grade_file(data, out, built, workers, progress)


def grade_file(
    data: Path,
    out: Path,
    grader: Grader,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> VerdictCounts:
    """Write every row of `data` with the grader's opinion to the JSONL file `out`, in order.

    A row needs `completion`, a text or messages, and, if the grader reads it, `answer` (or `reference_answer`). If
    it has `gold_correct` (or `label`), the verdict is compared with that. The grader also sees the row's `question`
    and, as metadata, all its fields. A rule adds `verdict` and `seconds`; `workers` threads ask it, and the work
    continues after the rows that `out` already holds. Any other grader adds `verdict`, `score` and `why`. It gets
    many rows at once, and a journal beside `out` keeps its opinions, so that the same call continues, and asks
    again where a server failed. Fields with these names in `data` are called `input/verdict` and so on there. A row
    on which the grader raises is `unparsed`; `faults_path(out)` has it with what was raised. A row that cannot be
    read is left out, and `unread` of the result says why. Raises InputError before the first verdict: if no row can
    be read, and for an `out` that was made from another file or with another grader.
    """
    check_name_of_jsonl(out)
    bad: list[InputError] = []
    tasks = read_rows(data, lambda row: _task(row, grader.reads_reference), ["answer and completion"], bad)
    if grader.reads_reference and (without := [problem.id for problem, *_ in tasks if not problem.answer]):
        empty = f"{len(without)} of {len(tasks)} rows have an empty reference, which no answer equals"
        logger.warning("%s: %s; the first is %s", data, empty, without[0])
    grader.check([problem for problem, *_ in tasks])
    before = faults_so_far()
    with faults_written_to(faults_path(out)):
        if isinstance(grader, Rule):
            check_input(out, [data])
            counts = _verify(tasks, out, grader, workers, progress)
        else:
            with OwnedFile(out, COMMAND, [data]) as file:
                counts = _grade(tasks, file, grader, progress)
    return replace(counts, faults=faults_so_far() - before, unread=[*map(str, bad)])


def faults_path(out: Path) -> Path:
    """Where the faults are written of the work whose output is the file `out`."""
    check_name(out)
    return out.with_name(f"{out.stem}.{FAULTS_FILE}")


def _grade(
    tasks: Sequence[_Task], out: OwnedFile, grader: Grader, progress: Callable[[int, int], None] | None
) -> VerdictCounts:
    counts, lines = VerdictCounts(Counter()), []
    chunks = in_chunks([Asked(problem, text) for problem, text, _ in tasks])
    for opinions in opinions_of(grader, chunks, journal_path(out.path)):
        for opinion, (problem, _, gold) in zip(opinions, tasks[len(lines) :], strict=False):
            kept = _kept(problem.metadata, ADDED_BY_GRADERS)
            fields = {**kept, "verdict": opinion.verdict, "score": opinion.score, "why": opinion.why}
            lines.append(json.dumps(fields, ensure_ascii=False) + "\n")
            counts.by_gold[opinion.verdict, gold] += 1
            counts.scored += opinion.verdict == "silent" and opinion.score is not None
            counts.why.update([opinion.why] if opinion.why else [])
        if progress is not None:
            progress(len(lines), len(tasks))
    out.write("".join(lines))
    return counts


def _verify(
    tasks: Sequence[_Task], out: Path, rule: Rule, workers: int, progress: Callable[[int, int], None] | None
) -> VerdictCounts:
    check_target(out)
    with FileLock(out), naming(out), open_to_append(out) as appended, ThreadPoolExecutor(workers) as threads:
        earlier = _earlier(out, appended, tasks)
        counts = Counter((verdict, gold) for verdict, (*_, gold) in zip(earlier, tasks, strict=False))

        def timed(task: _Task) -> tuple[Verdict, float]:
            start = time.perf_counter()
            asked = [Asked(*task[:2])]
            said: list[Verdict] = isolated(
                rule.name, rule.verify_problems, asked, lambda _: "unparsed", asked_texts, users_too=True
            )
            return said[0], time.perf_counter() - start

        for start in range(len(earlier), len(tasks), CHUNK):
            chunk = tasks[start : start + CHUNK]
            lines = []
            for (problem, _, gold), (verdict, seconds) in zip(chunk, threads.map(timed, chunk), strict=True):
                fields = {**_kept(problem.metadata), "verdict": verdict, "seconds": round(seconds, 6)}
                lines.append(json.dumps(fields, ensure_ascii=False) + "\n")
                counts[verdict, gold] += 1
            append(appended, "".join(lines))
            if progress is not None:
                progress(start + len(chunk), len(tasks))
    return VerdictCounts(counts)


def _task(row: DataRow, needs_reference: bool) -> _Task:
    name = next((name for name in ("answer", "reference_answer") if name in row.fields), "answer")
    if needs_reference:
        require(row, (name,), "answer and completion")
    require(row, ("completion",), "answer and completion" if needs_reference else "completion")
    answer = text_field(row, name) if name in row.fields else ""
    completion = completion_of(row).text  # of messages, as chats have them, the final reply
    try:
        json.dumps(row.fields)
    except TypeError as error:
        raise InputError(f"{row.location}: cannot be written as JSON ({error}); leave that column out") from error
    gold = next((name for name in ("gold_correct", "label") if row.fields.get(name) is not None), None)
    question = row.fields.get("question")
    problem = Problem(row.location, question if isinstance(question, str) else "", answer, metadata=row.fields)
    return problem, completion, None if gold is None else label_of(row, gold)


def _earlier(out: Path, file: FileIO, tasks: Sequence[_Task]) -> list[str]:
    """The verdicts that `out`, which is opened as `file`, already holds. Half a line, which a kill has left at its end,
    is cut off. Raises InputError for anything that was not written for exactly these rows.
    """
    file.seek(0)
    data = file.readall()
    end = data.rfind(b"\n") + 1
    lines, cut = data[:end].decode("utf-8", "replace").split("\n")[:-1], data[end:].decode("utf-8", "ignore")
    rows = [problem.metadata for problem, *_ in tasks]
    verdicts = [_verdict_on(row, line) for row, line in zip(rows, lines, strict=False)]
    read = [verdict for verdict in verdicts if verdict is not None]
    whole = len(read) == len(lines) and (end == len(data) or _is_cut_off(cut, rows[len(lines) :], proven=bool(lines)))
    if not whole:
        number = [*verdicts, None].index(None) + 1
        raise InputError(REFUSED.format(path=f"{out}:{number}", what="is not a verdict on this row of the input"))
    file.truncate(end)
    return read


def _is_cut_off(text: str, rows: Sequence[Mapping[str, Any]], proven: bool) -> bool:
    """Whether the text is the beginning of a line with the verdict on the first of these rows. Where no whole line has
    `proven` that the file is ours, the text must reach to the verdict.
    """
    begins = json.dumps(_kept(rows[0]), ensure_ascii=False)[:-1] + ', "verdict": ' if rows else "\n"
    return text.startswith(begins) or (proven and begins.startswith(text))


def _verdict_on(row: Mapping[str, Any], line: str) -> str | None:
    """The verdict in a line that was written for exactly this row; None for any other line."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.get("verdict") not in get_args(Verdict):
        return None
    kept = {name: entry[name] for name in entry if name not in ADDED}
    return entry["verdict"] if json.dumps(kept) == json.dumps(_kept(row)) else None  # as text, NaN equals itself


def _kept(row: Mapping[str, Any], added: Sequence[str] = ADDED) -> dict[str, Any]:
    """The fields of an input row under their names in the output."""
    return {f"input/{name}" if name in added else name: value for name, value in row.items()}
