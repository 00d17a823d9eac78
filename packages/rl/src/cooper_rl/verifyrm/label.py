"""Labels completions with rule and judge, independently of each other, and keeps those on which they agree."""

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cooper_base.data.labelled import LABELLED_FIELDS, read_rows, texts_of
from cooper_base.data.problem import Problem
from cooper_base.data.readers import DataRow
from cooper_base.data.verdict import Verdict
from cooper_base.files.durable import Journal, check_table_path, journal_path, write_table
from cooper_rl.engines.local.device import set_threads
from cooper_verify.grader import Asked
from cooper_verify.graders.judge import JudgeConfig, JudgeGrader, judge_settings
from cooper_verify.graders.judgement import Judgement, JudgeVerdict
from cooper_verify.rules.kinds.maths import MathsRule, rule_settings
from cooper_verify.rules.rule import RuleConfig

COLUMNS = (*LABELLED_FIELDS, "model", "dataset", "id", "rule", "judge", "judge_probability")
CHUNK = 64
"""Number of completions after which labels are written down. An interruption loses at most this many."""

NO_OPINION = ("silent", "timeout")
"""Verdicts that are neither a yes nor a no of the rule."""


@dataclass(frozen=True)
class CollectedRow:
    question: str
    answer: str
    completion: str
    model: str
    dataset: str
    id: str


@dataclass(frozen=True)
class Labelled:
    """A row with the verdicts of rule and judge."""

    row: CollectedRow
    rule: Verdict
    judgement: Judgement

    @property
    def label(self) -> int | None:
        return agreed_label(self.rule, self.judgement.verdict)

    def fields(self) -> dict[str, Any]:
        """The row as the table's columns."""
        said = {"rule": self.rule, "judge": self.judgement.verdict, "judge_probability": self.judgement.probability}
        return {**asdict(self.row), "reference_answer": self.row.answer, **said, "label": self.label}


def agreed_label(rule: Verdict, judge: JudgeVerdict) -> int | None:
    """The label on which rule and judge agree, or None. `unparsed` counts as a no of the rule."""
    if rule in NO_OPINION or judge == "unreadable":
        return None
    said_yes = rule == "correct"
    return int(said_yes) if said_yes == (judge == "yes") else None


def label_completions(
    data: Path,
    judge_config: JudgeConfig,
    output: Path,
    rule: RuleConfig = MathsRule(),  # noqa: B008 - a frozen record
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Labelled]:
    """Label the completions of `data`. Rows with a label are written to `output`, the others to `disagreements_path`.

    Every labelled chunk is in a journal beside the output, so the same command continues after an interruption, and
    labels again the rows on which the judge's server failed. `progress` counts completions. Raises InputError, before
    any row is labelled, for bad rows, for another judge or rule than in the journal, and for a judge that does not
    answer.
    """
    check_table_path(output)
    set_threads(threads)
    rows = read_collected(data)
    labelled: list[Labelled] = []
    with (
        Journal(journal_path(output), judge_settings(judge_config) | rule_settings(rule)) as journal,
        closing(rule.build()) as by,
        closing(JudgeGrader(judge_config)) as judge,
    ):

        def verdicts(chunk: Sequence[CollectedRow]) -> list[list[Any]]:
            answers = [Asked(Problem(row.id, row.question, row.answer), row.completion) for row in chunk]
            by_rule, by_judge = by.verify_problems(answers), judge.judgements(answers)
            return [[rule, asdict(said)] for rule, said in zip(by_rule, by_judge, strict=True)]

        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            key = f"{start} {zlib.crc32(repr(chunk).encode()):08x}"
            values = journal.completed(key, chunk, verdicts, lambda value: value[1]["failed"])
            labelled += [
                Labelled(row, rule, Judgement(**said)) for row, (rule, said) in zip(chunk, values, strict=True)
            ]
            if progress is not None:
                progress(len(labelled), len(rows))
    write_table(output, [item.fields() for item in labelled if item.label is not None], COLUMNS)
    details = [{**item.fields(), "judge_reply": item.judgement.detail} for item in labelled if item.label is None]
    columns = [name for name in COLUMNS if name != "label"]
    write_table(disagreements_path(output), details, [*columns, "judge_reply"])
    return labelled


def disagreements_path(output: Path) -> Path:
    """Path of the file for the rows without a label."""
    return output.with_name(f"{output.stem}.disagreements.jsonl")


def confusion(labelled: Iterable[Labelled]) -> dict[tuple[str, str], Counter[tuple[Verdict, JudgeVerdict]]]:
    """Counts of (verdict of the rule, verdict of the judge) by (dataset, model)."""
    tables = defaultdict(Counter)
    for item in labelled:
        tables[item.row.dataset, item.row.model][item.rule, item.judgement.verdict] += 1
    return dict(tables)


def read_collected(path: Path) -> list[CollectedRow]:
    """A table of question, reference_answer, completion and, optionally, model, dataset and id. Raises InputError."""

    def read(row: DataRow) -> CollectedRow:
        model, dataset = (str(row.fields.get(name) or "-") for name in ("model", "dataset"))
        return CollectedRow(*texts_of(row), model, dataset, str(row.fields.get("id") or row.location))

    return read_rows(path, read, LABELLED_FIELDS[:3])


def agreement_counts(labelled: Sequence[Labelled]) -> dict[str, int]:
    """Numbers of rows kept as right and as wrong, and dropped; `judge not heard`: the judge's server failed on them."""
    silent = [item for item in labelled if item.rule in NO_OPINION or item.judgement.verdict == "unreadable"]
    right, wrong = (sum(item.label == value for item in labelled) for value in (1, 0))
    disagree = len(labelled) - right - wrong - len(silent)
    counts = {"right": right, "wrong": wrong, "disagree": disagree, "no opinion": len(silent)}
    return counts | {"judge not heard": sum(item.judgement.failed for item in labelled)}
