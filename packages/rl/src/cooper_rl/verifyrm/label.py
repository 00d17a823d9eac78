"""Labels completions with a rule, a judge and any grader, each by itself, and keeps those on which all agree."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cooper_base.data.labelled import LABELLED_FIELDS, THEIR_NAMES, read_rows, texts_of
from cooper_base.data.problem import Problem
from cooper_base.data.readers import DataRow
from cooper_base.data.transcript import split_reply
from cooper_base.data.verdict import Verdict
from cooper_base.files.durable import check_table_path, table_bytes
from cooper_base.files.hashes import text_key
from cooper_base.files.journal import Journal, journal_path
from cooper_base.files.owned_file import OwnedFile
from cooper_rl.engines.local.device import set_threads
from cooper_verify.faults import FAULT, isolated
from cooper_verify.grader import NO_ANSWER, Asked, Grader, Opinion, asked_texts, check_gives_verdicts, opinions_on
from cooper_verify.graders.judge import JudgeConfig, JudgeGrader, judge_settings
from cooper_verify.graders.judgement import Judgement
from cooper_verify.rules.kinds.maths import MathsRule, rule_settings
from cooper_verify.rules.rule import Rule, RuleConfig

COLUMNS = (*LABELLED_FIELDS, "model", "dataset", "id", "rule")
OF_JUDGE = ("judge", "judge_probability")
OF_GRADER = ("grader", "grader_score")
COMMAND = "cooper verifyrm label"
CHUNK = 64
"""Number of completions after which labels are written down. An interruption loses at most this many."""

NO_OPINION = ("silent", "timeout")
"""Verdicts that are neither a yes nor a no."""


@dataclass(frozen=True)
class CollectedRow:
    question: str
    answer: str
    completion: str
    model: str
    dataset: str
    id: str

    @property
    def problem(self) -> Problem:
        return Problem(self.id, self.question, self.answer)


@dataclass(frozen=True)
class Labelled:
    """A row with the verdict of the rule, and what judge and grader say if there are any."""

    row: CollectedRow
    rule: Verdict
    judgement: Judgement | None = None
    opinion: Opinion | None = None

    @property
    def said(self) -> tuple[str, ...]:
        """What rule, judge and grader say, in this order."""
        judged = () if self.judgement is None else (self.judgement.verdict,)
        return (self.rule, *judged, *(() if self.opinion is None else (self.opinion.named,)))

    @property
    def votes(self) -> list[bool | None]:
        """Whether each of them accepts the answer; None without an opinion. `unparsed` is a no."""
        votes = [None if self.rule in NO_OPINION else self.rule == "correct"]
        if (judged := self.judgement) is not None:
            votes.append(None if judged.verdict == "unreadable" else judged.verdict == "yes")
        if (opinion := self.opinion) is not None:
            says_neither = opinion.verdict in NO_OPINION or opinion.why is not None
            votes.append(None if says_neither else opinion.accepts)
        return votes

    @property
    def label(self) -> int | None:
        """The label on which all of them agree, or None."""
        said = {*self.votes}
        return int(bool(said.pop())) if len(said) == 1 and None not in said else None

    @property
    def unheard(self) -> list[str]:
        """Those whose server failed."""
        failed = {"judge": self.judgement is not None and self.judgement.failed}
        failed["grader"] = self.opinion is not None and self.opinion.failed
        return [name for name, yes in failed.items() if yes]

    def fields(self) -> dict[str, Any]:
        """The row as the table's columns."""
        said: dict[str, Any] = {"rule": self.rule}
        if self.judgement is not None:
            said |= zip(OF_JUDGE, (self.judgement.verdict, self.judgement.probability), strict=True)
        if self.opinion is not None:
            said |= zip(OF_GRADER, (self.opinion.named, self.opinion.score), strict=True)
        return {**asdict(self.row), "reference_answer": self.row.answer, **said, "label": self.label}


