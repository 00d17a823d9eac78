"""Pairs of a right and a wrong completion, and the seam of the sources that make them and the filters that choose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from cooper_base.config.base import Config, Kinds
from cooper_base.data.answer import AnswerGroup
from cooper_base.data.labelled import LabelledCompletion
from cooper_base.data.problem import Problem
from cooper_base.data.text import has_content, normalise
from cooper_verify.rules.rule import Rule

if TYPE_CHECKING:
    from cooper_rl.reward.context import RewardModel, StepContext
    from cooper_rl.reward.cooptimization_config import CooptimizationConfig
    from cooper_rl.reward.pairs.assistant import Assistant


@dataclass(frozen=True)
class Pair:
    """A right and a wrong completion of one problem, both normalised. Logits are the reward model's, if known.

    If the label is `tie`, the two completions should score the same, and only the names of the fields call one of them
    positive. The negative is read with the reference `negative_answer` if that is not None, else with `answer`.
    """

    problem_id: str
    question: str
    answer: str
    positive: str
    negative: str
    positive_origin: str
    """`rollout`, `reference_solution`, or the name that a source from outside the framework gives."""
    negative_origin: str
    """The name of the source: `assistant`, `on_policy`, `swapped_reference`, `near_reference`, `teacher`, or that of a
    source from outside."""
    positive_logit_before: float | None = None
    negative_logit_before: float | None = None
    positive_logit_after: float | None = None
    negative_logit_after: float | None = None
    label: Literal["better", "tie"] = "better"
    negative_answer: str | None = None
    weight: float = 1.0
    """How much the pair counts, at least 0. In every update, the weights of the pairs that are no ties are scaled to
    mean 1. The weight of a tie is relative to that."""

    @property
    def answer_of_negative(self) -> str:
        """The reference answer with which the negative is read."""
        return self.answer if self.negative_answer is None else self.negative_answer


@dataclass
class PairGroup:
    """What sources make pairs from: a group with the rule's verdict and the reward model's logit of each answer, before
    any update of the step, and its positives."""

    group: AnswerGroup
    verdicts: Sequence[str]
    logits: Sequence[float]
    seed: str = ""
    """Distinguishes the random choices of this problem in this step and run from all others."""
    positives: list[str] = field(default_factory=list)
    """Empty if the group has none. All have the same origin."""
    origin: str = "rollout"
    _randoms: dict[str, Random] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The group's id, unique in the step."""
        return self.group.id

    @property
    def problem(self) -> Problem:
        return self.group.problem

    @cached_property
    def texts(self) -> list[str]:
        """The normalised completions, as a reward model reads them."""
        return [normalise(answer.transcript) for answer in self.group.answers]

    def different(self, verdict: str, stopped: bool) -> list[str]:
        """The different completions with this verdict, in order of appearance; with `stopped` only whole ones."""
        rows = zip(self.group.answers, self.texts, self.verdicts, strict=True)
        texts = [text for answer, text, said in rows if said == verdict and (answer.stopped or not stopped)]
        return [text for text in dict.fromkeys(texts) if has_content(text)]

    def random(self, name: str) -> Random:
        """The group's random numbers of this name. Sources that use one name draw from it one after another.

        The name `pairs` has chosen the positives. A name that no other source uses makes a source's choices independent
        of the others.
        """
        return self._randoms.setdefault(name, Random(f"{name} {self.seed}"))

    @cached_property
    def _logit_of(self) -> dict[str, float]:
        return dict(zip(self.texts, self.logits, strict=True))

    def pair(self, positive: str, negative: str, negative_origin: str, origin: str | None = None) -> Pair:
        """A pair of this problem, with its logits before the update where they are known."""
        ids = (self.problem.id, self.problem.question, self.problem.answer)
        logits = (self._logit_of.get(positive), self._logit_of.get(negative))
        return Pair(*ids, positive, negative, origin or self.origin, negative_origin, *logits)


def choose_positives(group: PairGroup, count: int, rng: Random) -> list[str]:
    """Up to `count` different rule-accepted completions of a group, drawn at random.

    A completion that was cut at the length limit is never a positive, even if the rule found the answer in it.
    Texts are normalised before they are compared and kept in order of appearance, so equal seeds give equal choices.
    """
    candidates = group.different("correct", stopped=True)
    return rng.sample(candidates, min(count, len(candidates)))


