"""Compares methods that tell right completions from wrong ones, on labelled completions and under attack."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool
from numpy import ndarray

from cooper_rl.data.labelled import Asked, LabelledCompletion
from cooper_rl.evaluation.attacks import ATTACKS, CONTROLS, attack_rows
from cooper_rl.evaluation.estimates import Estimate
from cooper_rl.evaluation.metrics import ReliabilityBin, expected_calibration_error, reliability, roc_auc
from cooper_rl.persist.journal import Journal
from cooper_rl.verifyrm.bench.combination import Combination
from cooper_rl.verifyrm.bench.data import BenchRow
from cooper_rl.verifyrm.bench.methods import Method, Opinion
from cooper_rl.verifyrm.bench.metrics import estimates

CHUNK = 128
"""Number of completions after which the opinions are written down. An interruption loses at most this many."""
EXAMPLES = 8
NOT_ASKED = {"verdict": "unreadable", "failed": True}

Measured = dict[str, Estimate]
Progress = Callable[[int, int], None]
"""Called with the number of opinions given so far, and the total."""


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
    methods: Mapping[str, Method],
    combinations: Sequence[str],
    output_dir: Path,
    attacked_problems: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
) -> BenchResult:
    """Ask every method for its opinion of every row and every attack, and compute the metrics.

    Opinions are written to `output_dir` as they come, in one journal per method, so that an interrupted bench can
    continue. Rows on which a judge's server failed are asked again.
    Raises InputError, before any method is asked, for a combination with an unknown name.
    """
    combined = {expression: Combination(expression, list(methods)) for expression in combinations}
    attacks = attack_rows([row.labelled for row in rows], attacked_problems, seed)
    asked = [row.labelled for row in rows] + [attack.row for attack in attacks]
    opinions: dict[str, list[Opinion]] = {}
    for number, (name, method) in enumerate(methods.items()):

        def advance(done: int, before: int = number * len(asked)) -> None:
            if progress is not None:
                progress(before + done, len(asked) * len(methods))

        opinions[name] = _ask(method, asked, output_dir / f"opinions-{name}.jsonl", advance)
    patterns = [attack.pattern for attack in attacks]
    results = {name: _own_result(given, rows, patterns) for name, given in opinions.items()}
    for expression, combination in combined.items():
        accepts = [combination.accepts({name: given[i] for name, given in opinions.items()}) for i in range(len(asked))]
        results[expression] = _result(np.array(accepts, dtype=bool), rows, patterns)
    return BenchResult(list(rows), len({attack.row.question for attack in attacks}), results)


def _ask(
    method: Method, asked: Sequence[LabelledCompletion], path: Path, advance: Callable[[int], None]
) -> list[Opinion]:
    found: list[Opinion] = []
    with Journal(path, method.settings()) as journal:
        for start in range(0, len(asked), CHUNK):
            chunk: Sequence[Asked] = asked[start : start + CHUNK]
            key = f"{start} {_digest(chunk)}"
            opinions = [Opinion(**value) for value in journal.get(key) or [NOT_ASKED] * len(chunk)]
            missing = [row for row, opinion in zip(chunk, opinions, strict=True) if opinion.failed]
            if missing:
                new = iter(method.opinions(missing))
                opinions = [next(new) if opinion.failed else opinion for opinion in opinions]
                journal.put(key, [asdict(opinion) for opinion in opinions])
            found += opinions
            advance(len(found))
    return found


def _digest(rows: Sequence[Asked]) -> str:
    text = "\0".join(f"{row.question}\0{row.answer}\0{row.completion}" for row in rows)
    return f"{zlib.crc32(text.encode()):08x}"


def _own_result(opinions: Sequence[Opinion], rows: Sequence[BenchRow], patterns: Sequence[str]) -> MethodResult:
    """The result of a method. Unlike that of a combination it has verdicts, a calibration and mistakes."""
    accepts = np.array([opinion.accepts for opinion in opinions], dtype=bool)
    result = _result(accepts, rows, patterns)
    own = opinions[: len(rows)]
    verdicts = [opinion.verdict for opinion in own]
    mistakes = [
        Mistake(row, opinion.verdict, opinion.probability)
        for row, opinion in zip(rows, own, strict=True)
        if opinion.accepts != (row.labelled.label > 0.5) and not opinion.failed
    ]
    return replace(
        result,
        verdicts={verdict: verdicts.count(verdict) for verdict in sorted(set(verdicts))},
        calibration=_calibration(own, rows),
        mistakes=_examples(mistakes),
        unheard=sum(opinion.failed for opinion in opinions),
    )


def _result(accepts: Bool[ndarray, " B"], rows: Sequence[BenchRow], patterns: Sequence[str]) -> MethodResult:
    own, attacked = accepts[: len(rows)], accepts[len(rows) :]
    right = np.array([row.labelled.label > 0.5 for row in rows])
    questions = np.array([row.labelled.question for row in rows], dtype=object)

    def measure(inside: Bool[ndarray, " B"]) -> Measured:
        return estimates(own[inside], right[inside], list(questions[inside]))

    def broken_down(values: Sequence[str]) -> dict[str, Measured]:
        return {value: measure(np.array([v == value for v in values])) for value in sorted(set(values))}

    named = np.array(patterns, dtype=object)
    return MethodResult(
        overall=measure(np.ones(len(rows), dtype=bool)),
        by_category=broken_down([row.category for row in rows]),
        by_model=broken_down([row.model for row in rows]),
        attacks={name: float(attacked[named == name].mean()) for name in [*ATTACKS, *CONTROLS] if name in patterns},
    )


def _calibration(opinions: Sequence[Opinion], rows: Sequence[BenchRow]) -> Calibration | None:
    known = [
        (o.probability, row.labelled.label) for o, row in zip(opinions, rows, strict=True) if o.probability is not None
    ]
    if not known:
        return None
    probabilities, labels = torch.tensor(known, dtype=torch.float64).unbind(1)
    error = expected_calibration_error(probabilities, labels)
    return Calibration(reliability(probabilities, labels, bins=10), error, roc_auc(probabilities, labels))


def _examples(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """The most confident mistakes: wrong completions that were accepted, and right ones that were rejected."""

    def confidence(mistake: Mistake) -> float:
        return abs((mistake.probability if mistake.probability is not None else 0.5) - 0.5)

    ranked = sorted(mistakes, key=confidence, reverse=True)
    accepted = [m for m in ranked if m.row.labelled.label < 0.5]
    rejected = [m for m in ranked if m.row.labelled.label > 0.5]
    return accepted[: EXAMPLES // 2] + rejected[: EXAMPLES // 2]
