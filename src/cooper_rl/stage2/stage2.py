"""Stage 2 of a step: pairs from the step's rollouts, and the reward model's update on them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import cycle, islice
from random import Random
from typing import Any, get_args

from cooper_rl.clients.chat import FailureKind
from cooper_rl.config.user_functions import load_added
from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.data.text import has_content, normalise
from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.rewards.input import RewardModelInput
from cooper_rl.rollouts import AnswerGroup
from cooper_rl.rules.rule import Rule
from cooper_rl.stage2.assistant import REJECTIONS, REPAIR_REJECTIONS, Assistant, RewriteRequest, Rewrites
from cooper_rl.stage2.config import CooptimizationConfig, TieOrigin
from cooper_rl.stage2.pairs import (
    Contribution,
    Judged,
    Pair,
    choose_on_policy_negatives,
    choose_positives,
    swapped_pairs,
)
from cooper_rl.stage2.update import PairBuffer, restore_rng, update_reward_model


@dataclass(frozen=True)
class Stage2:
    """The unfinished pairs of some groups: the result of `start` and the input of `finish`."""

    work: list[Contribution]
    rewrites: "Future[Rewrites] | None" = None


class Cooptimizer:
    """Makes pairs and updates the reward model on them. It keeps state between steps.

    `assistant` (see `build_assistant`) may be None if `config` does not need it. `labelled` is VerifyRM's training data
    for replay. Between `start` and `finish` the caller may train the policy; the assistant's thread uses the verifier.
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
        self._assistant = assistant if config.needs_assistant else None
        self._ties = [load_added("designs", f"ties.{name}") for name in get_args(TieOrigin) if name in config.ties]
        self._verifier = verifier
        self._labelled = list(labelled or ())
        self._buffer = PairBuffer(config.replay.capacity, seed)
        self._seed = seed
        self._replay_choices = Random(f"replay {seed}")
        self._pair_metrics: Metrics = {}
        self._unpaired: list[LabelledCompletion] = []
        self._steps_without_pairs = 0

    def start(
        self,
        groups: Sequence[AnswerGroup],
        verdicts: Sequence[Sequence[str]],
        rm_logits: Sequence[Sequence[float]],
        step: int,
        trusted: Sequence[Sequence[bool]] | None = None,
        suspects: Sequence[Sequence[bool]] | None = None,
    ) -> Stage2:
        """Choose positives and on-policy negatives, submit the assistant's requests, and return at once.

        `verdicts[p][i]` is the rule's verdict (a `Verdict`) on answer i of group p.
        `rm_logits[p][i]` is the reward model's logit, with the weights before the step's update. An answer that is
        `trusted[p][i]` is never an on-policy negative; one that the rule does not judge is, if `suspects[p][i]`. The
        choice for a group depends only on the seed, the step and the group, not on the order of the groups.
        """
        config, choices = self.config, list[Random]()
        work: list[Contribution] = []
        wanted = config.pairs_per_problem if "rollout" in config.positives else 0
        none = [None] * len(groups)
        given = zip(groups, verdicts, rm_logits, trusted or none, suspects or none, strict=True)
        rows = [Judged(*row) for row in given]
        for row in sorted(rows, key=lambda row: (row.group.problem.id, row.group.id)):
            key = f"{self._seed} {step} {row.group.problem.id}"
            choices.append(Random(f"pairs {key}"))
            work.append(Contribution(row, choose_positives(row, wanted, choices[-1]), Random(f"partners {key}")))
        if "reference_solution" in config.positives:
            self._take_solutions([one for one in work if not one.positives])
        for one, rng in zip(work, choices, strict=True):
            if one.positives:
                self._choose(one, rng)
            elif "on_policy" in config.negatives:
                count = config.pairs_per_problem
                one.unpaired = choose_on_policy_negatives(one.judged, (), count, config.on_policy, rng)
            if "repaired" in config.positives:  # of wrong completions, chosen as on-policy negatives are
                rng = Random(f"repairs {self._seed} {step} {one.problem.id}")
                wrong = choose_on_policy_negatives(one.judged, (), config.pairs_per_problem, config.on_policy, rng)
                one.requests += [RewriteRequest.of(one.problem, text, rng.getrandbits(31), "right") for text in wrong]
        asked = [request for one in work for request in one.requests]
        return Stage2(work, self._assistant.submit(asked) if self._assistant and asked else None)

    def _take_solutions(self, work: Sequence[Contribution]) -> None:
        """Reference solutions as positives. One counts only if the rule accepts it or is silent on the problem."""
        texts = [(one, normalise(text)) for one in work if (text := one.problem.solution) and has_content(text)]
        accepted = self._verifier.verify_problems([(one.problem, text) for one, text in texts])
        for (one, text), verdict in zip(texts, accepted, strict=True):
            if verdict in ("correct", "silent"):
                one.positives, one.origin = [text], "reference_solution"

    def _choose(self, work: Contribution, rng: Random) -> None:
        """What the group adds to the pairs, now that its positives are known."""
        config, judged, count = self.config, work.judged, self.config.pairs_per_problem
        if "on_policy" in config.negatives:
            negatives = choose_on_policy_negatives(judged, work.positives, count, config.on_policy, rng)
            both = zip(cycle(work.positives), negatives, strict=False)
            work.on_policy += [work.pair(positive, negative, "on_policy") for positive, negative in both]
        if self._assistant is not None and "assistant" in config.negatives:
            texts = islice(cycle(work.positives), count)
            work.requests += [RewriteRequest.of(work.problem, text, rng.getrandbits(31)) for text in texts]

    def finish(self, parts: Sequence[Stage2], keep: Collection[str] | None = None) -> list[Pair]:
        """Wait for the assistant, as long as its settings allow, and return the step's valid pairs.

        The pairs with the assistant's negatives come first. `parts` holds the results of `start` for the step's groups,
        in any order. If `keep` is given, only groups whose id is in it contribute pairs.
        """
        done: list[tuple[Contribution, list[Pair]]] = []
        counts: Counter[str] = Counter()
        for part in parts:
            result = part.rewrites.result() if part.rewrites is not None else Rewrites([], {})
            counts.update(result.counts)
            texts = iter(result.texts)
            done += [(work, work.rewritten(list(islice(texts, len(work.requests))))) for work in part.work]
        done = [(work, pairs) for work, pairs in done if keep is None or work.judged.group.id in keep]
        done.sort(key=lambda item: (item[0].problem.id, item[0].judged.group.id))
        pairs = [pair for _, by_assistant in done for pair in by_assistant]
        pairs += [pair for work, _ in done for pair in work.on_policy]
        # The pairs that take something from another problem of the step, and all ties.
        solved = [work for work, _ in done if work.positives]
        count = self.config.pairs_per_problem
        ties = [tie(solved, count) for tie in self._ties]
        if "swapped_reference" in self.config.negatives:
            pairs += swapped_pairs(solved, self._verifier, count)
        for made in ties:
            pairs += made(self._verifier)
        pairs = list(dict.fromkeys(pairs))
        self._unpaired = [
            LabelledCompletion(work.problem.question, work.problem.answer, text, 0.0)
            for work, _ in done
            for text in work.unpaired
        ]
        self._steps_without_pairs = 0 if pairs else self._steps_without_pairs + 1
        self._pair_metrics = self._metrics(solved, len(done), pairs, counts)
        return pairs

    def update(
        self, pairs: Sequence[Pair], learner: RewardModelLearner, encoder: RewardModelInput
    ) -> tuple[list[Pair], Metrics]:
        """Update the reward model on `pairs` and on replayed data. Returns the pairs with their logits filled in.

        A step without pairs still replays. The metrics are those of the update and of the last `finish`.
        """
        replay = self.config.replay
        scored, metrics = update_reward_model(
            pairs,
            learner,
            encoder,
            self.config,
            unpaired=self._unpaired,
            sample_pairs=lambda: self._buffer.sample(replay.pairs_per_step),
            sample_labelled=lambda: self._replay_choices.sample(
                self._labelled, min(replay.labelled_per_step, len(self._labelled))
            ),
        )
        self._buffer.add(scored)
        metrics["pairs/remembered"] = float(len(self._buffer))
        return scored, self._pair_metrics | metrics

    def close(self) -> None:
        """Close the assistant's connections."""
        if self._assistant is not None:
            self._assistant.close()

    def state(self) -> dict[str, Any]:
        """The state as JSON values, for a checkpoint."""
        return {
            "buffer": self._buffer.state(),
            "replay_choices": self._replay_choices.getstate(),
            "steps_without_pairs": self._steps_without_pairs,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self._buffer.restore(state["buffer"])
        restore_rng(self._replay_choices, state["replay_choices"])
        self._steps_without_pairs = state["steps_without_pairs"]

    def _metrics(
        self, solved: Sequence[Contribution], problems: int, pairs: Sequence[Pair], counts: Mapping[str, int]
    ) -> Metrics:
        config = self.config
        metrics = {
            "pairs/problems_with_positive": len(solved) / problems if problems else 0.0,
            "pairs/reference_solution_positives": sum(one.origin == "reference_solution" for one in solved),
            "pairs/count": len(pairs),
            "pairs/steps_without": self._steps_without_pairs,
            "pairs/unpaired_negatives": len(self._unpaired),
        }
        repaired = sum(pair.positive_origin == "repaired" for pair in pairs)
        of_origin = Counter(pair.negative_origin for pair in pairs if pair.positive_origin != "repaired")
        metrics |= {f"pairs/ties_{origin}": of_origin[origin] for origin in config.ties}
        if "repaired" in config.positives:
            metrics["pairs/repaired"] = repaired
        if wanted := config.pairs_per_problem * len(solved):
            metrics |= {f"pairs/{origin}_valid_rate": of_origin[origin] / wanted for origin in config.negatives}
        if self._assistant is not None:
            names = ["attempts", "accepted", *(f"failures_{kind}" for kind in get_args(FailureKind))]
            asked = [*names, *REJECTIONS] if "assistant" in config.negatives else []
            if "repaired" in config.positives:
                asked += [f"repair_{name}" for name in (*names, *REPAIR_REJECTIONS)]
            metrics |= {f"assistant/{name}": counts.get(name, 0) for name in asked}
        return {name: float(value) for name, value in metrics.items()}
