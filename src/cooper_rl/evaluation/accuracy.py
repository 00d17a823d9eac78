"""Accuracy of a policy: avg@k and pass@k with confidence intervals, for any sampler."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from cooper_rl.data.problem import Problem
from cooper_rl.engines.base import Sampler
from cooper_rl.engines.config import SamplingParams, StopReason
from cooper_rl.errors import InputError
from cooper_rl.evaluation.estimates import Estimate, paired_difference
from cooper_rl.rollouts import Answer

EVALUATION_PARAMS = SamplingParams(temperature=0.7, top_p=0.95, max_tokens=2048)
"""The paper's evaluation protocol (arXiv 2508.05613), with k = 8."""


def avg_at_k(correct: Bool[ndarray, "P k"]) -> Float[ndarray, " P"]:
    """Share of right completions for each problem. Its mean over the problems is the paper's avg@k."""
    return np.asarray(correct, dtype=float).mean(axis=1)


def pass_at_k(correct: Bool[ndarray, "P n"], k: int) -> Float[ndarray, " P"]:
    """Unbiased estimate, from n >= k completions, of the chance that at least one of k completions is right.

    If c of the n are right it is 1 - C(n - c, k) / C(n, k), computed as a product so that nothing overflows
    (Chen et al. 2021, arXiv 2107.03374, eq. 1).

    Raises:
        ValueError: k is not between 1 and n.
    """
    samples = correct.shape[1]
    if not 1 <= k <= samples:
        raise ValueError(f"pass@{k} cannot be estimated from {samples} completions")
    wrong = samples - np.asarray(correct).sum(axis=1)
    factors = 1 - k / np.arange(1, samples + 1)
    # C(w, k) / C(n, k) is the product of (1 - k / i) for i from w + 1 to n, and 0 where w < k.
    misses = [np.prod(factors[w:]) if w >= k else 0.0 for w in wrong]
    return 1 - np.array(misses)


@dataclass(frozen=True)
class EvaluationRecord:
    """One completion, and whether it is right."""

    problem_id: str
    question: str
    answer: str
    completion: str
    tokens: int
    stop_reason: StopReason
    correct: bool


@dataclass(frozen=True)
class EvaluationResult:
    """The result of an evaluation. The keys of `pass_at` are the powers of two up to k, and k itself."""

    avg_at_k: Estimate
    pass_at: dict[int, Estimate]
    k: int
    problems: int
    mean_tokens: float
    truncated: float
    """Share of completions that reached the length limit."""
    records: list[EvaluationRecord]

    def summary(self) -> dict[str, Any]:
        """Everything but the records, as JSON values."""
        return {
            "problems": self.problems,
            "k": self.k,
            f"avg@{self.k}": asdict(self.avg_at_k),
            **{f"pass@{k}": asdict(estimate) for k, estimate in self.pass_at.items()},
            "mean_tokens": self.mean_tokens,
            "truncated": self.truncated,
        }


class Encoder(Protocol):
    """Turns a problem into the token ids of its prompt."""

    def encode(self, problem: Problem) -> list[int]: ...


def evaluate(
    sampler: Sampler,
    encoder: Encoder,
    problems: Sequence[Problem],
    is_correct: Callable[[Problem, str], bool],
    params: SamplingParams = EVALUATION_PARAMS,
    k: int = 8,
    seed: int = 0,
    batch_size: int = 32,
    progress: Callable[[int, int], None] | None = None,
) -> EvaluationResult:
    """Sample k completions for every problem and label their texts with `is_correct(problem, text)`.

    `batch_size` is a number of problems. It changes which completions a seed gives, but not their distribution.
    `progress(done, total)` is called after every batch and counts problems.

    Raises:
        InputError: no problems.
    """
    if not problems:
        raise InputError("there are no problems to evaluate on")
    records: list[EvaluationRecord] = []
    for start in range(0, len(problems), batch_size):
        batch = problems[start : start + batch_size]
        prompts = [encoder.encode(problem) for problem in batch]
        # Each batch has its own seed, because equal prompts in two batches must not get equal completions.
        samples = sampler.sample(prompts, k, params, seed=_batch_seed(seed, start))
        for row, answer in enumerate(samples.answers()):
            records.append(_record(batch[row // k], answer, is_correct))
        if progress is not None:
            progress(start + len(batch), len(problems))
    return summarise(records, k)


def relabel(
    result: EvaluationResult,
    problems: Sequence[Problem],
    is_correct: Callable[[Problem, str], bool],
) -> EvaluationResult:
    """The result for the same completions with labels from another `is_correct`, such as gold instead of the rule."""
    by_id = {problem.id: problem for problem in problems}
    records = [
        replace(record, correct=bool(is_correct(by_id[record.problem_id], record.completion)))
        for record in result.records
    ]
    return summarise(records, result.k)


def difference(first: EvaluationResult, second: EvaluationResult) -> Estimate:
    """How much higher avg@k is in `second`, over the problems of both; see `paired_difference`.

    Raises ValueError if the results are not of the same problems in the same order.
    """
    by_problem = []
    for result in (first, second):
        correct = np.array([record.correct for record in result.records]).reshape(-1, result.k)
        by_problem.append(avg_at_k(correct))
    ids = [[record.problem_id for record in result.records[:: result.k]] for result in (first, second)]
    if ids[0] != ids[1]:
        raise ValueError("the two results are not of the same problems")
    return paired_difference(*by_problem)


def _batch_seed(seed: int, start: int) -> int:
    return int(np.random.SeedSequence([seed, start]).generate_state(1)[0])


def _record(problem: Problem, answer: Answer, is_correct: Callable[[Problem, str], bool]) -> EvaluationRecord:
    return EvaluationRecord(
        problem_id=problem.id,
        question=problem.question,
        answer=problem.answer,
        completion=answer.text,
        tokens=answer.tokens or 0,
        stop_reason="stop" if answer.stopped else "length",
        correct=bool(is_correct(problem, answer.text)),
    )


def summarise(records: Sequence[EvaluationRecord], k: int) -> EvaluationResult:
    """Statistics of labelled completions; `records` has k consecutive ones for each problem."""
    correct = np.array([record.correct for record in records]).reshape(-1, k)
    return EvaluationResult(
        avg_at_k=Estimate.of(avg_at_k(correct), k),
        pass_at={size: Estimate.of(pass_at_k(correct, size), k / size) for size in _sizes(k)},
        k=k,
        problems=len(correct),
        mean_tokens=float(np.mean([record.tokens for record in records])),
        truncated=float(np.mean([record.stop_reason == "length" for record in records])),
        records=list(records),
    )


def _sizes(k: int) -> list[int]:
    return sorted({1 << power for power in range(k.bit_length())} | {k})
