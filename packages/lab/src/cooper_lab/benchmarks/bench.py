"""Compares rules, reward models and judges on labelled completions and under attack."""

import ast
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from jaxtyping import Bool
from numpy import ndarray

from cooper_audit.attack.wrong_answers import ATTACKS, CONTROLS, attack_rows
from cooper_audit.statistics import Estimate, wilson_interval
from cooper_base.data.labelled import LABELLED_FIELDS, problem_key, read_rows, row_or_verdict, with_labels
from cooper_base.data.readers import DataRow
from cooper_base.data.transcript import split_reply
from cooper_base.data.verdict import Verdict
from cooper_rl import InputError, LabelledCompletion
from cooper_rl.reward.monitor import ReliabilityBin, expected_calibration_error, reliability, roc_auc
from cooper_verify.grader import UNREADABLE, Asked, Grader, Opinion, in_chunks, opinions_of

RENAMED = {"gold_answer": "reference_answer", "llm_response": "completion", "gold_judgment": "label"}
"""Fields that have another name in VerifierBench than here; for VerifyBench, see `THEIR_NAMES`."""
JUDGEMENTS = {"A": "correct", "B": "wrong", "C": "invalid"}
"""The classes of VerifierBench (arXiv 2508.03686). An invalid answer, or question, is for our rules `unparsed`."""
CATEGORY_FIELDS = ("answer_type", "category", "dataset", "source")
MODEL_FIELDS = ("completion_model", "model")


@dataclass(frozen=True)
class BenchRow:
    """A labelled completion with its category and its model, by which results are broken down."""

    labelled: LabelledCompletion
    category: str
    model: str
    judgement: str = ""
    """One of `JUDGEMENTS`, if the file has three classes."""


def read_bench(path: str | Path) -> list[BenchRow]:
    """Read a JSONL, JSON, CSV or Parquet file with question, reference, completion and label, or with the verdicts of
    `cooper verify`, as `read_labelled` does.

    Fields may have the names of VerifyBench (`THEIR_NAMES`) or VerifierBench (`RENAMED`), whose label is one of
    `JUDGEMENTS`. The category is the first of `answer_type`, `category`, `dataset` and `source` that a row has. The
    model is `completion_model` or `model`. Raises InputError, which names the file, row and field.
    """

    def read(row: DataRow) -> BenchRow | str:
        named, judgement = row.renamed(RENAMED), ""
        if "gold_judgment" in row.fields:
            given = str(row.fields["gold_judgment"]).strip()
            if given not in JUDGEMENTS:
                raise InputError(f"{row.location}: field 'gold_judgment' is {given!r}; it must be A, B or C")
            judgement = JUDGEMENTS[given]
            named = replace(named, fields={**named.fields, "label": int(given == "A"), **row.fields})
        labelled = row_or_verdict(named)
        if isinstance(labelled, str):
            return labelled
        return BenchRow(labelled, first(row, CATEGORY_FIELDS), first(row, MODEL_FIELDS), judgement)

    def first(row: DataRow, names: tuple[str, ...]) -> str:
        return next((str(row.fields[name]) for name in names if row.fields.get(name)), "-")

    return with_labels(path, read_rows(path, read, LABELLED_FIELDS))


RESAMPLES = 1000
MEASURES = {"accuracy": (0, 1), "precision": (2, 3), "recall": (2, 4), "false_positive_rate": (5, 6)}
"""The columns of the counts in `estimates` of which each measure is the quotient."""


def estimates(
    accepts: Bool[ndarray, " B"], right: Bool[ndarray, " B"], questions: Sequence[str], seed: int = 0
) -> dict[str, Estimate]:
    """Each measure with its 95 % percentile interval (Efron 1979). A measure whose denominator is 0 is left out.

    Problems are drawn with replacement and keep all their completions, because those are not independent. A measure
    that is 0 or 1 would be the same in every draw, so it gets Wilson's interval with its problems as trials.
    """
    keys = [problem_key(question) for question in questions]
    _, problem = np.unique(keys, return_inverse=True)
    problems = int(problem.max()) + 1
    true_positive, false_positive = accepts & right, accepts & ~right
    columns = [accepts == right, np.ones_like(right), true_positive, accepts, right, false_positive, ~right]
    counts = np.stack([np.bincount(problem, column, problems) for column in columns], axis=1)
    draws = np.random.default_rng(seed).multinomial(problems, np.full(problems, 1 / problems), size=RESAMPLES)
    whole, resampled = counts.sum(axis=0), draws @ counts
    estimates_by_name = {}
    for name, (over, under) in MEASURES.items():
        if not whole[under]:
            continue
        value = float(whole[over] / whole[under])
        if value in (0.0, 1.0):
            interval = wilson_interval(value, int((counts[:, under] > 0).sum()))
        else:
            with np.errstate(invalid="ignore", divide="ignore"):  # a draw may hold none of the denominator
                shares = resampled[:, over] / resampled[:, under]
            interval = map(float, np.nanquantile(shares, [0.025, 0.975]))
        estimates_by_name[name] = Estimate(value, *interval)
    return estimates_by_name


