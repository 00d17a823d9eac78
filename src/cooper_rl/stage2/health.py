"""The reward model's health while it learns: agreement with the rule, and drift on a fixed probe set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import tensor

from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.rewards.context import StepContext
from cooper_rl.rewards.input import RewardModelInput
from cooper_rl.rollouts import AnswerGroup, Ragged

PROBES = 64


def step_health(context: StepContext, parts: Mapping[str, Ragged]) -> Metrics:
    """Metrics of the rule's verdicts, of every reward model in `parts` and, if there are gold labels, of gold.

    Metrics of the first reward model begin with `reward_model/`, those of any other with `reward_model_<name>/`.
    """
    metrics = verdict_metrics(context.verdicts) | metrics_by_rule(context.rule_names, context.verdicts)
    for name, scores in parts.items():
        if name != "reward_model" and not name.startswith("reward_model_"):
            continue
        metrics |= {f"{name}/mean": scores.flat.mean().item(), f"{name}/std": scores.flat.std(correction=0).item()}
        metrics |= {f"{name}/{key}": value for key, value in agreement(scores, context.verdicts).items()}
        if context.gold is not None:
            said_yes = scores.flat > 0.5
            metrics[f"gold/{name}_accuracy"] = (said_yes == context.gold.flat).float().mean().item()
    if context.gold is not None:
        metrics["gold/accuracy"] = context.gold.flat.float().mean().item()
    return metrics


def metrics_by_rule(rules: Sequence[str], verdicts: Sequence[Sequence[str]]) -> Metrics:
    """`rule/<name>_accuracy`, `_unparsed` and `_share` of each rule, if the groups of a step use more than one.

    `rules[p]` is the rule of group p. A `_share` is relative to all completions of the step.
    """
    names = sorted(set(rules))
    if len(names) < 2:
        return {}
    total, metrics = sum(map(len, verdicts)), {}
    for name in names:
        flat = [verdict for rule, row in zip(rules, verdicts, strict=True) if rule == name for verdict in row]
        metrics[f"rule/{name}_accuracy"] = flat.count("correct") / len(flat)
        metrics[f"rule/{name}_unparsed"] = flat.count("unparsed") / len(flat)
        metrics[f"rule/{name}_share"] = len(flat) / total
    return metrics


def verdict_metrics(verdicts: Sequence[Sequence[str]]) -> Metrics:
    """The share of each of the rule's four verdicts."""
    flat = [verdict for row in verdicts for verdict in row]
    names = {"correct": "rule/accuracy", "wrong": "rule/wrong", "unparsed": "rule/unparsed", "timeout": "rule/timeout"}
    return {name: flat.count(verdict) / len(flat) for verdict, name in names.items()}


def agreement(scores: Ragged, verdicts: Sequence[Sequence[str]]) -> Metrics:
    """How the reward model's yes (a score above 1/2) agrees with the rule's verdicts `correct` and `wrong`.

    `false_accept_rate` is the share of yes among rule-wrong completions, which is what a policy exploits when it hacks
    the reward. `true_accept_rate` is the share of yes among rule-correct completions.
    """
    accepted = {"correct": [], "wrong": []}
    for group, row in zip(scores.rows(), verdicts, strict=True):
        for score, verdict in zip(group, row, strict=True):
            if verdict in accepted:
                accepted[verdict].append(score > 0.5)
    right = sum(accepted["correct"]) + sum(not yes for yes in accepted["wrong"])
    metrics: Metrics = {}
    if counted := len(accepted["correct"]) + len(accepted["wrong"]):
        metrics["rule_agreement"] = right / counted
    if accepted["wrong"]:
        metrics["false_accept_rate"] = sum(accepted["wrong"]) / len(accepted["wrong"])
    if accepted["correct"]:
        metrics["true_accept_rate"] = sum(accepted["correct"]) / len(accepted["correct"])
    return metrics


@dataclass
class ProbeSet:
    """Completions of the first step, scored again at every step. Only the reward model can change their scores."""

    texts: list[tuple[str, str, str]] = field(default_factory=list)
    """(question, reference answer, completion)."""
    first_scores: list[float] = field(default_factory=list)

    def measure(self, learner: RewardModelLearner, encoder: RewardModelInput, groups: Sequence[AnswerGroup]) -> Metrics:
        """The mean absolute change (in [0, 1]) and the mean signed change of the scores since the first step."""
        if not self.texts:
            self.texts = [
                (group.problem.question, group.problem.answer, completion.text)
                for group in groups
                for completion in group.answers[:2]
            ][:PROBES]
        if not self.texts:
            return {}
        scores = learner.score(encoder.encode_all(self.texts)).double().sigmoid()
        self.first_scores = self.first_scores or scores.tolist()
        change = scores - tensor(self.first_scores, dtype=scores.dtype)
        return {
            "reward_model/probe_drift": change.abs().mean().item(),
            "reward_model/probe_shift": change.mean().item(),
        }

    def state(self) -> dict[str, Any]:
        """The state as JSON values, for a checkpoint."""
        return {"texts": list(self.texts), "first_scores": list(self.first_scores)}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.texts = [(question, answer, completion) for question, answer, completion in state["texts"]]
        self.first_scores = list(state["first_scores"])
