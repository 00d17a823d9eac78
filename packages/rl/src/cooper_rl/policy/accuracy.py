"""Accuracy of a policy: avg@k and pass@k with confidence intervals, for any sampler; and intervals of other means."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from cooper_audit.statistics import Estimate, avg_at_k, maj_at_k, paired_difference, pass_at_k
from cooper_base.config.user_functions import load_function
from cooper_base.data.problem import Problem
from cooper_base.data.verdict import is_right
from cooper_base.errors import InputError
from cooper_base.files.hashes import content_hash
from cooper_base.progress import part
from cooper_rl.engines.config import SamplingParams, StopReason
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.rules.other_answers import stated_answers

if TYPE_CHECKING:
    from cooper_rl.data.prompts import PromptEncoder
    from cooper_rl.engines.base import Metrics, Sampler
    from cooper_rl.policy.environments.rounds import Rounds
    from cooper_verify.rules.verifier import Verifier

Gold = Callable[[Problem, str], bool]
Judge = Callable[[Problem, str], bool | None]
"""Whether a completion is right; None if nothing has judged it."""


@dataclass(frozen=True)
class EvaluationRecord:
    """One completion, and whether it is right: None where the rule is silent."""

    problem_id: str
    question: str
    answer: str
    completion: str
    tokens: int
    stop_reason: StopReason
    correct: bool | None


@dataclass(frozen=True)
class EvaluationResult:
    """Accuracies over the problems that were judged; NaN if there are none.

    The keys of `pass_at` are the powers of two up to k, and k itself. A problem counts in `pass_at[n]` if at least n of
    its completions were judged.
    """

    avg_at_k: Estimate
    maj_at_k: Estimate
    """Accuracy of the answer that most of the k completions state."""
    pass_at: dict[int, Estimate]
    k: int
    problems: int
    judged: int
    """Problems of which at least one completion was judged."""
    mean_tokens: float
    truncated: float
    """Share of completions that reached the length limit."""
    records: list[EvaluationRecord]


def evaluate(
    sampler: "Sampler",
    encode: Callable[[Problem], list[int]],
    problems: Sequence[Problem],
    is_correct: Judge,
    params: SamplingParams = SamplingParams(temperature=0.7, top_p=0.95, max_tokens=2048),  # noqa: B008 - frozen
    k: int = 8,
    seed: int = 0,
    batch_size: int = 32,
    progress: Callable[[int, int], None] | None = None,
    rounds: "Rounds | None" = None,
) -> EvaluationResult:
    """Sample k completions for every problem and label their texts with `is_correct(problem, text)`.

    The defaults are the paper's protocol (arXiv 2508.05613). `batch_size` is a number of problems; it changes which
    completions a seed gives, but not their distribution. `progress(done, total)` counts problems. With `rounds`, the
    completions are rollouts in an environment; if the environment gives a verdict, that decides. A completion without a
    label (None) counts in no accuracy. Raises InputError without problems.
    """
    if not problems:
        raise InputError("there are no problems to evaluate on")
    records = []
    for start in range(0, len(problems), batch_size):
        batch = problems[start : start + batch_size]
        # Each batch has its own seed, because equal prompts in two batches must not get equal completions.
        own_seed = int(np.random.SeedSequence([seed, start]).generate_state(1)[0])
        with part(f"{start}/{len(problems)} problems"):
            if rounds is None:
                samples = sampler.sample([encode(problem) for problem in batch], k, params, seed=own_seed)
            else:
                samples = rounds.draw(sampler, batch, k, params, own_seed).samples
        for row, answer in enumerate(samples.answers()):
            problem, reason = batch[row // k], "stop" if answer.stopped else "length"
            what = problem.id, problem.question, problem.answer, answer.text, answer.tokens or 0, reason
            right = is_correct(problem, answer.text) if answer.verdict is None else is_right(answer.verdict)
            records.append(EvaluationRecord(*what, right))
        if progress is not None:
            progress(start + len(batch), len(problems))
    return summarise(records, k)


def relabel(result: EvaluationResult, problems: Sequence[Problem], is_correct: Gold) -> EvaluationResult:
    """The result for the same completions with labels from another `is_correct`, such as gold instead of the rule."""
    by_id = {problem.id: problem for problem in problems}
    right = [bool(is_correct(by_id[record.problem_id], record.completion)) for record in result.records]
    return summarise(
        [replace(record, correct=yes) for record, yes in zip(result.records, right, strict=True)], result.k
    )


def difference(first: EvaluationResult, second: EvaluationResult) -> Estimate:
    """How much higher avg@k is in `second`, on the problems that were judged in both; NaN if there are none.

    Raises ValueError if the problems or their order are not the same.
    """
    ids = [[record.problem_id for record in result.records[:: result.k]] for result in (first, second)]
    if ids[0] != ids[1]:
        raise ValueError("the two results are not of the same problems")
    shares = [_shares(result) for result in (first, second)]
    in_both = ~np.isnan(shares).any(axis=0)
    return paired_difference(*(share[in_both] for share in shares)) if in_both.any() else Estimate.of(shares[0][:0])


def _by_problem(records: Sequence[EvaluationRecord], k: int) -> list[list[EvaluationRecord]]:
    """The completions of each problem that were judged."""
    rows = [records[start : start + k] for start in range(0, len(records), k)]
    return [[record for record in row if record.correct is not None] for row in rows]


def _right(row: Sequence[EvaluationRecord]) -> Bool[ndarray, "1 n"]:
    return np.array([[record.correct for record in row]], dtype=bool)


def _shares(result: EvaluationResult) -> Float[ndarray, " P"]:
    """The share of each problem's judged completions that are right; NaN without any."""
    rows = _by_problem(result.records, result.k)
    return np.array([avg_at_k(_right(row))[0] if row else math.nan for row in rows])


