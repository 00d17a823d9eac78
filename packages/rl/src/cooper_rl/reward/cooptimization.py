"""Cooptimization, the second half of a step: pairs from the step's rollouts, and the reward model's update on them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cooper_base.data.labelled import LabelledCompletion
from cooper_base.errors import InputError
from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.reward.context import Logits, RewardModel, StepContext
from cooper_rl.reward.cooptimization_config import LABELLED_PER_STEP, CooptimizationConfig
from cooper_rl.reward.pairs.assistant import Assistant
from cooper_rl.reward.pairs.base import (
    PAIRS,
    Pair,
    PairFilter,
    PairGroup,
    PairInputs,
    PairSource,
    choose_positives,
    take_solutions,
)
from cooper_rl.reward.update import PairBuffer, restore_rng, update_reward_model
from cooper_verify.rules.rule import Rule


@dataclass(frozen=True)
class StartedPairs:
    """Groups whose pairs are being made: `start` returns them, and `finish` takes them."""

    groups: list[PairGroup]
    started: list[Any]
    """What each source's `start` returned."""


class Cooptimizer:
    """Makes pairs and updates the reward model on them. It keeps state between steps.

    `assistant` (see `build_assistant`) may be None if no source of `config.pairs` uses it. `labelled` is VerifyRM's
    training data for replay. Between `start` and `finish` the caller may train the policy; the assistant's thread uses
    the verifier. Raises InputError if a source or filter cannot work with its settings.
    """

    def __init__(
        self,
        config: CooptimizationConfig,
        verifier: Rule,
        assistant: Assistant | None = None,
        seed: int = 0,
        labelled: Sequence[LabelledCompletion] | None = None,
    ):
        self.config = config
        self._assistant = assistant
        inputs = PairInputs(config, verifier, assistant)
        self._parts = [(PAIRS.kind_of(part), part.build(inputs)) for part in config.pairs]
        self._sources = [part for _, part in self._parts if isinstance(part, PairSource)]
        self._filters = [part for _, part in self._parts if isinstance(part, PairFilter)]
        self._verifier = verifier
        self._labelled = list(labelled or ())
        self._buffer = PairBuffer(seed)
        self._seed = seed
        self._replay_choices = Random(f"replay {seed}")
        self._pair_metrics: Metrics = {}
        self._unpaired: list[LabelledCompletion] = []
        self._judged: list[LabelledCompletion] = []
        self._steps_without_pairs = 0

    def start(self, context: StepContext, step: int) -> StartedPairs:
        """Choose positives, start the work of every source, and return at once.

        `context` has the verdicts and the logits of the model that learns, from before the step's update. The choice
        for a group depends only on the seed, the step and the group, not on the order of the groups.
        """
        config = self.config
        logits = context.logits.rows()
        wanted = config.pairs_per_problem if "rollout" in config.positives else 0
        rows = zip(context.groups, context.verdicts, logits, strict=True)
        groups = [PairGroup(*row, f"{self._seed} {step} {row[0].problem.id}") for row in rows]
        groups.sort(key=lambda group: (group.problem.id, group.id))
        for group in groups:
            group.positives = choose_positives(group, wanted, group.random("pairs"))
        if "reference_solution" in config.positives:
            take_solutions([group for group in groups if not group.positives], self._verifier)
        return StartedPairs(groups, [source.start(groups, context) for source in self._sources])

    def finish(self, parts: Sequence[StartedPairs], keep: Collection[str] | None = None) -> list[Pair]:
        """Wait for the sources, such as the assistant, and return the step's pairs, in the order of the sources.

        `parts` holds the results of `start` for the step's groups, in any order. If `keep` is given, only groups whose
        id is in it contribute pairs.
        """
        groups = [group for part in parts for group in part.groups if keep is None or group.id in keep]
        groups.sort(key=lambda group: (group.problem.id, group.id))
        made = [source.pairs(groups, [part.started[i] for part in parts]) for i, source in enumerate(self._sources)]
        pairs = list(dict.fromkeys(pair for by_source in made for pair in by_source.pairs))
        self._unpaired = [row for by_source in made for row in by_source.unpaired]
        self._judged = [row for by_source in made for row in by_source.labelled]
        self._steps_without_pairs = 0 if pairs or self._judged else self._steps_without_pairs + 1
        solved = [group for group in groups if group.positives]
        self._pair_metrics = {
            "pairs/problems_with_positive": len(solved) / len(groups) if groups else 0.0,
            "pairs/reference_solution_positives": float(sum(group.origin == "reference_solution" for group in solved)),
            "pairs/count": float(len(pairs)),
            "pairs/steps_without": float(self._steps_without_pairs),
            "pairs/unpaired_negatives": float(len(self._unpaired)),
        }
        for by_source in made:
            self._pair_metrics |= by_source.metrics
        return pairs

    def filtered(self, pairs: Sequence[Pair], model: RewardModel) -> tuple[list[Pair] | None, Metrics]:
        """The pairs after all filters, and the filters' metrics. None: a filter left the step's update out, and those
        after it were not asked."""
        chosen, metrics = list(pairs), Metrics()
        for part in self._filters:
            chosen, of_filter = part.filter(chosen, model)
            metrics |= of_filter
            if chosen is None:
                return None, self._pair_metrics | metrics
        return chosen, metrics

    def update(
        self, pairs: Sequence[Pair], learner: RewardModelLearner, encoder: RewardModelInput, known: Logits | None = None
    ) -> tuple[list[Pair], Metrics]:
        """Update the reward model on `pairs` and on replayed data. Returns the pairs with their logits filled in, those
        that are `known` without asking again.

        A step without pairs still replays. The metrics are those of the update and of the last `finish`.
        """
        replay = self.config.replay
        scored, metrics = update_reward_model(
            pairs,
            learner,
            encoder,
            self.config,
            unpaired=self._unpaired,
            judged=self._judged,
            known=known,
            sample_pairs=lambda: self._buffer.sample(replay.pairs_per_step),
            sample_labelled=lambda: self._replay_choices.sample(
                self._labelled, min(LABELLED_PER_STEP, len(self._labelled))
            ),
        )
        if replay.pairs_per_step:
            self._buffer.add(scored)
        metrics["pairs/remembered"] = float(len(self._buffer))
        return scored, self._pair_metrics | metrics

    def close(self) -> None:
        """Close the connections of the assistant and of the sources and filters."""
        for _, part in self._parts:
            part.close()
        if self._assistant is not None:
            self._assistant.close()

    def state(self) -> dict[str, Any]:
        return {
            "buffer": self._buffer.state(),
            "replay_choices": self._replay_choices.getstate(),
            "steps_without_pairs": self._steps_without_pairs,
            "parts": [[kind, part.state()] for kind, part in self._parts],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned. Raises InputError if it is the state of other sources or filters."""
        kept = [(kind, of_part) for kind, of_part in state["parts"] if of_part]
        keeping = [(kind, part) for kind, part in self._parts if part.state()]
        before, now = ([kind for kind, _ in parts] for parts in (kept, keeping))
        if before != now:
            raise InputError(
                f"cooptimization.pairs: the checkpoint has the state of {', '.join(before) or 'no part'}, but now "
                f"{', '.join(now) or 'no part'} keeps one; resume with the same sources and filters"
            )
        for (_, part), (_, of_part) in zip(keeping, kept, strict=True):
            part.restore(of_part)
        self._buffer.restore(state["buffer"])
        restore_rng(self._replay_choices, state["replay_choices"])
        self._steps_without_pairs = state["steps_without_pairs"]
