"""Stage 2 of a step: pairs from the step's rollouts, and the reward model's update on them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from random import Random
from typing import Any, get_args

from cooper_rl.clients.chat_reply import FailureKind
from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.data.text import has_content, normalise
from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.rollouts import AnswerGroup
from cooper_rl.stage2.assistant import (
    REJECTIONS,
    REPAIR_REJECTIONS,
    AnswerVerifier,
    Assistant,
    RewriteRequest,
    Rewrites,
)
from cooper_rl.stage2.config import CooptimizationConfig
from cooper_rl.stage2.pairs import (
    Pair,
    Solved,
    choose_on_policy_negatives,
    choose_positives,
    irrelevant_questions,
    swapped_pairs,
    two_right,
    wrong_texts,
)
from cooper_rl.stage2.update import PairBuffer, PairEncoder, restore_rng, update_reward_model


@dataclass(frozen=True)
class Contribution:
    """One group's contribution to the step's update.

    These are its on-policy pairs and ties, its requests to the assistant, and what is combined with other groups at the
    end: texts that the rule calls wrong, and a random generator for the choice of partners. `repaired` makes the pairs
    of repairs.
    """

    group_id: str
    problem_id: str
    solved: Solved | None
    partners: Random
    on_policy: list[Pair] = field(default_factory=list)
    asked: list[RewriteRequest] = field(default_factory=list)
    ties: list[Pair] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    repaired: Solved | None = None
    repairs: list[RewriteRequest] = field(default_factory=list)

    @property
    def requests(self) -> list[RewriteRequest]:
        """All requests to the assistant, in the order in which they are sent."""
        return self.asked + self.repairs


@dataclass(frozen=True)
class Stage2:
    """The unfinished pairs of some groups: the result of `start` and the input of `finish`."""

    work: list[Contribution]
    rewrites: "Future[Rewrites] | None" = None


class Cooptimizer:
    """Makes pairs and updates the reward model on them. It keeps state between steps.

    `assistant` (see `build_assistant`) may be None if `config` does not need it. `labelled` is VerifyRM's
    training data for replay, by default the rows of `config.replay.labelled`. Between `start` and `finish` the caller
    is free to train the policy; in the meantime the assistant's thread uses the verifier.
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
        self._assistant = assistant if config.needs_assistant else None
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
        rm_logits: Sequence[Sequence[float]],
        step: int,
        trusted: Sequence[Sequence[bool]] | None = None,
    ) -> Stage2:
        """Choose positives and on-policy negatives, submit the assistant's requests, and return at once.

        `verdicts[p][i]` is the rule's verdict (`correct`, `wrong`, `unparsed`, `timeout`) on answer i of group p.
        `rm_logits[p][i]` is the reward model's logit, with the weights before the step's update. An answer that is
        `trusted[p][i]` is never an on-policy negative. The choice for a group depends only on the seed, the step and
        the group, not on the order of the groups.
        """
        order = sorted(range(len(groups)), key=lambda p: (groups[p].problem.id, groups[p].id))
        groups, verdicts = [groups[p] for p in order], [verdicts[p] for p in order]
        logits = [rm_logits[p] for p in order]
        known = [None if trusted is None else trusted[p] for p in order]
        choices = [Random(f"pairs {self._seed} {step} {group.problem.id}") for group in groups]
        solved = self._choose_positives(groups, verdicts, logits, choices)
        partners = [Random(f"partners {self._seed} {step} {group.problem.id}") for group in groups]
        rows = zip(groups, verdicts, logits, solved, choices, partners, known, strict=True)
        work = [self._work(*row) for row in rows]
        if "repaired" in self.config.positives:
            rows = zip(work, groups, verdicts, logits, known, strict=True)
            work = [self._with_repairs(*row, step) for row in rows]
        asked = [request for one in work for request in one.requests]
        return Stage2(work, self._assistant.submit(asked) if self._assistant and asked else None)

    def _work(
        self,
        group: AnswerGroup,
        verdicts: Sequence[str],
        rm_logits: Sequence[float],
        solved: Solved | None,
        rng: Random,
        partners: Random,
        trusted: Sequence[bool] | None,
    ) -> Contribution:
        config = self.config
        work = Contribution(group.id, group.problem.id, solved, partners)
        if solved is None:
            return work
        if "on_policy" in config.negatives:
            negatives = choose_on_policy_negatives(
                group, verdicts, rm_logits, solved.positives, config.pairs_per_problem, config.on_policy, rng, trusted
            )
            work.on_policy.extend(
                solved.pair(positive, negative, "on_policy")
                for positive, negative in zip(cycle(solved.positives), negatives, strict=False)
            )
        if self._assistant is not None and "assistant" in config.negatives:
            work.asked.extend(
                RewriteRequest(solved.problem, positive, rng.getrandbits(31))
                for positive in islice(cycle(solved.positives), config.pairs_per_problem)
            )
        if "two_right" in config.ties:
            work.ties.extend(two_right(group, verdicts, config.pairs_per_problem, partners))
        if "irrelevant_question" in config.ties:
            work.wrong.extend(wrong_texts(group, verdicts, config.pairs_per_problem, partners))
        return work

    def _with_repairs(
        self,
        work: Contribution,
        group: AnswerGroup,
        verdicts: Sequence[str],
        rm_logits: Sequence[float],
        trusted: Sequence[bool] | None,
        step: int,
    ) -> Contribution:
        """The work with requests to repair wrong completions, which are chosen as on-policy negatives are."""
        config = self.config
        rng = Random(f"repairs {self._seed} {step} {group.problem.id}")
        wrong = choose_on_policy_negatives(
            group, verdicts, rm_logits, (), config.pairs_per_problem, config.on_policy, rng, trusted
        )
        repaired = Solved(group.problem, [], "repaired", _logits_of_texts(group, rm_logits))
        repairs = [RewriteRequest(group.problem, text, rng.getrandbits(31), goal="right") for text in wrong]
        return replace(work, repaired=repaired, repairs=repairs)

    def finish(self, parts: Sequence[Stage2], keep: Collection[str] | None = None) -> list[Pair]:
        """Wait for the assistant, as long as its settings allow, and return the step's valid pairs.

        The pairs with the assistant's negatives come first. `parts` holds the results of `start` for the step's groups,
        in any order. If `keep` is given, only groups whose id is in it contribute pairs.
        """
        results = [part.rewrites.result() if part.rewrites is not None else Rewrites([], {}) for part in parts]
        done: list[tuple[Contribution, list[Pair]]] = []
        for part, result in zip(parts, results, strict=True):
            texts = iter(result.texts)
            done += [(work, _rewritten(work, list(islice(texts, len(work.requests))))) for work in part.work]
        done = [(work, pairs) for work, pairs in done if keep is None or work.group_id in keep]
        done.sort(key=lambda item: (item[0].problem_id, item[0].group_id))
        by_assistant = [pair for _, pairs in done for pair in pairs]
        on_policy = [pair for work, _ in done for pair in work.on_policy]
        partnered = self._partnered([work for work, _ in done])
        pairs = list(dict.fromkeys(by_assistant + on_policy + partnered))
        self._steps_without_pairs = 0 if pairs else self._steps_without_pairs + 1
        counts = sum((Counter(result.counts) for result in results), Counter())
        solved = [work.solved for work, _ in done if work.solved is not None]
        self._pair_metrics = self._problem_metrics(solved, len(done)) | self._validity(len(solved), pairs, counts)
        return pairs

    def _partnered(self, work: Sequence[Contribution]) -> list[Pair]:
        """The pairs that take something from another problem of the step, and all ties."""
        pairs: list[Pair] = []
        solved = [(one.solved, one) for one in work if one.solved is not None]
        if "swapped_reference" in self.config.negatives:
            pairs += swapped_pairs(
                [(item, one.partners) for item, one in solved], self._verifier, self.config.pairs_per_problem
            )
        pairs += [pair for one in work for pair in one.ties]
        if "irrelevant_question" in self.config.ties:
            pairs += irrelevant_questions([(item, one.wrong, one.partners) for item, one in solved], self._verifier)
        return pairs

    def update(
        self, pairs: Sequence[Pair], learner: RewardModelLearner, encoder: PairEncoder
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

    def _choose_positives(
        self,
        groups: Sequence[AnswerGroup],
        verdicts: Sequence[Sequence[str]],
        rm_logits: Sequence[Sequence[float]],
        choices: Sequence[Random],
    ) -> list[Solved | None]:
        """Each group's positives, or None. A reference solution counts only if the rule accepts it."""
        config = self.config
        wanted = config.pairs_per_problem if "rollout" in config.positives else 0
        logits = [_logits_of_texts(group, row) for group, row in zip(groups, rm_logits, strict=True)]
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

    def _validity(self, solved: int, pairs: Sequence[Pair], counts: Mapping[str, int]) -> Metrics:
        metrics = {"pairs/count": float(len(pairs)), "pairs/steps_without": float(self._steps_without_pairs)}
        for origin in self.config.ties:
            metrics[f"pairs/ties_{origin}"] = float(sum(pair.negative_origin == origin for pair in pairs))
        wanted = self.config.pairs_per_problem * solved
        repaired = [pair for pair in pairs if pair.positive_origin == "repaired"]
        if "repaired" in self.config.positives:
            metrics["pairs/repaired"] = float(len(repaired))
        for origin in self.config.negatives:
            valid = sum(pair.negative_origin == origin for pair in pairs if pair.positive_origin != "repaired")
            if wanted:
                metrics[f"pairs/{origin}_valid_rate"] = valid / wanted
        if self._assistant is not None:
            failures = [f"failures_{kind}" for kind in get_args(FailureKind)]
            names = ["attempts", "accepted", *failures, *REJECTIONS] if "assistant" in self.config.negatives else []
            if "repaired" in self.config.positives:
                names += [f"repair_{name}" for name in ("attempts", "accepted", *failures, *REPAIR_REJECTIONS)]
            metrics |= {f"assistant/{name}": float(counts.get(name, 0)) for name in names}
        return metrics


def _logits_of_texts(group: AnswerGroup, rm_logits: Sequence[float]) -> dict[str, float]:
    """The logit of each normalised completion."""
    return {normalise(answer.text): logit for answer, logit in zip(group.answers, rm_logits, strict=True)}


def _rewritten(work: Contribution, texts: Sequence[str | None]) -> list[Pair]:
    """The group's pairs with texts from the assistant: its negatives, then its repairs."""
    pairs: list[Pair] = []
    for request, text in zip(work.requests, texts, strict=True):
        if text is not None and request.goal == "wrong" and work.solved is not None:
            pairs.append(work.solved.pair(request.text, text, "assistant"))
        elif text is not None and request.goal == "right" and work.repaired is not None:
            pairs.append(work.repaired.pair(text, request.text, "on_policy"))
    return pairs
