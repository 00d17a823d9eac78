"""Labels completions with rule and judge, independently of each other, and keeps those on which they agree."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from cooper_rl.data.labelled import FIELDS, texts_of
from cooper_rl.data.problem import Problem
from cooper_rl.data.readers import Row, read_file
from cooper_rl.engines.local.device import set_threads
from cooper_rl.errors import InputError
from cooper_rl.persist.journal import Journal, journal_path
from cooper_rl.rewards.judging.verdict import Judgement
from cooper_rl.rewards.judging.verdict_prompt import JudgeVerdict
from cooper_rl.rewards.rule.base import RuleConfig
from cooper_rl.rewards.rule.kinds.maths import MathsRule, rule_settings
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.verifyrm.label.judge import Judge, build_judge, judge_settings
from cooper_rl.verifyrm.label.judge_config import JudgeConfig
from cooper_rl.verifyrm.table_file import check_table_path, write_table

UNKNOWN = "-"
COLUMNS = (*FIELDS, "model", "dataset", "id", "rule", "judge", "judge_probability")
CHUNK = 64
"""Number of completions after which labels are written down. An interruption loses at most this many."""

Progress = Callable[[int, int], None]
"""Called with the number of completions labelled so far, and the total."""


@dataclass(frozen=True)
class CollectedRow:
    """A row to label."""

    question: str
    answer: str
    completion: str
    model: str
    dataset: str
    id: str

    @property
    def problem(self) -> Problem:
        """The row as the rule needs it."""
        return Problem(self.id, self.question, self.answer)


@dataclass(frozen=True)
class Labelled:
    """A row with the opinions of rule and judge."""

    row: CollectedRow
    rule: Verdict
    judgement: Judgement

    @property
    def label(self) -> int | None:
        """1 or 0 if rule and judge agree. None if they do not, or if one of them has no opinion."""
        return agreed_label(self.rule, self.judgement.verdict)

    def fields(self) -> dict[str, Any]:
        """The row as the table's columns."""
        row = asdict(self.row)
        row["reference_answer"] = row.pop("answer")
        opinions = {"rule": self.rule, "judge": self.judgement.verdict, "judge_probability": self.judgement.probability}
        return {**row, **opinions, "label": self.label}


Confusion = Counter[tuple[Verdict, JudgeVerdict]]


def agreed_label(rule: Verdict, judge: JudgeVerdict) -> int | None:
    """The label on which rule and judge agree, or None.

    `unparsed` counts as a no of the rule: if the judge also says no, neither found a matching answer. A timeout is not
    an opinion.
    """
    if rule == "timeout" or judge == "unreadable":
        return None
    said_yes = rule == "correct"
    return int(said_yes) if said_yes == (judge == "yes") else None


def label_completions(
    data: Path,
    judge_config: JudgeConfig,
    output: Path,
    workers: int = 1,
    threads: int | None = None,
    progress: Progress | None = None,
    rule: RuleConfig | None = None,
) -> list[Labelled]:
    """Label the completions of `data`. Rows with a label go to `output`, the others to `disagreements_path`.

    Every labelled chunk is in a journal beside the output. The same command therefore continues after an interruption,
    and asks again for rows on which the judge's server failed. `rule` is `maths` with `workers` processes by default.
    Raises InputError, before any row is labelled, for bad rows, for another judge or rule than in the journal, and for
    a judge that does not answer.
    """
    check_table_path(output)
    set_threads(threads)
    rows = read_collected(data)
    labelled: list[Labelled] = []
    with (
        Journal(journal_path(output), judge_settings(judge_config) | rule_settings(rule)) as journal,
        _Labellers(judge_config, rule or MathsRule(workers=workers)) as labellers,
    ):
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            key = f"{start} {zlib.crc32(repr(chunk).encode()):08x}"
            earlier = [_from_json(row, value) for row, value in zip(chunk, journal.get(key) or [], strict=False)]
            if not earlier or any(item.judgement.failed for item in earlier):
                earlier = labellers.label(chunk, earlier)
                journal.put(key, [[item.rule, asdict(item.judgement)] for item in earlier])
            labelled += earlier
            if progress is not None:
                progress(len(labelled), len(rows))
    write_table(output, [item.fields() for item in labelled if item.label is not None], COLUMNS)
    details = [{**item.fields(), "judge_reply": item.judgement.detail} for item in labelled if item.label is None]
    columns = [name for name in COLUMNS if name != "label"]
    write_table(disagreements_path(output), details, [*columns, "judge_reply"])
    return labelled


