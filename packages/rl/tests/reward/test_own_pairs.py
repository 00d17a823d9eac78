"""A source and a filter of pairs from outside: a run learns from them, and a checkpoint holds their state."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl import (
    Answer,
    AnswerGroup,
    CooperReward,
    CooperRewardConfig,
    InputError,
    MadePairs,
    PairFilter,
    PairFilterConfig,
    PairGroup,
    PairSource,
    PairSourceConfig,
    Problem,
)
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooptimization_cases import answer_text, context_of, make_group  # pyright: ignore[reportMissingImports]


class Numbered(PairSourceConfig):
    """A negative that nobody wrote: a number that grows with every pair of the run."""

    first: int = 100

    def build(self, inputs):
        return NumberedSource(self.first)


class NumberedSource(PairSource):
    def __init__(self, first: int) -> None:
        self.next = first

    def start(self, groups, context):
        return {group.id: context.verdicts[0] for group in groups}

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Any]) -> MadePairs:
        assert {id for of_call in started for id in of_call} >= {group.id for group in groups}
        pairs = []
        for group in groups:
            pairs += [group.pair(text, answer_text(self.next), "numbered") for text in group.positives[:1]]
            self.next += 1
        return MadePairs(pairs, {"part/next": float(self.next)})

    def state(self):
        return {"next": self.next}

    def restore(self, state):
        self.next = state["next"]


class Alternating(PairFilterConfig):
    """Weights the pairs of every second step three times."""

    def build(self, inputs):
        return AlternatingFilter()


class AlternatingFilter(PairFilter):
    steps = 0

    def filter(self, pairs, model):
        self.steps += 1
        weight = 3.0 if self.steps % 2 else 1.0
        return [replace(pair, weight=weight) for pair in pairs], {"part/weight": weight}

    def state(self):
        return {"steps": self.steps}

    def restore(self, state):
        self.steps = state["steps"]


OWN = [{"kind": f"{__name__}:Numbered", "first": 200}, {"kind": f"{__name__}:Alternating"}]
MODEL = {"model": str(ASSETS / "reward_model"), "max_input_tokens": 160}


def reward(*pairs: dict[str, object]) -> CooperReward:
    settings = {"kind": "cooper", "reward_model": MODEL, "cooptimization": {"pairs": pairs or OWN, "epochs": 1}}
    return CooperReward.from_config(CooperRewardConfig.model_validate(settings))


def step(cooper: CooperReward, number: int):
    groups = [
        AnswerGroup(str(n), Problem(str(n), f"{n} + 1 = ?", str(n + 1)), [Answer(f"{n}+1={n + 1} answer: {n + 1}")])
        for n in range(number, number + 3)
    ]
    return cooper.update(cooper.score(groups, step=number))


def test_a_run_learns_from_its_pairs_and_goes_on_from_a_checkpoint(tmp_path):
    with reward() as whole:
        first = step(whole, 1)
        whole.save(tmp_path)
        second = step(whole, 2)
    assert [(pair.negative, pair.negative_origin, pair.weight) for pair in first.pairs] == [
        (answer_text(number), "numbered", 3.0) for number in (200, 201, 202)
    ]
    assert (first.metrics["part/next"], first.metrics["part/weight"]) == (203, 3)
    assert first.metrics["reward_model/pair_accuracy_before_numbered"] >= 0
    with reward() as resumed:
        resumed.load(tmp_path)
        again = step(resumed, 2)
    assert again.pairs == second.pairs
    assert [pair.weight for pair in again.pairs] == [1.0] * 3
    assert again.pairs[0].negative == answer_text(203)


def test_a_checkpoint_of_other_parts_that_keep_state_is_refused(tmp_path):
    with reward() as cooper:
        step(cooper, 1)
        cooper.save(tmp_path)
    with (
        reward({"kind": "on_policy"}) as other,
        pytest.raises(InputError, match=r"cooptimization.pairs: the checkpoint has the state of .*Numbered"),
    ):
        other.load(tmp_path)
    with reward({"kind": "on_policy"}, *OWN) as more:  # what keeps no state may be added and left out
        more.load(tmp_path)


def test_what_a_source_draws_depends_on_the_step_the_problem_and_its_own_name_alone(verifier):
    config = CooptimizationConfig.model_validate({"pairs": [{"kind": "on_policy"}]})
    groups = [make_group([answer_text(n)], str(n), id=str(n)) for n in (20, 30, 40)]

    def drawn(order: Sequence[AnswerGroup], step: int, *names: str) -> list[float]:
        """The last draw of each problem, after one of every name before it."""
        started = Cooptimizer(config, verifier).start(context_of(order, verifier), step)
        return [[group.random(name).random() for name in names][-1] for group in started.groups]

    expected = drawn(groups, 1, "mine")
    assert drawn(groups[::-1], 1, "other", "mine") == expected
    assert len({*expected, *drawn(groups, 2, "mine"), *drawn(groups, 1, "other")}) == 9
