"""The co-trained reward as one object that needs only texts: its guarantees for other trainers."""

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
import torch

from cooper_rl import Answer, AnswerGroup, CooperReward, CooperRewardConfig, InputError, Problem
from cooper_rl.engines.base import RewardModelLearner
from cooper_rl.reward.context import Logits, logits_of_inputs
from cooper_rl.reward.scored import Scored
from in_process import model_of

CORRUPTER = {"kind": "corrupter", "function": "test_cooper_reward:flip"}
REPLAY = {"pairs_per_step": 3}


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
        given = {"kind": "cooper_model", "reward_model": model, "cooptimization": cooptimization} | settings
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


@pytest.mark.parametrize("kind", ["reward_model", "hybrid"])
def test_the_order_of_groups_and_a_second_scoring_change_nothing(make, kind):
    """All but the last bits of scores and logits, which on some processors differ by the order in a batch."""
    one, other = make(rewards=[{"kind": kind}]), make(rewards=[{"kind": kind}])
    sizes = (4, 2, 3, 5, 4)
    for step in (1, 2):
        given = groups(10 * step, sizes)
        forwards = one.score(given, step=step)
        backwards = other.score(given[::-1], step=step)
        again = other.score(given[::-1], train=False)
        assert (again.rewards, again.logits, again.verdicts) == (
            backwards.rewards,
            backwards.logits,
            backwards.verdicts,
        )
        for ours, theirs in zip(forwards.rewards, backwards.rewards[::-1], strict=True):
            assert ours == pytest.approx(theirs, abs=1e-5)
        assert [len(row) for row in forwards.rewards] == list(sizes)
        found, expected = one.update(forwards).pairs, other.update(backwards).pairs
        assert found
        assert_equal_but_for_last_bits(found, expected)
        for ours, theirs in zip(weights(one), weights(other), strict=True):
            torch.testing.assert_close(ours, theirs)
        other.score(groups(70), train=False)


def test_calls_of_one_step_add_up(make):
    """All but the last bits of the logits before the update, which on some processors differ by a call's batch."""
    whole, parts = make(), make()
    given = groups(10)
    expected = whole.update(whole.score(given)).pairs
    calls = [parts.score(one) for one in (given[2:], given[:1], given[1:2])]
    assert_equal_but_for_last_bits(parts.update(calls).pairs, expected)
    assert same(weights(parts), weights(whole))


def test_groups_of_several_calls_are_joined_and_the_update_still_learns_from_all(make):
    reward, whole, given = make(), make(), groups(10)
    first, second = reward.score(given[:2]), reward.score(given[2:])
    joined = Scored.joined([first, second], [given[1], given[3], given[0]])
    assert joined.rewards == [first.rewards[1], second.rewards[1], first.rewards[0]]
    assert joined.verdicts[0] == ["correct", "wrong", "correct", "wrong"]
    assert_equal_but_for_last_bits(reward.update(joined).pairs, whole.update(whole.score(given)).pairs)


def test_a_step_with_an_id_twice_is_refused(make):
    reward = make()
    first = reward.score([group(10)])
    for again in (lambda: reward.score([group(11), group(11)]), lambda: reward.score([group(10, 2)], earlier=[first])):
        with pytest.raises(InputError, match=r"step 1: group g1[01] is in it twice; give every group"):
            again()
    with pytest.raises(InputError, match="step 1: group g10 is in it twice"):
        reward.update([first, first])


def test_only_answers_of_the_present_step_and_version_are_learned_from(make):
    reward = make()
    first, later, third = (reward.score([group(10 * step)], step=step) for step in (3, 4, 3))
    with pytest.raises(InputError, match="answers of step 3 and step 4; update one step after the other"):
        reward.update([first, later])
    with pytest.raises(InputError, match="train=False are never learned from"):
        reward.update([first, reward.score(groups(50), train=False)])
    with pytest.raises(InputError, match="step 5: the answers were scored for step 3"):
        reward.update(first, step=5)
    assert reward.update(first).step == 3
    after = weights(reward)
    assert (reward.version, reward.last_step) == (1, 3)
    for behind in (
        lambda: reward.update(first),
        lambda: reward.update(third),
        lambda: reward.score([group(9)], step=3),
    ):
        with pytest.raises(InputError, match="step 3 is already updated"):
            behind()
    with pytest.raises(InputError, match=r"step 4: version 0 of the reward model scored its answers, .* at version 1"):
        reward.update(later)
    assert same(weights(reward), after)
    assert reward.score(groups(20)).version == 1
    assert reward.update([], step=6).step == 6


def test_only_kept_groups_become_pairs_and_evaluated_ones_never_do(make):
    reward = make()
    scored = reward.score(groups(10))
    reward.score(groups(50), train=False)
    with pytest.raises(InputError, match="keep names groups that were not scored: g50"):
        reward.update(scored, keep=["g10", "g50"])
    assert {pair.problem_id for pair in reward.update(scored, keep=["g10", "g12"]).pairs} == {"p10", "p12"}


