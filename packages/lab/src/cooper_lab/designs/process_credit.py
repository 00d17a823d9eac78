"""Process credit: advantages that add, to those of the finished reward, the credit of the steps of a completion."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from cooper_lab.designs.outliers import OutcomeAdvantages
from cooper_lab.designs.steps import score_steps
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.policy.advantages import ADVANTAGES, AdvantagesWithMetrics
from cooper_rl.policy.token_credit import TokenCredit

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_lab.designs.steps import Decode, Steps
    from cooper_rl import Completions, Ragged, RewardModel, RunConfig
    from cooper_rl.records import Rollouts


class ProcessCredit(OutcomeAdvantages):
    """Settings that all kinds share. Each kind implements `credit`."""

    metric_names: ClassVar[tuple[str, ...]] = ("process/steps", "process/step_reward", "process/lowest_step")
    model: ScorerConfig | None = None
    """A reward model that does not learn; null takes the run's own. It reads a completion up to the end of each step,
    so it must have been trained to judge unfinished solutions. A VerifyRM has not: it rejects what has no final answer
    yet."""
    separator: str = Field(default="\n\n", min_length=1)
    """The text between two steps. Blank steps are left out, and tokens of separators get no process advantage."""
    outcome_weight: float = Field(default=1.0, ge=0)
    """Factor of the advantages of the finished reward, to which those of the process are added. With 0 only the
    process counts."""

    @abstractmethod
    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        """The credit of each of a completion's S steps, from their rewards in [-1, 1] (float64)."""

    @property
    def reads_model(self) -> bool:
        return self.model is None

    @cached_property
    def _scorer(self) -> RewardModel | None:
        from cooper_rl import load_scorer  # noqa: PLC0415 - configuration records do without torch

        return None if self.model is None else load_scorer(self.model)

    def check_run(self, config: RunConfig) -> None:
        """Raises ValueError for rollouts in an environment, which are not one text."""
        if config.rollout.environment:
            kind = ADVANTAGES.kind_of(self)
            raise ValueError(f"advantages of kind {kind} divide one text into steps; leave out rollout.environment")
        super().check_run(config)

    def advantages(self, rewards: Ragged, completions: Completions | None = None) -> AdvantagesWithMetrics:
        outcome = self.of_outcome(rewards, completions)
        return AdvantagesWithMetrics(rewards.like(self.outcome_weight * outcome.advantages.flat), outcome.metrics)

    def token_credit(self, model: RewardModel | None, rollouts: Rollouts, decode: Decode) -> TokenCredit:
        """The advantages of all tokens; see `process_advantages`."""
        scorer = self._scorer or model
        assert scorer is not None, "a run whose advantages read the reward model has one"
        steps = score_steps(scorer, rollouts, decode, self.separator)
        lengths, sizes = rollouts.token_ids.lengths.tolist(), rollouts.group_sizes.tolist()
        return TokenCredit(process_advantages(steps, sizes, lengths, self), process_metrics(steps))


@ADVANTAGES.register
class MinForm(ProcessCredit):
    """softmax(-r / temperature)_k r_k: the sum over the steps is close to the smallest reward.

    PURE (Cheng et al. 2025, arXiv 2504.15275). Further good steps add nothing, so a solution gains nothing by having
    more of them. At high temperatures it is the mean.
    """

    kind: Literal["min_form"] = "min_form"
    temperature: float = Field(default=0.1, gt=0)
    """How little the worst step stands out, in units of the reward."""

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        return (-rewards / self.temperature).softmax(dim=0) * rewards


@ADVANTAGES.register
class Delta(ProcessCredit):
    """r_k - r_(k+1), and the reward itself for the last step: the return from step k on is its own reward r_k.

    Gao et al. 2024 (arXiv 2410.15115; formula from memory and reviews). However many steps follow, none of them can add
    to a return.
    """

    kind: Literal["delta"] = "delta"

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        credit = rewards.clone()
        credit[:-1] -= rewards[1:]
        return credit


@ADVANTAGES.register
class Sum(ProcessCredit):
    """discount^k r_k, the baseline of PURE (arXiv 2504.15275). It is hacked by adding steps that score well."""

    kind: Literal["sum"] = "sum"
    discount: float = Field(default=1.0, gt=0, le=1)
    """Factor per step, counted from the first."""

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        return rewards * self.discount ** rewards.new_tensor(range(len(rewards)))


def process_advantages(
    steps: Sequence[Steps], sizes: Sequence[int], lengths: Sequence[int], config: ProcessCredit
) -> list[Float[np.ndarray, " T"]]:
    """For each completion, the advantage of each of its tokens. `sizes` and `lengths` are those of groups and rows.

    With credit c_k and n_k tokens in step k, a token of step k has the sum of c_m - b n_m over m >= k, where b is the
    credit per token of the other completions of the group. This baseline is that of PURE's code (arXiv 2504.15275),
    whose authors found that one per step makes the policy avoid separators. Tokens outside all steps have 0, and so has
    a completion that is alone in its group, and a group with a reward that is not finite.
    """
    token_credits = [np.zeros(length) for length in lengths]
    rows = iter(zip(token_credits, steps, strict=True))
    for group in [list(islice(rows, size)) for size in sizes]:
        if len(group) < 2 or not all(bool(steps_of_row.rewards.isfinite().all()) for _, steps_of_row in group):
            continue
        credits = [
            config.credit(steps_of_row.rewards.double()).numpy() if len(steps_of_row.spans) else np.zeros(0)
            for _, steps_of_row in group
        ]
        tokens = [np.array([end - first for first, end in steps_of_row.spans], float) for _, steps_of_row in group]
        credit_of_all, tokens_of_all = sum(map(np.sum, credits)), sum(map(np.sum, tokens))
        for (row, steps_of_row), credit, counts in zip(group, credits, tokens, strict=True):
            others = tokens_of_all - counts.sum()
            rate = (credit_of_all - credit.sum()) / others if others else 0.0
            to_go = np.cumsum((credit - rate * counts)[::-1])[::-1]
            for (first, end), advantage in zip(steps_of_row.spans, to_go, strict=True):
                row[first:end] = advantage
    return token_credits


def process_metrics(steps: Sequence[Steps]) -> dict[str, float]:
    """`process/steps`: steps per completion. `process/step_reward`: their mean. `process/lowest_step`: the mean over
    completions of their lowest. NaN without any step."""
    import torch  # noqa: PLC0415 - as above

    rewards = [row_steps.rewards for row_steps in steps if len(row_steps.rewards)]
    everything = torch.cat(rewards) if rewards else torch.tensor([float("nan")])
    lowest = torch.stack([row.min() for row in rewards]) if rewards else everything
    return {
        "process/steps": sum(len(row_steps.spans) for row_steps in steps) / max(1, len(steps)),
        "process/step_reward": everything.mean().item(),
        "process/lowest_step": lowest.mean().item(),
    }