def take_solutions(groups: Sequence[PairGroup], rule: Rule) -> None:
    """Use reference solutions as positives, if the rule accepts them or is silent on the problem."""
    texts = [(group, normalise(text)) for group in groups if (text := group.problem.solution) and has_content(text)]
    verdicts = rule.verify_problems([(group.problem, text) for group, text in texts])
    for (group, text), verdict in zip(texts, verdicts, strict=True):
        if verdict in ("correct", "silent"):
            group.positives, group.origin = [text], "reference_solution"


@dataclass(frozen=True)
class MadePairs:
    """What a source makes of a step's groups."""

    pairs: Sequence[Pair]
    metrics: Mapping[str, float] = field(default_factory=dict)
    """By their full names, such as `pairs/repaired`."""
    unpaired: Sequence[LabelledCompletion] = ()
    """Wrong completions of groups without a positive. The reward model learns from them alone, with a small weight."""
    labelled: Sequence[LabelledCompletion] = ()
    """Labelled completions that are learned from without a pair. The reward model learns from all of the step's
    together by the mean of their cross-entropy, as from pairs."""


class PairState:
    """State that a source or a filter keeps from step to step. By default there is none."""

    def state(self) -> dict[str, Any]:
        """As JSON values, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""

    def close(self) -> None:
        """Release what the part has opened, such as connections."""


class PairSource(PairState, ABC):
    """Makes pairs from the judged groups of a step."""

    def start(self, groups: Sequence[PairGroup], context: StepContext) -> Any:
        """Begin slow work on newly scored groups, such as requests to a server, and return at once.

        The policy may be updated until `pairs` is called, which gets the results of all calls of the step. `context`
        has the verdicts and scores of the groups' answers, from before the step's update.
        """
        return None

    @abstractmethod
    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        """The step's pairs, once nothing more is scored. A repeated pair counts once.

        `groups` are those to learn from, sorted by the id of their problem; `start` may have had more.
        """


class PairFilter(PairState, ABC):
    """Leaves out pairs of a step, or changes their weights; or decides when the reward model learns."""

    @abstractmethod
    def filter(self, pairs: Sequence[Pair], model: RewardModel) -> tuple[list[Pair] | None, dict[str, float]]:
        """The pairs to learn from, and metrics by their full names.

        `model` is the reward model that learns, from before the step's update. `with_logits` scores pairs. None leaves
        the step's update out, with its replay: for a filter that keeps the pairs and trains `model.learner` itself when
        it is time. It is called once a step, also in steps without pairs.
        """


@dataclass(frozen=True)
class PairInputs:
    """What a source or filter is built with."""

    config: CooptimizationConfig
    rule: Rule
    assistant: Assistant | None = None
    """The assistant of `cooptimization.assistant`, if a source uses it. It is closed with the run."""


class PairSourceConfig(Config):
    """The settings of a source of pairs. Each kind implements `build`."""

    writes_wrong_answers: ClassVar[bool] = False
    """Whether the source has wrong completions of problems too on which the rule is silent."""
    needs_reference: ClassVar[bool] = True
    """Whether problems need a reference answer that the rule accepts."""
    swaps_references: ClassVar[bool] = False
    """Whether it exchanges the reference in the reward model's input, which then has to be there."""

    @abstractmethod
    def build(self, inputs: PairInputs) -> PairSource | PairFilter:
        """The source. Raises InputError if it cannot work with these settings."""

    def check(self) -> None:
        """Raises InputError if a server that it needs does not answer."""

    def check_problems(self, problems: Sequence[Problem]) -> None:
        """Raises InputError if a problem lacks something that it needs, such as a reference solution."""


class PairFilterConfig(PairSourceConfig):
    """The settings of a filter of pairs, which makes none. Each kind implements `build`."""

    needs_reference: ClassVar[bool] = False


PAIRS = Kinds("pair source", "cooper_rl.reward.pairs.sources", ["build", "check", "writes_wrong_answers"])
"""The kinds of `cooptimization.pairs`: sources and filters."""

PairsConfig = Annotated[PairSourceConfig, PAIRS]


def valid_rate(origin: str, pairs: Sequence[Pair], groups: Sequence[PairGroup], count: int) -> dict[str, float]:
    """`pairs/<origin>_valid_rate`: the different pairs among the `count` wanted of each group that has a positive."""
    wanted = count * sum(bool(group.positives) for group in groups)
    return {f"pairs/{origin}_valid_rate": len(set(pairs)) / wanted} if wanted else {}
