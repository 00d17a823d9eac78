"""Stage 2 of a step: pairs out of the step's rollouts, and the reward model's update on them."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import cycle, islice
from random import Random
from typing import Any, get_args

from jaxtyping import Float
from torch import Tensor

from cooper_rl.clients.chat_reply import FailureKind
from cooper_rl.cooptimization.config import CooptimizationConfig, NegativeOrigin, PositiveOrigin
from cooper_rl.cooptimization.negatives.assistant import Assistant
from cooper_rl.cooptimization.negatives.on_policy import choose_on_policy_negatives
from cooper_rl.cooptimization.negatives.rewriting import REJECTIONS, AnswerVerifier, Request, Rewrites
from cooper_rl.cooptimization.pairs import Pair, choose_positives
from cooper_rl.cooptimization.replay import PairBuffer, restore_rng
from cooper_rl.cooptimization.update import PairEncoder, update_reward_model
from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content, normalise
from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.rollouts.answers import AnswerGroup


@dataclass(frozen=True)
class Solved:
    """A problem with its positives, at least one, all of one origin."""

    problem: Problem
    positives: list[str]
    origin: PositiveOrigin
    logits: dict[str, float]
    """What the reward model said on the group's completions, normalised, before any update of the step."""


@dataclass(frozen=True)
class Stage2:
    """A step's pairs in the making: what `start` hands to `finish`."""

    solved: list[Solved]
    on_policy: list[Pair]
    asked: list[tuple[Solved, Request]] = field(default_factory=list)
    rewrites: "Future[Rewrites] | None" = None
    metrics: Metrics = field(default_factory=dict)