@pytest.mark.parametrize("kind", ["reward_model", pytest.param("hybrid", marks=pytest.mark.slow)])
def test_a_loaded_reward_continues_bit_for_bit(make, tmp_path, kind):
    def steps(reward: CooperReward, numbers: Sequence[int]):
        for step in numbers:
            scored = reward.score(groups(10 * step), step=step)
            yield scored.rewards, scored.metrics["rule/accuracy"], reward.update(scored).pairs

    whole, first, resumed = (
        make(rewards=[{"kind": kind}]),
        make(rewards=[{"kind": kind}]),
        make(rewards=[{"kind": kind}]),
    )
    expected = list(steps(whole, range(1, 6)))
    assert list(steps(first, (1, 2, 3))) == expected[:3]
    first.save(tmp_path / "saved")
    resumed.load(tmp_path / "saved")
    assert list(steps(resumed, (4, 5))) == expected[3:]
    assert same(weights(resumed), weights(whole))
    resumed.save(tmp_path / "resumed")
    whole.save(tmp_path / "whole")
    states = [json.loads((tmp_path / name / "reward.json").read_text()) for name in ("resumed", "whole")]
    assert states[0] == states[1]


@pytest.mark.parametrize(
    ("text", "why"), [("[]", "not a JSON object"), ("{", "not JSON"), ("{}", "outline is missing")]
)
def test_a_damaged_state_is_bad_input(make, tmp_path, text, why):
    (tmp_path / "reward.json").write_text(text)
    with pytest.raises(InputError, match=rf"reward\.json: damaged, {why}.*; restore another checkpoint"):
        make().load(tmp_path)


def test_a_checkpoint_that_does_not_fit_is_refused(make, tmp_path):
    reward = make()
    reward.update(reward.score(groups(10)))
    reward.save(tmp_path)
    with pytest.raises(InputError, match=r"rewards: the checkpoint .* has reward_model, this run has hybrid"):
        make(rewards=[{"kind": "hybrid"}]).load(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        reward.load(tmp_path / "nowhere")


def test_a_checkpoint_between_scores_and_update_is_the_state_before_the_step(make, tmp_path):
    whole, resumed = make(), make()
    whole.update(whole.score(groups(10)))
    scored = whole.score(groups(20))
    whole.save(tmp_path)
    expected = whole.update(scored).pairs
    stale = resumed.score(groups(20))
    resumed.load(tmp_path)
    with pytest.raises(InputError, match="step 1 is already updated"):
        resumed.update(stale)
    assert resumed.update(resumed.score(groups(20))).pairs == expected
    assert same(weights(resumed), weights(whole))


@pytest.mark.slow
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
        reward.update(reward.score(groups(10 * step)))
        time.sleep(0.1)
        whole[step] = reward.score(probe, train=False).rewards
    done.set()
    for watcher in watchers:
        watcher.join()
    assert len({version for version, _ in seen}) >= 3
    assert all(rewards == whole[version] for version, rewards in seen)
    assert len({str(rewards) for rewards in whole.values()}) == 5


def test_a_later_call_of_a_step_is_paid_by_what_the_step_has_shown_and_the_weight_of_all_is_recorded(make):
    """The rule has spoken in the first call, although it is silent on all of the second."""
    reward = make(kind="cooper")
    heard = groups(20)
    silent = [replace(one, answers=[replace(answer, verdict="silent") for answer in one.answers]) for one in groups(40)]
    first = reward.score(heard)
    weight = first.metrics["earned/weight"]
    assert weight < 1
    second = reward.score(silent, earlier=[first])
    assert second.metrics["earned/weight"] == weight
    third = reward.score(groups(60, (8,)), earlier=[first, second])
    together = Scored.joined([first, second, third], [*heard, *silent, *groups(60, (8,))])
    sharper = third.metrics["earned/weight"]
    assert together.metrics["earned/weight"] == pytest.approx((32 * weight + 8 * sharper) / 40)


def test_a_reward_model_is_not_asked_about_nothing():
    """Where all inputs are known already; an engine of one's own need not have an answer."""

    class Asked:
        def score(self, token_ids: list[list[int]]) -> torch.Tensor:
            assert token_ids
            return torch.zeros(len(token_ids))

    known: Logits = {(1, 2): 3.0}
    learner = cast(RewardModelLearner, Asked())
    assert logits_of_inputs(learner, [[1, 2], [1, 2]], known).tolist() == [3.0, 3.0]
    assert logits_of_inputs(learner, [[1, 2], [4]], known).tolist() == [3.0, 0.0]
    assert logits_of_inputs(learner, [], known).tolist() == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kind": "rule", "reward_modle": {}}, "unknown key 'reward_modle'; did you mean 'reward_model'?"),
        ({"kind": "rule", "rewards": "rule"}, r"rewards: write a list: \[\.\.\.\]"),
    ],
)
def test_settings_given_as_they_are_name_their_mistakes(settings, words):
    with pytest.raises(InputError, match=words):
        CooperReward.from_config(settings)
