"""Process credit: advantages that add, to those of the finished reward, the credit of the steps of a completion."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from cooper_lab.designs.outcome import OutcomeAdvantages
from cooper_rl import Answer, AnswerGroup
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.policy.advantages import ADVANTAGES, AdvantagesWithMetrics, TokenCredit

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from cooper_rl import Completions, Ragged, RewardModel, RunConfig
    from cooper_rl.records import Rollouts


Span = tuple[int, int]
Decode = Callable[[Sequence[int]], str]
"""The text of token ids, without special tokens."""


@dataclass(frozen=True)
class Steps:
    """The steps of one completion: step k has the tokens `spans[k][0]` up to, but not including, `spans[k][1]`.

    Spans are in order and do not overlap. `rewards` holds a reward in [-1, 1] for each step.
    """

    spans: Sequence[Span]
    rewards: Float[Tensor, " S"]


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


class MinForm(ProcessCredit):
    """softmax(-r / temperature)_k r_k: the sum over the steps is close to the smallest reward.

    PURE (Cheng et al. 2025, arXiv 2504.15275). Further good steps add nothing, so a solution gains nothing by having
    more of them. At high temperatures it is the mean.
    """

    temperature: float = Field(default=0.1, gt=0)
    """How little the worst step stands out, in units of the reward."""

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        return (-rewards / self.temperature).softmax(dim=0) * rewards


class Delta(ProcessCredit):
    """r_k - r_(k+1), and the reward itself for the last step: the return from step k on is its own reward r_k.

    Gao et al. 2024 (arXiv 2410.15115; formula from memory and reviews). However many steps follow, none of them can add
    to a return.
    """

    def credit(self, rewards: Float[Tensor, " S"]) -> Float[Tensor, " S"]:
        credit = rewards.clone()
        credit[:-1] -= rewards[1:]
        return credit


class Sum(ProcessCredit):
    """discount^k r_k, the baseline of PURE (arXiv 2504.15275). It is hacked by adding steps that score well."""

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


def score_steps(model: RewardModel, rollouts: Rollouts, decode: Decode, separator: str) -> list[Steps]:
    """The steps of every completion with their rewards 2 sigmoid(logit) - 1, where the logit is that of the completion
    up to the step's end. It costs one row to score for each step."""
    import torch  # noqa: PLC0415 - configuration records do without it

    texts = [split_steps(text, separator) for text in rollouts.texts]
    groups = []
    for problem, start, end in zip(rollouts.problems, rollouts.offsets[:-1], rollouts.offsets[1:], strict=True):
        prefixes = [Answer(rollouts.texts[i][:stop]) for i in range(start, end) for _, stop in texts[i]]
        groups.append(AnswerGroup(problem.id, problem, prefixes))
    logits = model.logits(groups).flat.double() if any(texts) else torch.zeros(0, dtype=torch.float64)
    rewards = (2 * logits.sigmoid() - 1).split([len(spans) for spans in texts])
    return [
        Steps(token_spans(token_ids.tolist(), spans, decode), of_completion)
        for token_ids, spans, of_completion in zip(rollouts.token_ids, texts, rewards, strict=True)
    ]


def split_steps(text: str, separator: str) -> list[Span]:
    """Where the steps of a text begin and end, without separators around them. Blank steps are left out."""
    spans, start = [], 0
    for piece in text.split(separator):
        if piece.strip():
            spans.append((start, start + len(piece)))
        start += len(piece) + len(separator)
    return spans


def token_spans(token_ids: Sequence[int], spans: Sequence[Span], decode: Decode) -> list[Span]:
    """The tokens of each step, from its characters.

    A token that belongs to a step and to the separator after it counts to the step. The last step takes all tokens that
    follow, among them the end of the sequence.
    """

    @cache
    def characters(tokens: int) -> int:
        return len(decode(token_ids[:tokens]))

    of_tokens: list[Span] = []
    for number, (start, end) in enumerate(spans, 1):
        # The first token that ends beyond the step's first character, and the first that begins at its end or later.
        first = bisect_left(range(1, len(token_ids) + 1), start + 1, key=characters)
        last = bisect_left(range(len(token_ids) + 1), end, key=characters)
        first = max(first, of_tokens[-1][1] if of_tokens else 0)
        of_tokens.append((first, max(first, len(token_ids) if number == len(spans) else last)))
    return of_tokens
