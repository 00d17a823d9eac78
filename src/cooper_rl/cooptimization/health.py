"""The reward model's health while it learns: agreement with the rule, and drift on a fixed probe set."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor, tensor

from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.rewards.model.input import RewardModelInput
from cooper_rl.rollouts.answers import AnswerGroup

PROBES = 64


def agreement(scores_PN: Float[Tensor, "P N"], verdicts: Sequence[Sequence[str]]) -> Metrics:
    """How the reward model's yes (score above 1/2) compares with the rule's verdict, where the rule has one.

    `reward_model/false_accept_rate` is its share of yes among rule-wrong completions: the hole a policy hacks
    through. `reward_model/true_accept_rate` is the same among rule-correct ones.
    """
    accepted = {"correct": [], "wrong": []}
    for scores, row in zip(scores_PN.tolist(), verdicts, strict=True):
        for score, verdict in zip(scores, row, strict=True):
            if verdict in accepted:
                accepted[verdict].append(score > 0.5)
    right = sum(accepted["correct"]) + sum(not yes for yes in accepted["wrong"])
    metrics: Metrics = {}
    if judged := len(accepted["correct"]) + len(accepted["wrong"]):
        metrics["reward_model/rule_agreement"] = right / judged
    if accepted["wrong"]:
        metrics["reward_model/false_accept_rate"] = sum(accepted["wrong"]) / len(accepted["wrong"])
    if accepted["correct"]:
        metrics["reward_model/true_accept_rate"] = sum(accepted["correct"]) / len(accepted["correct"])
    return metrics


@dataclass
class ProbeSet:
    """Completions of the first step, scored again at every step: what changes is the reward model alone."""

    texts: list[tuple[str, str, str]] = field(default_factory=list)
    """(question, reference answer, completion)."""
    first_scores: list[float] = field(default_factory=list)

    def measure(self, learner: RewardModelLearner, encoder: RewardModelInput, groups: Sequence[AnswerGroup]) -> Metrics:
        """Score drift in [0, 1]: the mean absolute and the mean signed change since the first step."""
        if not self.texts:
            self.texts = [
                (group.problem.question, group.problem.answer, completion.text)
                for group in groups
                for completion in group.answers[:2]
            ][:PROBES]
        scores = learner.score([encoder.encode(*text) for text in self.texts]).double().sigmoid()
        self.first_scores = self.first_scores or scores.tolist()
        change = scores - tensor(self.first_scores, dtype=scores.dtype)
        return {
            "reward_model/probe_drift": change.abs().mean().item(),
            "reward_model/probe_shift": change.mean().item(),
        }

    def state(self) -> dict[str, Any]:
        """JSON values for a checkpoint."""
        return {"texts": self.texts, "first_scores": self.first_scores}

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what `state` returned."""
        self.texts = [(question, answer, completion) for question, answer, completion in state["texts"]]
        self.first_scores = list(state["first_scores"])