VERDICTS = (*get_args(Verdict), UNREADABLE)


class Combination:
    """A boolean expression over methods, such as `rule or rm`, `rule and not judge`, `(rule or rm) and judge`.

    The name of a method is true if the method accepts. `<method>_<verdict>`, such as `rule_wrong`, `rule_unparsed` or
    `judge_unreadable`, is true if the method gives that verdict or reason: `rule or (rule_unparsed and rm)`. Raises
    InputError for anything else.
    """

    def __init__(self, expression: str, methods: Sequence[str]) -> None:
        self.expression = expression
        self._methods = list(methods)
        try:
            tree = ast.parse(expression.strip(), mode="eval").body
        except SyntaxError as error:
            raise InputError(f"combination {expression!r}: not a boolean expression, such as 'rule or rm'") from error
        self.accepts = self._value_of(tree)
        """The value of the expression, given the opinion of every method on one completion."""

    def _value_of(self, node: ast.expr) -> Callable[[Mapping[str, Opinion]], bool]:
        if isinstance(node, ast.BoolOp):
            parts, combine = (
                [self._value_of(value) for value in node.values],
                all if isinstance(node.op, ast.And) else any,
            )
            return lambda opinions: combine(part(opinions) for part in parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            operand = self._value_of(node.operand)
            return lambda opinions: not operand(opinions)
        if not isinstance(node, ast.Name):
            raise InputError(f"combination {self.expression!r}: only names, and, or, not and brackets are allowed")
        name = node.id
        if name in self._methods:
            return lambda opinions: bool(opinions[name].accepts)
        method, _, verdict = name.rpartition("_")
        if method not in self._methods or verdict not in VERDICTS:
            method_names = ", ".join(self._methods)
            raise InputError(f"combination {self.expression!r}: unknown name {name!r}; the methods are {method_names}")
        return lambda opinions: verdict in (opinions[method].verdict, opinions[method].why)


EXAMPLES = 8

Measured = dict[str, Estimate]


@dataclass(frozen=True)
class Calibration:
    """How well the probabilities of a method match the share of right completions."""

    bins: list[ReliabilityBin]
    ece: float
    roc_auc: float


@dataclass(frozen=True)
class Mistake:
    """A completion for which a method and the label differ."""

    row: BenchRow
    verdict: str
    probability: float | None


@dataclass(frozen=True)
class MethodResult:
    """The metrics of one method or combination. `attacks` maps a pattern to the share of its completions accepted.

    `unheard` counts the completions, including attacks, without an opinion because the judge's server failed.
    """

    overall: Measured
    by_category: dict[str, Measured]
    by_model: dict[str, Measured]
    attacks: dict[str, float]
    verdicts: dict[str, int] = field(default_factory=dict)
    judged: dict[str, dict[str, int]] = field(default_factory=dict)
    """Verdicts on the rows of each of `JUDGEMENTS`, if the file has them."""
    calibration: Calibration | None = None
    mistakes: list[Mistake] = field(default_factory=list)
    unheard: int = 0


@dataclass(frozen=True)
class BenchResult:
    """The result of a bench."""

    rows: list[BenchRow]
    attacked_problems: int
    methods: dict[str, MethodResult]


def bench(
    rows: Sequence[BenchRow],
    methods: Mapping[str, Grader],
    combinations: Sequence[str],
    output_dir: Path,
    attacked_problems: int,
    progress: Callable[[int, int], None] | None = None,
) -> BenchResult:
    """Ask every method for its opinion of every row and every attack, and compute the metrics.

    Opinions are written to `output_dir` as they come, in one journal per method, so that an interrupted bench can
    continue. Rows on which a judge's server failed are asked again. `progress` is called with the number of opinions
    given so far, and the total.

    Raises InputError, before any method is asked, for a combination with an unknown name.
    """
    combined = {expression: Combination(expression, list(methods)) for expression in combinations}
    attacks = attack_rows([row.labelled for row in rows], attacked_problems, seed=0)
    rows_and_attacks = [row.labelled for row in rows] + [attack.row for attack in attacks]
    asked = [Asked.about(row.question, row.answer, split_reply(row.completion)[1]) for row in rows_and_attacks]
    opinions: dict[str, list[Opinion]] = {}
    for name, method in methods.items():
        opinions[name] = []
        for chunk in opinions_of(method, in_chunks(asked), output_dir / f"opinions-{name}.jsonl"):
            opinions[name] += chunk
            if progress is not None:
                progress(sum(map(len, opinions.values())), len(rows_and_attacks) * len(methods))
    patterns = [attack.pattern for attack in attacks]
    results = {
        name: _own_result(given, rows, patterns, methods[name].gives_probabilities) for name, given in opinions.items()
    }
    for expression, combination in combined.items():
        accepts = [
            combination.accepts({name: given[i] for name, given in opinions.items()})
            for i in range(len(rows_and_attacks))
        ]
        results[expression] = _result(np.array(accepts, dtype=bool), rows, patterns)
    return BenchResult(list(rows), len({attack.row.question for attack in attacks}), results)


def _own_result(
    opinions: Sequence[Opinion], rows: Sequence[BenchRow], patterns: Sequence[str], gives_probabilities: bool
) -> MethodResult:
    """The result of a method. Unlike that of a combination it has verdicts, a calibration and mistakes."""
    accepts = np.array([bool(opinion.accepts) for opinion in opinions], dtype=bool)
    of_rows = opinions[: len(rows)]
    probabilities = [_probability(opinion) if gives_probabilities else None for opinion in of_rows]
    mistakes = [
        Mistake(row, opinion.named, probability)
        for row, opinion, probability in zip(rows, of_rows, probabilities, strict=True)
        if opinion.accepts is not None and opinion.accepts != (row.labelled.label > 0.5) and not opinion.failed
    ]
    return replace(
        _result(accepts, rows, patterns, np.array([opinion.verdict != "silent" for opinion in opinions], dtype=bool)),
        verdicts=dict(sorted(Counter(opinion.named for opinion in of_rows).items())),
        judged=_judged(of_rows, rows),
        calibration=_calibration(probabilities, rows),
        mistakes=_examples(mistakes),
        unheard=sum(opinion.failed for opinion in opinions),
    )


def _probability(opinion: Opinion) -> float | None:
    """The probability of being right; None where the method has read none."""
    return opinion.score if opinion.verdict in ("correct", "wrong") else None


def _result(
    accepts: Bool[ndarray, " B"],
    rows: Sequence[BenchRow],
    patterns: Sequence[str],
    judged: Bool[ndarray, " B"] | None = None,
) -> MethodResult:
    """`judged`: the completions on which the method is not silent, which alone count in its measures; None for all."""
    judged = np.ones(len(accepts), dtype=bool) if judged is None else judged
    accepted_rows, attacked = accepts[: len(rows)], accepts[len(rows) :]
    right = np.array([row.labelled.label > 0.5 for row in rows])
    questions = np.array([row.labelled.question for row in rows], dtype=object)

    def measure(inside: Bool[ndarray, " B"]) -> Measured:
        inside = inside & judged[: len(rows)]
        if not inside.any():
            return {}
        return estimates(accepted_rows[inside], right[inside], list(questions[inside]))

    def broken_down(values: Sequence[str]) -> dict[str, Measured]:
        return {value: measure(np.array([v == value for v in values])) for value in sorted(set(values))}

    named = np.array(patterns, dtype=object)
    return MethodResult(
        overall=measure(np.ones(len(rows), dtype=bool)),
        by_category=broken_down([row.category for row in rows]),
        by_model=broken_down([row.model for row in rows]),
        attacks={name: float(attacked[named == name].mean()) for name in [*ATTACKS, *CONTROLS] if name in patterns},
    )


def _judged(opinions: Sequence[Opinion], rows: Sequence[BenchRow]) -> dict[str, dict[str, int]]:
    counts = Counter(
        (row.judgement, opinion.named) for opinion, row in zip(opinions, rows, strict=True) if row.judgement
    )
    verdicts = sorted({verdict for _, verdict in counts})
    return {name: {verdict: counts[name, verdict] for verdict in verdicts} for name in JUDGEMENTS.values() if counts}


def _calibration(probabilities: Sequence[float | None], rows: Sequence[BenchRow]) -> Calibration | None:
    calibrated = [
        (probability, row.labelled.label)
        for probability, row in zip(probabilities, rows, strict=True)
        if probability is not None
    ]
    if not calibrated:
        return None
    scores, labels = torch.tensor(calibrated, dtype=torch.float64).unbind(1)
    error = expected_calibration_error(scores, labels)
    return Calibration(reliability(scores, labels, bins=10), error, roc_auc(scores, labels))


def _examples(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """The most confident mistakes: wrong completions that were accepted, and right ones that were rejected."""
    ranked = sorted(mistakes, key=lambda m: 0.0 if m.probability is None else abs(m.probability - 0.5), reverse=True)
    accepted = [m for m in ranked if m.row.labelled.label < 0.5]
    rejected = [m for m in ranked if m.row.labelled.label > 0.5]
    return accepted[: EXAMPLES // 2] + rejected[: EXAMPLES // 2]