def summarise(records: Sequence[EvaluationRecord], k: int) -> EvaluationResult:
    """Statistics of labelled completions; `records` has k consecutive ones for each problem."""
    judged = [row for row in _by_problem(records, k) if row]
    stated = iter(stated_answers([record.completion for row in judged for record in row]))
    votes = [maj_at_k([[next(stated) or None for _ in row]], _right(row))[0] for row in judged]
    sizes = sorted({1 << power for power in range(k.bit_length())} | {k})
    passed = {size: [pass_at_k(_right(row), size)[0] for row in judged if len(row) >= size] for size in sizes}
    return EvaluationResult(
        avg_at_k=Estimate.of(np.array([avg_at_k(_right(row))[0] for row in judged]), k),
        maj_at_k=Estimate.of(np.array(votes)),
        pass_at={size: Estimate.of(np.array(values), k / size) for size, values in passed.items()},
        k=k,
        problems=len(records) // k,
        judged=len(judged),
        mean_tokens=float(np.mean([record.tokens for record in records])),
        truncated=float(np.mean([record.stop_reason == "length" for record in records])),
        records=list(records),
    )


@dataclass(frozen=True)
class HeldOut:
    """Test problems, and the settings for evaluating a policy on them."""

    problems: list[Problem]
    encoder: "PromptEncoder"
    params: SamplingParams
    k: int
    batch_size: int
    gold: Gold | None
    name: str = ""
    """The part of the metrics' names that distinguishes a further set from the main one."""
    rounds: "Rounds | None" = None
    """Samples the completions in an environment, if there is one."""

    def evaluate(
        self, sampler: "Sampler", verifier: "Verifier", seed: int, on_progress: Callable[[int, int], None] | None = None
    ) -> dict[str, EvaluationResult]:
        """Sample k completions per problem; label them with the `rule` and, where the problems have it, with `gold`."""
        what = self.encoder.encode, self.problems, verifier.accepts, self.params, self.k
        by_rule = evaluate(sampler, *what, seed, self.batch_size, on_progress, self.rounds)
        by_gold = {} if self.gold is None else {"gold": relabel(by_rule, self.problems, self.gold)}
        return {"rule": by_rule} | by_gold

    def metrics(self, results: Mapping[str, EvaluationResult]) -> "Metrics":
        """Mean accuracy over k samples per problem, as `test/rule_avg` and, where gold is known, `test/gold_avg`.

        `test/cut_off_rate` is the share of completions that reached the length limit. A set with a name has it in
        between, as in `test/svamp/rule_avg`. If the rule is silent on some problems, its accuracy is that on the
        others, whose share is `test/heard`; gold is also given for both parts, as `test/gold_avg_heard` and
        `test/gold_avg_silent`.
        """
        prefix = f"test/{self.name}/" if self.name else "test/"
        metrics = {f"{prefix}{name}_avg": result.avg_at_k.mean for name, result in results.items() if result.judged}
        by_rule = results["rule"]
        if by_rule.judged < by_rule.problems:
            metrics[f"{prefix}heard"] = by_rule.judged / by_rule.problems
            heard = ~np.isnan(_shares(by_rule))
            for where, some in {"heard": heard, "silent": ~heard}.items() if "gold" in results else ():
                if some.any():
                    metrics[f"{prefix}gold_avg_{where}"] = float(_shares(results["gold"])[some].mean())
        return metrics | {f"{prefix}cut_off_rate": by_rule.truncated}


def shares_of(results: Mapping[str, EvaluationResult]) -> dict[str, Any]:
    """The share of each problem's completions that are right by each label, None where none was judged, and a hash of
    the problems, as JSON values: evaluations of the same problems can be paired.
    """
    first = next(iter(results.values()))
    ids = content_hash(json.dumps([record.problem_id for record in first.records[:: first.k]]).encode())
    shares = {labeller: _shares(result) for labeller, result in results.items()}
    rounded = {
        labeller: [None if math.isnan(share) else round(float(share), 4) for share in values]
        for labeller, values in shares.items()
    }
    return {"problems": ids} | rounded


def gold_of(problems: ProblemsConfig) -> Gold | None:
    """The gold label of answers to these problems, if they have one."""
    return load_function(problems.gold, ("problem", "completion_text")) if problems.gold else None
