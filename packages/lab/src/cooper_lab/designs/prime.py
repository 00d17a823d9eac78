"""PRIME: an implicit reward model pays every token, and learns from the verdicts in every step.

Cui et al. 2025 (arXiv 2502.01456, P; official code and verl's `recipe/prime`, C, read for this). With r_t the implicit
reward of token t (`implicit.py`) and O the rule's verdict in {0, 1}:

    A_t = sum_{s >= t} (r_s - baseline) + RLOO(O).

- `paper`: the baseline is the mean of the other completions' mean rewards.
- `verl`: n/(n-1) r_s - (sum of all mean rewards)/(n-1), which has the same total over the group, on other tokens; the
  last token is not paid; before that, rewards are divided by the step's largest return, so beta cancels.

The reward model learns before it scores (`cooptimization.before_policy: 0`, verl) or after (`null`, the first code).
Published defaults: beta .05, learning rates 1e-6 (reward model) and 5e-7 (policy), 4 samples, problems of success .2 to
.8. The codes whiten the advantages over tokens; here they are not, since Adam undoes a common factor. There is no
success filter, which would need more samples.

Silence: the codes label such an answer 0, so its tokens become less likely (`outcomes`, `silent: wrong`). Our arms
learn nothing from it (`left_out`), and pay it by the process reward alone (reward `outcome`, `silent: paid`) or not at
all (`unpaid`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from cooper_base.data.text import has_content
from cooper_lab.designs.implicit import rows_of
from cooper_lab.designs.outcome import OutcomeAdvantages
from cooper_rl import LabelledCompletion, MadePairs, PairSource, PairSourceConfig, RewardConfig, Scores
from cooper_rl.policy.advantages import ADVANTAGES, AdvantageConfig, AdvantagesWithMetrics, TokenCredit
from cooper_rl.policy.estimators import RLOO
from cooper_rl.records import Column
from cooper_rl.reward.base import REWARDS
from cooper_rl.reward.pairs.base import PAIRS

if TYPE_CHECKING:
    from cooper_rl import Completions, PairGroup, PairInputs, Ragged, RunConfig, StepContext
    from cooper_rl.records import Rollouts

Rows = list[np.ndarray]
"""One number for each token of each completion."""


@PAIRS.register
class Outcomes(PairSourceConfig):
    """Every completion with the rule's verdict as its label: 1 for `correct`, 0 for any other. No pairs."""

    kind: Literal["outcomes"] = "outcomes"
    silent: Literal["left_out", "wrong"] = "left_out"
    """Where the rule is silent: no label, or 0 as in the published code."""

    def build(self, inputs: PairInputs) -> OutcomeSource:
        return OutcomeSource(self)


class OutcomeSource(PairSource):
    """See `Outcomes`."""

    def __init__(self, config: Outcomes) -> None:
        self._config = config

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        learned = [
            LabelledCompletion(group.problem.question, group.problem.answer, text, float(verdict == "correct"))
            for group in groups
            for text, verdict in zip(group.texts, group.verdicts, strict=True)
            if has_content(text) and (verdict != "silent" or self._config.silent == "wrong")
        ]
        return MadePairs([], labelled=learned)


@REWARDS.register
class OutcomeReward(RewardConfig):
    """1 for an answer that the rule calls correct, 0 for any other, for a run whose tokens are paid besides."""

    compares_answers: ClassVar[bool] = False
    kind: Literal["outcome"] = "outcome"
    silent: Literal["paid", "unpaid"] = "paid"
    """Where the rule is silent: 0, so that only what its tokens earn counts, or no opinion, so that nothing does."""

    def score(self, context: StepContext) -> Scores:
        paid = context.correct
        if self.silent == "paid":
            paid = paid.like(paid.flat.nan_to_num(nan=0.0).where(~context.passed_over.flat, math.nan))
        return Scores(paid, {"rule": context.correct})