class Cooptimizer:
    """Makes pairs and updates the reward model on them, remembering what it needs between steps.

    `assistant` (see `build_assistant`) may be None where `config.negatives` lists none. `labelled` is VerifyRM's data
    for replay, by default the rows of `config.replay.labelled`. Between `start` and `finish` the caller is free to
    train the policy; the verifier is used from the assistant's thread meanwhile.
    """

    def __init__(
        self,
        config: CooptimizationConfig,
        verifier: AnswerVerifier,
        assistant: Assistant | None = None,
        seed: int = 0,
        labelled: Sequence[LabelledCompletion] | None = None,
    ):
        self.config = config
        self._assistant = assistant if "assistant" in config.negatives else None
        self._verifier = verifier
        if labelled is None:
            labelled = read_labelled(config.replay.labelled) if config.replay.labelled else []
        self._labelled = list(labelled)
        self._buffer = PairBuffer(config.replay.capacity, seed)
        self._seed = seed
        self._replay_choices = Random(f"replay {seed}")
        self._pair_metrics: Metrics = {}
        self._steps_without_pairs = 0

    def start(
        self,
        groups: Sequence[AnswerGroup],
        verdicts: Sequence[Sequence[str]],
        rm_logits: Float[Tensor, "P N"],
        step: int,
    ) -> Stage2:
        """Choose positives and on-policy negatives and set the assistant to work; returns at once.

        `verdicts[p][i]` is the rule's (`correct`, `wrong`, `unparsed`, `timeout`) on completion i of problem p,
        `rm_logits` are the reward model's under the weights that the step's update starts from. What is chosen depends
        on the seed, the step and each group alone, and on no order of the groups.
        """
        order = sorted(range(len(groups)), key=lambda p: groups[p].problem.id)
        groups, verdicts = [groups[p] for p in order], [verdicts[p] for p in order]
        config, logits = self.config, rm_logits[order].tolist()
        choices = [Random(f"pairs {self._seed} {step} {group.problem.id}") for group in groups]
        solved = self._choose_positives(groups, verdicts, logits, choices)
        on_policy: list[Pair] = []
        asked: list[tuple[Solved, Request]] = []
        for item, group, verdict_row, logit_row, rng in zip(solved, groups, verdicts, logits, choices, strict=True):
            if item is None:
                continue
            if "on_policy" in config.negatives:
                negatives = choose_on_policy_negatives(
                    group, verdict_row, logit_row, item.positives, config.pairs_per_problem, config.on_policy, rng
                )
                on_policy += [
                    make_pair(item, positive, negative, "on_policy")
                    for positive, negative in zip(cycle(item.positives), negatives, strict=False)
                ]
            if self._assistant is not None:
                asked += [
                    (item, Request(item.problem, positive, rng.getrandbits(31)))
                    for positive in islice(cycle(item.positives), config.pairs_per_problem)
                ]
        rewrites = self._assistant.submit([request for _, request in asked]) if self._assistant and asked else None
        found = [item for item in solved if item is not None]
        return Stage2(found, on_policy, asked, rewrites, self._problem_metrics(found, len(groups)))

    def finish(self, stage2: Stage2) -> list[Pair]:
        """Wait for the assistant, as long as its settings allow; returns the step's valid pairs, its own first."""
        result = stage2.rewrites.result() if stage2.rewrites is not None else Rewrites([], {})
        pairs = [
            make_pair(item, request.positive, negative, "assistant")
            for (item, request), negative in zip(stage2.asked, result.negatives, strict=True)
            if negative is not None
        ]
        pairs = list(dict.fromkeys(pairs + stage2.on_policy))
        self._steps_without_pairs = 0 if pairs else self._steps_without_pairs + 1
        self._pair_metrics = stage2.metrics | self._validity(stage2, pairs, result)
        return pairs

    def update(
        self, pairs: Sequence[Pair], learner: RewardModelLearner, encoder: PairEncoder
    ) -> tuple[list[Pair], Metrics]:
        """Update the reward model on `pairs` and on what is replayed; returns the pairs with their logits filled in.

        A step without pairs still replays. Metrics are those of the update and of the last `finish`.
        """
        replay = self.config.replay
        scored, metrics = update_reward_model(
            pairs,
            learner,
            encoder,
            self.config,
            sample_pairs=lambda: self._buffer.sample(replay.pairs_per_step),
            sample_labelled=lambda: self._replay_choices.sample(
                self._labelled, min(replay.labelled_per_step, len(self._labelled))
            ),
        )
        self._buffer.add(scored)
        metrics["pairs/remembered"] = float(len(self._buffer))
        return scored, self._pair_metrics | metrics

    def close(self) -> None:
        """Give back the assistant's connections."""
        if self._assistant is not None:
            self._assistant.close()

    def state(self) -> dict[str, Any]:
        """JSON values for a checkpoint."""
        return {
            "buffer": self._buffer.state(),
            "replay_choices": self._replay_choices.getstate(),
            "steps_without_pairs": self._steps_without_pairs,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Put back what `state` returned."""
        self._buffer.restore(state["buffer"])
        restore_rng(self._replay_choices, state["replay_choices"])
        self._steps_without_pairs = state["steps_without_pairs"]

    def _choose_positives(
        self,
        groups: Sequence[AnswerGroup],
        verdicts: Sequence[Sequence[str]],
        rm_logits: Sequence[Sequence[float]],
        choices: Sequence[Random],
    ) -> list[Solved | None]:
        """Each group's positives, or None; a reference solution serves only if the rule accepts it."""
        config = self.config
        wanted = config.pairs_per_problem if "rollout" in config.positives else 0
        logits = [
            {normalise(completion.text): logit for completion, logit in zip(group.answers, row, strict=True)}
            for group, row in zip(groups, rm_logits, strict=True)
        ]
        solved: list[Solved | None] = []
        for group, row, known, rng in zip(groups, verdicts, logits, choices, strict=True):
            positives = choose_positives(group, row, wanted, rng)
            solved.append(Solved(group.problem, positives, "rollout", known) if positives else None)
        if "reference_solution" not in config.positives:
            return solved
        unsolved = [
            (p, group.problem, normalise(group.problem.solution))
            for p, group in enumerate(groups)
            if solved[p] is None and group.problem.solution is not None and has_content(group.problem.solution)
        ]
        accepted = self._verifier.verify_problems([(problem, solution) for _, problem, solution in unsolved])
        for (p, problem, solution), verdict in zip(unsolved, accepted, strict=True):
            if verdict == "correct":
                solved[p] = Solved(problem, [solution], "reference_solution", logits[p])
        return solved

    def _problem_metrics(self, solved: Sequence[Solved], problems: int) -> Metrics:
        from_solution = sum(item.origin == "reference_solution" for item in solved)
        return {
            "pairs/problems_with_positive": len(solved) / problems if problems else 0.0,
            "pairs/reference_solution_positives": float(from_solution),
        }

    def _validity(self, stage2: Stage2, pairs: Sequence[Pair], result: Rewrites) -> Metrics:
        metrics = {"pairs/count": float(len(pairs)), "pairs/steps_without": float(self._steps_without_pairs)}
        wanted = self.config.pairs_per_problem * len(stage2.solved)
        for origin in self.config.negatives:
            valid = sum(pair.negative_origin == origin for pair in pairs)
            if wanted:
                metrics[f"pairs/{origin}_valid_rate"] = valid / wanted
        if self._assistant is not None:
            names = ["attempts", "accepted", *(f"failures_{kind}" for kind in get_args(FailureKind)), *REJECTIONS]
            metrics |= {f"assistant/{name}": float(result.counts.get(name, 0)) for name in names}
        return metrics


def make_pair(solved: Solved, positive: str, negative: str, negative_origin: NegativeOrigin) -> Pair:
    """A pair of a solved problem, with the logits that are known."""
    problem = solved.problem
    return Pair(
        problem.id,
        problem.question,
        problem.answer,
        positive,
        negative,
        solved.origin,
        negative_origin,
        positive_logit_before=solved.logits.get(positive),
        negative_logit_before=solved.logits.get(negative),
    )
