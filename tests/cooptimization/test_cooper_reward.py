"""The co-trained reward as one object that needs only texts: its guarantees for other trainers."""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from cooper_rl import Answer, AnswerGroup, CooperReward, CooperRewardConfig, InputError, Problem
from cooper_rl.engines.clock import MEASURED
from in_process import model_of

CORRUPTER = {"kind": "corrupter", "function": "test_cooper_reward:flip"}
REPLAY = {"pairs_per_step": 3, "capacity": 6}


def flip(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    return completion_text.replace(problem.answer, str(int(problem.answer) + 1 + attempt))


def slow_flip(problem: Problem, completion_text: str, attempt: int, seed: int) -> str:
    time.sleep(0.05)
    return flip(problem, completion_text, attempt, seed)


def group(number: int, size: int = 4) -> AnswerGroup:
    """The sum that makes `number`; every second answer is right."""
    answers = [Answer(f"{i + 1} + {number - i - 1} makes {number + 7 * (i % 2)}") for i in range(size)]
    return AnswerGroup(f"g{number}", Problem(f"p{number}", f"{number - 1} + 1 = ?", str(number)), answers)


def groups(first: int, sizes: Sequence[int] = (4, 4, 4, 4)) -> list[AnswerGroup]:
    return [group(first + i, size) for i, size in enumerate(sizes)]


@pytest.fixture
def make(tiny_models):
    made = []

    def make(**settings) -> CooperReward:
        model = {"model": str(tiny_models / "reward_model"), "learning_rate": 1e-2, "max_input_tokens": 160}
        cooptimization = {"assistant": CORRUPTER, "replay": REPLAY}
        given = {"kind": "cooper", "reward_model": model, "cooptimization": cooptimization} | settings
        made.append(CooperReward.from_config(CooperRewardConfig.model_validate(given)))
        return made[-1]

    yield make
    for reward in made:
        reward.close()


def weights(reward: CooperReward) -> list[torch.Tensor]:
    assert reward.learning is not None
    return [parameter.detach().clone() for parameter in model_of(reward.learning.learner).parameters()]


def assert_equal_but_for_last_bits(found: Sequence[Any], expected: Sequence[Any]) -> None:
    """The same pairs, with nearly the same logits."""
    for one, other in zip(found, expected, strict=True):
        for name in ("positive_logit_before", "negative_logit_before"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-5)
        logits = {name: getattr(other, name) for name in ("positive_logit_before", "negative_logit_before")}
        assert replace(one, **logits) == other


def same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    return all(map(torch.equal, one, other))


@pytest.mark.parametrize("kind", ["cooper", "hybrid"])
def test_the_order_of_groups_and_a_second_scoring_change_nothing(make, kind):
    """All but the last bits of scores and logits, which on some processors differ by the order in a batch."""
    one, other = make(kind=kind), make(kind=kind)
    sizes = (4, 2, 3, 5, 4)
    for step in (1, 2):
        given = groups(10 * step, sizes)
        forwards = one.score(given, step=step)
        backwards = other.score(given[::-1], step=step)
        again = other.score(given[::-1], step=step)
        assert (again.rewards, again.logits, again.verdicts) == (
            backwards.rewards,
            backwards.logits,
            backwards.verdicts,
        )
        for ours, theirs in zip(forwards.rewards, backwards.rewards[::-1], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)
        assert [len(row) for row in forwards.rewards] == list(sizes)
        found, expected = one.update(step).pairs, other.update(step).pairs
        assert found
        assert_equal_but_for_last_bits(found, expected)
        for ours, theirs in zip(weights(one), weights(other), strict=True):
            torch.testing.assert_close(ours, theirs)
        other.score(groups(70), train=False)


def test_calls_of_one_step_add_up(make):
    """All but the last bits of the logits before the update, which on some processors differ by a call's batch."""
    whole, parts = make(), make()
    given = groups(10)
    whole.score(given, step=1)
    for one in (given[2:], given[:1], given[1:3]):
        parts.score(one, step=1)
    assert_equal_but_for_last_bits(parts.update(1).pairs, whole.update(1).pairs)
    assert same(weights(parts), weights(whole))


def test_a_mixed_repeat_gets_what_was_stored(make):
    reward, given = make(), groups(10)
    first = reward.score(given[:2], step=1)
    again = reward.score([given[1], given[3], given[0]], step=1)
    assert [again.rewards[0], again.rewards[2]] == first.rewards[::-1]
    assert again.verdicts[2] == first.verdicts[0] == ["correct", "wrong", "correct", "wrong"]


def test_an_id_that_comes_back_with_other_content_is_refused(make):
    reward = make()
    reward.score([group(10)], step=1)
    with pytest.raises(InputError, match="g10: step 1 has already scored a group with this id but other content"):
        reward.score([group(10, size=2)], step=1)


def test_a_step_is_updated_once(make):
    reward = make()
    reward.score(groups(10), step=3)
    with pytest.raises(InputError, match=r"step 4: step 3 was scored but not updated; call update\(3\)"):
        reward.score(groups(20), step=4)
    first = reward.update(3)
    after = weights(reward)
    assert reward.update(3) is first
    assert same(weights(reward), after)
    assert (reward.version, reward.last_step) == (1, 3)
    for behind in (lambda: reward.update(2), lambda: reward.score(groups(20), step=3)):
        with pytest.raises(InputError, match="step 3 is already updated"):
            behind()
    assert reward.score(groups(20)).version == 1
    assert reward.update(4).step == 4


def test_only_kept_groups_become_pairs_and_evaluated_ones_never_do(make):
    reward = make()
    reward.score(groups(10), step=1)
    reward.score(groups(50), step=1, train=False)
    with pytest.raises(InputError, match="keep names groups that were not scored: g50"):
        reward.update(1, keep=["g10", "g50"])
    assert {pair.problem_id for pair in reward.update(1, keep=["g10", "g12"]).pairs} == {"p10", "p12"}


@pytest.mark.parametrize("kind", ["cooper", "hybrid"])
def test_a_loaded_reward_continues_bit_for_bit(make, tmp_path, kind):
    def steps(reward: CooperReward, numbers: Sequence[int]):
        for step in numbers:
            scored = reward.score(groups(10 * step), step=step)
            yield scored.rewards, scored.metrics["rule/accuracy"], reward.update(step).pairs

    whole, first, resumed = make(kind=kind), make(kind=kind), make(kind=kind)
    expected = list(steps(whole, range(1, 6)))
    assert list(steps(first, (1, 2, 3))) == expected[:3]
    first.save(tmp_path / "saved")
    resumed.load(tmp_path / "saved")
    assert resumed.update(3).pairs == expected[2][2]  # a repeated call, as after a restart
    assert list(steps(resumed, (4, 5))) == expected[3:]
    assert same(weights(resumed), weights(whole))
    resumed.save(tmp_path / "resumed")
    whole.save(tmp_path / "whole")
    states = [json.loads((tmp_path / name / "reward.json").read_text()) for name in ("resumed", "whole")]
    for state in states:
        state["last"]["metrics"] = {k: v for k, v in state["last"]["metrics"].items() if not k.startswith(MEASURED)}
    assert states[0] == states[1]


@pytest.mark.parametrize(("text", "why"), [("[]", "no JSON object"), ("{", "no JSON"), ("{}", "outline is missing")])
def test_a_damaged_state_is_bad_input(make, tmp_path, text, why):
    (tmp_path / "reward.json").write_text(text)
    with pytest.raises(InputError, match=rf"reward\.json: damaged, {why}.*; restore another checkpoint"):
        make().load(tmp_path)


def test_a_checkpoint_that_does_not_fit_is_refused(make, tmp_path):
    reward = make()
    reward.score(groups(10), step=1)
    with pytest.raises(InputError, match="step 1 is under way"):
        reward.save(tmp_path)
    reward.update(1)
    reward.save(tmp_path)
    with pytest.raises(InputError, match=r"rewards: the checkpoint .* has reward_model\(main\), this run has hybrid"):
        make(kind="hybrid").load(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        reward.load(tmp_path / "nowhere")


def test_scores_during_updates_come_from_one_version_each(make):
    slow = {"assistant": {**CORRUPTER, "function": "test_cooper_reward:slow_flip"}, "replay": REPLAY, "epochs": 2}
    reward, probe = make(cooptimization=slow), groups(90)
    seen: list[tuple[int, list[list[float]]]] = []
    done = threading.Event()

    def look():
        while not done.is_set():
            found = reward.score(probe, train=False)
            seen.append((found.version, found.rewards))

    watchers = [threading.Thread(target=look) for _ in range(2)]
    whole = {0: reward.score(probe, train=False).rewards}
    for watcher in watchers:
        watcher.start()
    for step in range(1, 5):
        reward.score(groups(10 * step), step=step)
        reward.update(step)
        time.sleep(0.1)
        whole[step] = reward.score(probe, train=False).rewards
    done.set()
    for watcher in watchers:
        watcher.join()
    assert len({version for version, _ in seen}) >= 3
    assert all(rewards == whole[version] for version, rewards in seen)
    assert len({str(rewards) for rewards in whole.values()}) == 5


def test_a_later_call_of_a_step_is_paid_by_what_the_step_has_shown_and_the_weight_of_all_is_recorded(make, tiny_models):
    """The rule has spoken in the first call, although it is silent on all of the second."""
    model = {"model": str(tiny_models / "reward_model"), "max_input_tokens": 160, "learns": True}
    reward = make(kind=None, reward_model=None, reward_models={"main": model}, rewards=[{"kind": "earned"}])
    heard = groups(20)
    silent = [replace(one, answers=[replace(answer, verdict="silent") for answer in one.answers]) for one in groups(40)]
    weight = reward.score(heard, step=1).metrics["earned/weight"]
    assert weight < 1
    assert reward.score(silent, step=1).metrics["earned/weight"] == weight
    sharper = reward.score(groups(60, (8,)), step=1).metrics["earned/weight"]
    together = reward.score([*heard, *silent, *groups(60, (8,))], step=1).metrics["earned/weight"]
    assert together == pytest.approx((32 * weight + 8 * sharper) / 40)