@ADVANTAGES.register
class Prime(OutcomeAdvantages):
    """The returns of the implicit reward model's token rewards, beside the advantages of the outcome."""

    metric_names: ClassVar[tuple[str, ...]] = ("process/token_reward", "process/largest_return")
    reads_model: ClassVar[bool] = True
    kind: Literal["prime"] = "prime"
    outcome: Annotated[AdvantageConfig, ADVANTAGES] = RLOO()
    """The estimator of the advantages of the finished reward, which is the outcome."""
    form: Literal["paper", "verl"] = "paper"
    """Which baseline, and whether the rewards are divided by the largest return of the step."""
    weight: float = Field(default=1.0, ge=0)
    """Factor of the process advantages."""

    def check_run(self, config: RunConfig) -> None:
        """Raises ValueError for a reward model that has no token rewards, and for rollouts in an environment."""
        kind = ADVANTAGES.kind_of(self)
        if config.engine.reward_model_has_head:
            raise ValueError(f"advantages of kind {kind} pay tokens by an implicit reward model; set engine: implicit")
        if config.rollout.environment:
            raise ValueError(f"advantages of kind {kind} pay one text's tokens; leave out rollout.environment")
        super().check_run(config)

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> AdvantagesWithMetrics:
        return self.of_outcome(rewards, completions)

    def token_credit(self, model: Any, rollouts: Rollouts, decode: Callable[[Sequence[int]], str]) -> TokenCredit:
        """The process advantage of every sampled token; see `returns`."""
        asked = [(problem.question, problem.answer, "?") for problem in rollouts.problems]
        prompts = [model.learner.prompt_of(row) for row in model.encoder.encode_all(asked)]
        rows = zip(rollouts.problem_of.tolist(), rollouts.token_ids, strict=True)
        sequences = Column.of([[*prompts[p], *tokens.tolist()] for p, tokens in rows])
        lengths = rollouts.token_ids.lengths
        rewards = model.learner.token_rewards(sequences, lengths)
        found = self.returns(rows_of(rewards.astype(np.float64), lengths), rollouts.group_sizes.tolist())
        largest = max((float(np.abs(row).max(initial=0.0)) for row in found), default=0.0)
        metrics = {"process/token_reward": float(rewards.mean()), "process/largest_return": largest}
        return TokenCredit([self.weight * row for row in found], metrics)

    def returns(self, rewards: Rows, sizes: Sequence[int]) -> Rows:
        """The process advantages of all tokens, in groups of these sizes."""
        if self.form == "paper":
            return returns_of_paper(rewards, sizes)
        paid = [np.where(np.arange(len(row)) < len(row) - 1, row, 0.0) for row in rewards]
        largest = max((float(np.abs(to_go(row)).max(initial=0.0)) for row in paid), default=0.0)
        return returns_of_code([row / (largest + 1e-6) for row in paid], sizes)


def returns_of_paper(rewards: Rows, sizes: Sequence[int]) -> Rows:
    """sum_{s >= t} (r_s - mean of the others' mean rewards). A completion that is alone in its group has 0."""
    return _returns(rewards, sizes, lambda row, own, total, n: row - (total - own) / (n - 1))


def returns_of_code(rewards: Rows, sizes: Sequence[int]) -> Rows:
    """sum_{s >= t} (n r_s - sum of all mean rewards) / (n - 1). A completion that is alone in its group has 0."""
    return _returns(rewards, sizes, lambda row, own, total, n: (n * row - total) / (n - 1))


def to_go(row: np.ndarray) -> np.ndarray:
    """The sum from each place to the end."""
    return np.cumsum(row[::-1])[::-1]


def _returns(rewards: Rows, sizes: Sequence[int], centred: Callable[..., np.ndarray]) -> Rows:
    found, start = [], 0
    for size in sizes:
        group = rewards[start : start + size]
        means = [float(row.mean()) if len(row) else 0.0 for row in group]
        alone = size < 2
        for row, own in zip(group, means, strict=True):
            found.append(np.zeros(len(row)) if alone else to_go(centred(row, own, sum(means), size)))
        start += size
    return found
