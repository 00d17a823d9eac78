"""A step's scored answers: what scoring returns, what the update returns, and metrics of health.

Importing this module does not import torch, because the reward's clients use it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from math import isfinite, isnan
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, Self

from cooper_audit.run.kinds import form_of
from cooper_audit.run.table import judged, payment_shares
from cooper_base.data.answer import AnswerGroup
from cooper_base.data.verdict import Verdict
from cooper_base.errors import InputError
from cooper_rl.engines.base import Metrics
from cooper_rl.records import Ragged
from cooper_rl.reward.base import Scores, metrics_of_calls, reward_metrics
from cooper_rl.reward.health import signs_without_verdict
from cooper_rl.reward.pairs.base import Pair
from cooper_verify.rules.rule import verdict_metrics

if TYPE_CHECKING:
    from cooper_rl.reward.context import RewardModel, StepContext
    from cooper_rl.reward.cooptimization import StartedPairs

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scored:
    """The result of a `score` call, in this process or by the service: one list per group, one entry per answer.

    `rewards` are the final rewards, after shaping. `logits` are the reward model's; they are None if there is none.
    `version` is the version of the model that scored. `step` is the step that the groups belong to, None if they are
    not trained on. The service sends NaN for infinity.
    """

    rewards: list[list[float]]
    logits: list[list[float]] | None
    verdicts: list[list[Verdict]]
    version: int
    metrics: Metrics
    step: int | None = None
    breakdown: tuple[StepContext, Scores] | None = field(default=None, repr=False, compare=False)
    """`context` and `scores`; the service does not send them."""
    started_pairs: StartedPairs | None = field(default=None, repr=False, compare=False)
    """The pairs that are being made of these answers."""
    calls: tuple[Scored, ...] = field(default=(), repr=False, compare=False)
    """The calls that this was `joined` from. The update learns from all their groups."""

    @classmethod
    def of(cls, context: StepContext, scores: Scores, version: int, step: int | None = None) -> Self:
        """The answers of `context` with their rewards and metrics."""
        logits = context.logits.rows() if context.has_model else None
        metrics = answer_metrics(context, scores)
        return cls(scores.rewards.rows(), logits, context.verdicts, version, metrics, step, (context, scores))

    @classmethod
    def joined(cls, calls: Sequence[Scored], groups: Sequence[AnswerGroup]) -> Scored:
        """The results of these groups, found by their ids, which were scored in several calls of one step."""
        places = {group.id: (c, p) for c, call in enumerate(calls) for p, group in enumerate(call.context.groups)}
        picked = [places[group.id] for group in groups]
        for c, call in enumerate(calls):
            if picked == [(c, p) for p in range(len(call.context.groups))]:
                return replace(call, calls=tuple(calls))
        picks = [(calls[c], p) for c, p in picked]
        first, answers = picks[0][0], Counter[int]()
        for (c, _), group in zip(picked, groups, strict=True):
            answers[c] += len(group.answers)

        def column(of: Callable[[Scores], Ragged]) -> Ragged:
            return Ragged.picked([(of(call.scores), p) for call, p in picks])

        names = [name for name in first.scores.parts if all(name in call.scores.parts for call, _ in picks)]
        parts = {name: column(lambda scores, name=name: scores.parts[name]) for name in names}
        metrics = metrics_of_calls([(calls[c].scores, count) for c, count in answers.items()])
        context = type(first.context).joined([(call.context, p) for call, p in picks])
        summands = tuple(
            (weight, column(lambda scores, place=place: scores.summands[place][1]))
            for place, (weight, _) in enumerate(first.scores.summands)
        )
        scores = Scores(column(lambda scores: scores.rewards), parts, metrics, summands)
        return replace(cls.of(context, scores, first.version, first.step), calls=tuple(calls))

    def for_all(self) -> list[list[float]]:
        """Rewards for a trainer that cannot leave an answer out. An answer without an opinion (NaN) gets the mean of
        its group, so that it does not move it; 0 if no answer that was scored with it has an opinion."""
        means = [fmean([value for value in row if not isnan(value)] or [0.0]) for row in self.rewards]
        if any(isnan(value) for row in self.rewards for value in row):
            _warn_of_missing_opinions()
        rows = zip(self.rewards, means, strict=True)
        return [[mean if isnan(value) else value for value in row] for row, mean in rows]

    @property
    def context(self) -> StepContext:
        """Verdicts, scores and gold labels of the answers. Raises InputError for answers that the service scored."""
        return self._whole_breakdown[0]

    @property
    def scores(self) -> Scores:
        """The same rewards with all their parts. Raises InputError for answers that the service scored."""
        return self._whole_breakdown[1]

    @property
    def _whole_breakdown(self) -> tuple[StepContext, Scores]:
        if self.breakdown is None:
            raise InputError("the service sends rewards, logits and verdicts only; score in this process for the rest")
        return self.breakdown


@cache
def _warn_of_missing_opinions() -> None:
    logger.warning(
        "there is no opinion on some answers (the rule is silent, a judge failed, a function returned None), and this "
        "trainer cannot leave them out: each is paid the mean of the answers to the same question that were scored "
        "with it, or 0 if there are none (docs/trainers.md). The metric reward/no_opinion has their share"
    )


@dataclass(frozen=True)
class Updated:
    """The result of an update: the step's pairs, with their logits before and after it.

    The service also has steps whose `state` is `open`, `updating` or `failed`, the last with an `error`.
    """

    step: int
    version: int
    pairs: list[Pair] = field(default_factory=list)
    metrics: Metrics = field(default_factory=dict)
    state: Literal["open", "updating", "done", "failed"] = "done"
    error: str | None = None


PROBES = 16
"""Completions of the first step that every step scores again: enough for a chart, and few of the hundreds it scores."""


def answer_metrics(context: StepContext, scores: Scores) -> Metrics:
    """All metrics of these answers and of what they were paid: how often a wrong one is paid like a right one."""
    metrics = reward_metrics(scores) | scores.metrics | step_health(context, scores) | signs_without_verdict(context)
    groups = []
    for group, verdicts, rewards in zip(context.groups, context.verdicts, scores.rewards.rows(), strict=True):
        problem, paid = group.problem, zip(group.answers, verdicts, rewards, strict=True)
        known = [problem.answer], problem.question
        rows = [judged(said, pay, 0.0, one.text, *known, not one.stopped) for one, said, pay in paid]
        right, wrong = ([row.reward for row in rows if row and row.said is so] for so in (True, False))
        groups.append((form_of(problem.answer or ""), right, wrong))
    return metrics | payment_shares(groups)


def step_health(context: StepContext, scores: Scores) -> Metrics:
    """Metrics of the rule's verdicts, of the reward model's scores and, if there are gold labels, of gold.

    If the rule is silent on some answers, means are also given over what it judges (`_heard`) and the rest (`_silent`).
    """
    metrics, gold = verdict_metrics(context.verdicts) | _by_rule(context.rule_names, context.verdicts), context.gold
    means = {"reward/mean": scores.parts.get("unshaped", scores.rewards)}
    if (part := scores.parts.get("reward_model")) is not None:
        means["reward_model/mean"] = part
        metrics |= {
            "reward_model/mean": part.flat.mean().item(),
            "reward_model/std": part.flat.std(correction=0).item(),
            "reward_model/non_finite": 1 - part.flat.isfinite().float().mean().item(),
        }
        metrics |= {f"reward_model/{key}": value for key, value in _agreement(part, context.verdicts).items()}
        if gold is not None:
            metrics["gold/reward_model_accuracy"] = ((part.flat > 0.5) == gold.flat).float().mean().item()
    if gold is not None:
        means["gold/accuracy"] = gold
        metrics["gold/accuracy"] = gold.flat.float().mean().item()
    silent = [verdict == "silent" for row in context.verdicts for verdict in row]
    for where in ("silent", "heard") if any(silent) else ():
        for name, part in means.items():
            values = [
                value
                for value, is_silent in zip(part.flat.tolist(), silent, strict=True)
                if is_silent == (where == "silent") and isfinite(value)
            ]
            metrics |= {f"{name}_{where}": sum(values) / len(values)} if values else {}
    return metrics


def _by_rule(rules: Sequence[str], verdicts: Sequence[Sequence[str]]) -> Metrics:
    """`rule/<name>_accuracy`, `_unparsed` and `_share` of each rule, if the groups of a step use more than one.

    `rules[p]` is the rule of group p. A `_share` is relative to all completions of the step.
    """
    total, metrics = sum(map(len, verdicts)), {}
    for name in sorted(set(rules)) if len(set(rules)) > 1 else ():
        flat = [verdict for rule, row in zip(rules, verdicts, strict=True) if rule == name for verdict in row]
        if heard := len(flat) - flat.count("silent"):
            metrics[f"rule/{name}_accuracy"] = flat.count("correct") / heard
            metrics[f"rule/{name}_unparsed"] = flat.count("unparsed") / heard
        metrics[f"rule/{name}_share"] = len(flat) / total
    return metrics


def _agreement(scores: Ragged, verdicts: Sequence[Sequence[str]]) -> Metrics:
    """How the reward model's yes (a score above 1/2) agrees with the rule's verdicts `correct` and `wrong`.

    `false_accept_rate` is the share of yes among rule-wrong completions, which is what a policy exploits when it hacks
    the reward. `true_accept_rate` is the share of yes among rule-correct completions.
    """
    answers = list(zip(scores.flat.tolist(), [verdict for row in verdicts for verdict in row], strict=True))
    right, wrong = (
        [score > 0.5 for score, verdict in answers if verdict == of_rule] for of_rule in ("correct", "wrong")
    )
    outcomes = {
        "rule_agreement": [*right, *(not yes for yes in wrong)],
        "false_accept_rate": wrong,
        "true_accept_rate": right,
    }
    return {name: sum(rows) / len(rows) for name, rows in outcomes.items() if rows}


@dataclass
class ProbeSet:
    """Completions of the first step, scored again at every step. Only the reward model can change their scores."""

    texts: list[tuple[str, str, str]] = field(default_factory=list)
    """(question, reference answer, completion)."""
    first_scores: list[float] = field(default_factory=list)

    def measure(self, model: RewardModel, groups: Sequence[AnswerGroup]) -> Metrics:
        """The mean absolute change (in [0, 1]) and the mean signed change of the scores since the first step."""
        if not self.texts:
            ordered = sorted(groups, key=lambda group: (group.problem.id, group.id))  # not by arrival
            rows = ((group.problem, answer) for group in ordered for answer in group.answers[:2])
            self.texts = [(problem.question, problem.answer, answer.transcript) for problem, answer in rows][:PROBES]
        if not self.texts:
            return {}
        scores = model.learner.score(model.encoder.encode_all(self.texts)).double().sigmoid()
        self.first_scores = self.first_scores or scores.tolist()
        change = scores - scores.new_tensor(self.first_scores)
        drift, shift = change.abs().mean().item(), change.mean().item()
        return {"reward_model/probe_drift": drift, "reward_model/probe_shift": shift}

    def state(self) -> dict[str, Any]:
        return asdict(self)

    def restore(self, state: dict[str, Any]) -> None:
        self.texts = [(question, answer, text) for question, answer, text in state["texts"]]
        self.first_scores = state["first_scores"]