def label_completions(
    data: Path,
    judge_config: JudgeConfig | None,
    output: Path,
    rule: RuleConfig = MathsRule(),  # noqa: B008 - a frozen record
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    grader: Grader | None = None,
) -> list[Labelled]:
    """Label the completions of `data` by the rule and, if there are any, a judge and a grader: a label is what all of
    them say. Rows with a label are written to `output`, the others to `disagreements_path`.

    Every labelled chunk is in a journal beside the output, so the same command continues after an interruption, and
    labels again the rows on which a server failed. `progress` counts completions. Raises InputError, before any row is
    labelled, for bad rows, for another judge, grader or rule than in the journal, for a judge that does not answer, and
    for a grader that gives no verdicts.
    """
    check_table_path(output)
    set_threads(threads)
    rows = read_collected(data)
    if grader is not None:
        check_gives_verdicts(grader)
        grader.check([row.problem for row in rows])
    columns = [*COLUMNS, *(OF_JUDGE if judge_config is not None else ()), *(OF_GRADER if grader is not None else ())]
    judge = None if judge_config is None else JudgeGrader(judge_config)
    labelled: list[Labelled] = []
    with (
        OwnedFile(output, COMMAND, [data]) as out,
        OwnedFile(disagreements_path(output), COMMAND, [data]) as others,
        Journal(journal_path(output), _settings(judge_config, rule, grader)) as journal,
        closing(rule.build()) as by,
        ExitStack() as opened,
    ):
        for one in filter(None, (judge, grader)):
            opened.callback(one.close)

        ask = partial(_opinions, by, judge, grader)
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            key = f"{start} {text_key(repr(chunk))}"
            values = journal.completed(key, chunk, ask, _failed)
            for row, (verdict, *said) in zip(chunk, values, strict=True):
                judgement = None if judge is None else Judgement(**said.pop(0))
                labelled.append(Labelled(row, verdict, judgement, None if grader is None else Opinion(**said.pop(0))))
            if progress is not None:
                progress(len(labelled), len(rows))
        _write(labelled, out, others, columns, with_replies=judge is not None)
    return labelled


def _opinions(
    rule: Rule, judge: JudgeGrader | None, grader: Grader | None, rows: Sequence[CollectedRow]
) -> list[list[Any]]:
    """Of each row, the rule's verdict and what judge and grader say, as JSON values."""
    answers = [Asked(row.problem, split_reply(row.completion)[1]) for row in rows]
    said: list[Sequence[Any]] = [rule.verify_problems(answers)]
    if judge is not None:
        unheard = Judgement("unreadable", detail=FAULT, failed=True)
        judged = isolated(judge.name, judge.judgements, answers, lambda _: unheard, asked_texts)
        said.append([asdict(judgement) for judgement in judged])
    if grader is not None:
        said.append([asdict(opinion) for opinion in opinions_on(grader, answers, users_too=True)])
    return [list(of_row) for of_row in zip(*said, strict=True)]


def _settings(judge: JudgeConfig | None, rule: RuleConfig, grader: Grader | None) -> dict[str, Any]:
    """What decides the labels, for their journal."""
    settings = ({} if judge is None else judge_settings(judge)) | rule_settings(rule)
    return settings if grader is None else settings | {"grader": grader.settings()}


def _failed(said: Sequence[Any]) -> bool:
    """Whether a server has not answered; `said` is the rule's verdict and what others said."""
    return any(opinion.get("failed") or opinion.get("why") in (NO_ANSWER, FAULT) for opinion in said[1:])


def _write(
    labelled: Sequence[Labelled], out: OwnedFile, others: OwnedFile, columns: Sequence[str], with_replies: bool
) -> None:
    """The rows with a label, and those without one."""
    out.write(table_bytes(out.path, [item.fields() for item in labelled if item.label is not None], columns))
    details = [
        item.fields() | ({} if item.judgement is None else {"judge_reply": item.judgement.detail})
        for item in labelled
        if item.label is None
    ]
    of_others = [name for name in columns if name != "label"] + (["judge_reply"] if with_replies else [])
    others.write(table_bytes(others.path, details, of_others))


def disagreements_path(output: Path) -> Path:
    """Path of the file for the rows without a label."""
    return output.with_name(f"{output.stem}.disagreements.jsonl")


def confusion(labelled: Iterable[Labelled]) -> dict[tuple[str, str], Counter[tuple[str, ...]]]:
    """Counts of what rule, judge and grader say together, by (dataset, model)."""
    tables = defaultdict(Counter)
    for item in labelled:
        tables[item.row.dataset, item.row.model][item.said] += 1
    return dict(tables)


def read_collected(path: Path) -> list[CollectedRow]:
    """A table of question, reference_answer, completion and, optionally, model, dataset and id. Raises InputError."""

    def read(row: DataRow) -> CollectedRow:
        model, dataset = (str(row.fields.get(name) or "-") for name in ("model", "dataset"))
        return CollectedRow(
            *texts_of(row.renamed(THEIR_NAMES)), model, dataset, str(row.fields.get("id") or row.location)
        )

    return read_rows(path, read, LABELLED_FIELDS[:3])


def agreement_counts(labelled: Sequence[Labelled]) -> dict[str, int]:
    """Numbers of rows kept as right and as wrong, and dropped; `judge not heard`: the judge's server failed on them."""
    silent = [item for item in labelled if None in item.votes]
    right, wrong = (sum(item.label == value for item in labelled) for value in (1, 0))
    disagree = len(labelled) - right - wrong - len(silent)
    counts = {"right": right, "wrong": wrong, "disagree": disagree, "no opinion": len(silent)}
    asked = {"judge": any(item.judgement for item in labelled), "grader": any(item.opinion for item in labelled)}
    return counts | {
        f"{name} not heard": sum(name in item.unheard for item in labelled) for name, yes in asked.items() if yes
    }