class _Labellers:
    """Rule and judge. The judge is loaded when the first row needs it."""

    def __init__(self, judge_config: JudgeConfig, rule: RuleConfig) -> None:
        self._judge_config = judge_config
        self._judge: Judge | None = None
        self._rule = rule.build()

    def label(self, chunk: Sequence[CollectedRow], earlier: Sequence[Labelled]) -> list[Labelled]:
        """Both opinions on a chunk. For a chunk labelled earlier only the judge is asked, for rows without a reply."""
        if self._judge is None:
            self._judge = build_judge(self._judge_config)
            self._judge.check()
        if earlier:
            verdicts: Sequence[Verdict] = [item.rule for item in earlier]
            again = [item.row for item in earlier if item.judgement.failed]
            replies = iter(self._judge.judge(again))
            judgements = [next(replies) if item.judgement.failed else item.judgement for item in earlier]
        else:
            verdicts = self._rule.verify_problems([(row.problem, row.completion) for row in chunk])
            judgements = self._judge.judge(chunk)
        return [Labelled(*opinions) for opinions in zip(chunk, verdicts, judgements, strict=True)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._rule.close()
        if self._judge is not None:
            self._judge.close()


def _from_json(row: CollectedRow, value: Any) -> Labelled:
    verdict, judgement = value
    return Labelled(row, verdict, Judgement(**judgement))


def disagreements_path(output: Path) -> Path:
    """Path of the file for the rows without a label."""
    return output.with_name(f"{output.stem}.disagreements.jsonl")


def confusion(labelled: Iterable[Labelled]) -> dict[tuple[str, str], Confusion]:
    """Counts of (verdict of the rule, verdict of the judge) by (dataset, model)."""
    tables: dict[tuple[str, str], Confusion] = {}
    for item in labelled:
        tables.setdefault((item.row.dataset, item.row.model), Counter())[item.rule, item.judgement.verdict] += 1
    return tables


def read_collected(path: Path) -> list[CollectedRow]:
    """Read a table with question, reference_answer, completion and, optionally, model, dataset and id.

    Raises InputError, which names the file, row and field.
    """
    rows = [_collected(row) for row in read_file(path)]
    if not rows:
        raise InputError(f"{path}: holds no rows; each row needs {', '.join(FIELDS[:3])}")
    return rows


def _collected(row: Row) -> CollectedRow:
    model, dataset = (str(row.fields.get(name) or UNKNOWN) for name in ("model", "dataset"))
    return CollectedRow(*texts_of(row), model, dataset, str(row.fields.get("id") or row.location))


def agreement_counts(labelled: Sequence[Labelled]) -> dict[str, int]:
    """Numbers of rows kept as right, kept as wrong, dropped for disagreement, and dropped for a missing opinion.

    `judge not heard` counts those of the last kind on which the judge's server failed.
    """
    silent = [item for item in labelled if item.rule == "timeout" or item.judgement.verdict == "unreadable"]
    right, wrong = (sum(item.label == value for item in labelled) for value in (1, 0))
    disagree = len(labelled) - right - wrong - len(silent)
    counts = {"right": right, "wrong": wrong, "disagree": disagree, "no opinion": len(silent)}
    return counts | {"judge not heard": sum(item.judgement.failed for item in labelled)}
