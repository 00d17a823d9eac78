"""The reward made of the rule verifier's verdicts."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import torch

from cooper_rl.rewards.base import Scores
from cooper_rl.rewards.rule.verdict import Verdict
from cooper_rl.rollouts.answers import AnswerGroup


class GroupVerifier(Protocol):
    """What gives verdicts on groups: a run's `Verifier`, or `RuleVerifier` by itself."""

    def verify_groups(self, groups: Sequence[AnswerGroup]) -> list[list[Verdict]]: ...


class RuleReward:
    """1 for a completion the rule calls correct, 0 for every other."""

    def __init__(self, verifier: GroupVerifier) -> None:
        self._verifier = verifier

    def score(self, groups: Sequence[AnswerGroup]) -> Scores:
        """Part `rule`; metrics `rule/accuracy`, `rule/unparsed`, `rule/timeout`, as fractions of all completions."""
        return rule_scores(self._verifier.verify_groups(groups))


def rule_scores(verdicts: Sequence[Sequence[Verdict]]) -> Scores:
    """Scores of verdicts already at hand, P groups of N."""
    rewards = torch.tensor([[float(verdict == "correct") for verdict in row] for row in verdicts])
    counts = Counter(verdict for row in verdicts for verdict in row)
    total = max(1, counts.total())
    metrics = {"rule/accuracy": counts["correct"] / total}
    metrics |= {f"rule/{name}": counts[name] / total for name in ("unparsed", "timeout")}
    return Scores(rewards, {"rule": rewards}, metrics)
