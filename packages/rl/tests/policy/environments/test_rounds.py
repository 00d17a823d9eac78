"""Runs of several turns: what is sampled, what is masked, what judges read, and what an environment may do wrong."""

import threading
import time

import numpy as np
import pytest

import tool_run
from cooper_base.data.transcript import LONGEST_RESULT
from cooper_rl import InputError, NativeSampler, Problem, SamplingParams, load_policy, load_tokenizer
from cooper_rl.policy.environments import environment
from cooper_rl.policy.environments.environment import Environments
from cooper_rl.policy.rollout_bytes import from_bytes, to_bytes
from cooper_rl.records import Rollouts
from policy.environments.worlds import SUM, Faulty, Hanging, Script, call, rounds_of
from waiting import wait_for

PARAMS = SamplingParams(max_tokens=400)
RESPONSE = "\n<tool_response>\n{}\n</tool_response>\n"


def results_of(run):
    return [turn["content"] for turn in run.messages if turn["role"] == "tool"]


def draw(rounds, script, n=1, params=PARAMS, problems=(SUM,), seed=5):
    drawn = rounds.draw(script, list(problems), n, params, seed)
    assert script.rounds == [], "the script is not over"
    return drawn, list(drawn.samples.answers())


def test_one_tool_run_from_the_first_token_to_the_transcript():
    script = Script([f"I add them.\n{call(12)}", "answer: 19"], ["answer: 19"])
    drawn, (run, plain) = draw(rounds_of(), script, n=2)
    samples, decode = drawn.samples, script.tokenizer.decode
    assert run.transcript == tool_run.TEXT
    assert (run.text, run.stopped, run.verdict) == ("answer: 19", True, None)
    assert (plain.text, plain.messages) == ("answer: 19", None)
    written = f"I add them.\n{call(12)}<|end|>"
    assert decode(samples.token_ids[0]) == f"{written}{RESPONSE.format(19)}answer: 19<|end|>"
    mask = samples.written[: len(samples.token_ids[0])]
    assert decode(samples.token_ids[0][mask]) == f"{written}answer: 19<|end|>"
    assert decode(samples.token_ids[0][~mask]) == RESPONSE.format(19)
    np.testing.assert_array_equal(np.isnan(samples.logprobs), ~samples.written)
    assert run.tokens == mask.sum()
    # The second turn is sampled after exactly the tokens of the first, for the one rollout that called.
    assert script.asked[1][0] == [f"12+7?\n{written}{RESPONSE.format(19)}"]
    assert drawn.metrics == {
        "environment/calls": 1,
        "environment/failed_calls": 0,
        "environment/timeouts": 0,
        "environment/cut_results": 0,
        "environment/lost": 0,
        "environment/fault_rate": 0,
        "environment/turns": 1.5,
        "environment/unanswered": 0,
        "environment/reward": 0.5,
    }


def test_an_async_tool_works_too():
    _, (run,) = draw(rounds_of("AsyncAdder"), Script([call(12)], ["answer: 19"]))
    assert results_of(run) == ["19"]


def test_rollouts_that_call_nothing_are_those_of_a_run_without_environment(tiny_models):
    folder = str(tiny_models / "policy")
    sampler = NativeSampler(load_tokenizer(folder), load_policy(folder))
    rounds = rounds_of()
    problems, params = [SUM, Problem("other", "3*4?", "12")], SamplingParams(max_tokens=20)
    found = rounds.draw(sampler, problems, 4, params, 11)
    assert list(found.prompts) == [Script().tokenizer.encode(f"{one.question}\n") for one in problems]
    plain = sampler.sample(found.prompts, 4, params, 11)
    for name in ("logprobs", "stopped", "texts"):
        np.testing.assert_array_equal(getattr(found.samples, name), getattr(plain, name))
    np.testing.assert_array_equal(found.samples.token_ids.values, plain.token_ids.values)
    assert [one.transcript for one in found.samples.answers()] == [one.transcript for one in plain.answers()]


def test_a_rollout_that_is_still_calling_after_the_last_turn_counts_as_cut_off():
    drawn, (run,) = draw(rounds_of(max_turns=2), Script([call(1)], [f"more {call(2)}"]))
    assert (run.text, run.stopped) == ("more", False)
    assert drawn.metrics["environment/calls"] == 1  # the last one is not made
    assert drawn.metrics["environment/unanswered"] == 1


def test_all_turns_and_results_together_stay_within_max_tokens():
    script = Script([call(1), "done"], [f"{'9' * 60}"])
    first = len(script.tokenizer.encode(call(1))) + 1
    result = len(script.tokenizer.encode(RESPONSE.format(8)))
    params = SamplingParams(max_tokens=first + result + 10)
    drawn, (run, _) = draw(rounds_of(), script, n=2, params=params)
    assert len(drawn.samples.token_ids[0]) == params.max_tokens
    assert (run.text, run.stopped) == ("9" * 10, False)
    assert script.asked[1][2].max_tokens == 10


def test_a_result_without_room_ends_the_rollout():
    script = Script([call(1)])
    params = SamplingParams(max_tokens=len(script.tokenizer.encode(call(1))) + 10)
    drawn, (run,) = draw(rounds_of(), script, params=params)
    assert (run.stopped, drawn.metrics["environment/unanswered"]) == (False, 1)
    assert drawn.samples.written.all()


def test_a_turn_that_is_cut_off_calls_nothing():
    drawn, (run,) = draw(rounds_of(), Script([f"{call(1)}…"]))
    assert (run.stopped, drawn.metrics["environment/calls"]) == (False, 0)


def test_what_reset_shows_follows_the_question_and_is_not_trained():
    drawn, runs = draw(rounds_of("Fickle"), Script(["a", "bb", "c"]), n=3)
    rows = Rollouts.of([SUM], drawn.prompts, drawn.samples, 3, 0).sequences(range(3))
    texts = [Script().tokenizer.decode(row) for row in rows]
    assert [text[:8] for text in texts] == ["12+7?\n [" for _ in texts]
    assert len({text[8] for text in texts}) > 1  # each rollout has a seed of its own
    assert drawn.prompts == [Script().tokenizer.encode("12+7?\n [")]
    assert [run.tokens for run in runs] == [2, 3, 2]
    assert runs[0].transcript.startswith("<user>\n[")


def test_the_same_call_draws_the_same_rollouts():
    found = [draw(rounds_of("Fickle"), Script(["a", "b", "c"]), n=3, seed=seed)[0] for seed in (1, 1, 2)]
    first, again, other = ([row.tolist() for row in one.samples.token_ids] for one in found)
    assert first == again != other


def test_faults_are_results_and_are_counted():
    ways = [call("hang"), call("throw"), call("flood"), call("exit"), call(1).replace("add", "steal"), call(1)]
    ways += ['<tool_call>{"name": "add", "arguments": [1, 2]}</tool_call>', call(1).replace('"b"', '"c"')]
    script = Script(ways, [f"turn 2 of {i}" for i in range(len(ways))])
    start = time.monotonic()
    drawn, runs = draw(rounds_of("Faulty", timeout_s=0.5), script, n=len(ways), params=SamplingParams(max_tokens=4000))
    assert time.monotonic() - start < 5
    results = [results_of(run)[0] for run in runs]
    assert results[0] == "{'error': 'no result within 0.5 s'}"
    assert results[1] == "{'error': 'no luck'}"
    assert results[2].startswith("<|end|>xxx")
    assert len(results[2]) <= LONGEST_RESULT
    assert results[4] == "{'error': 'Tool steal not found.'}"
    assert results[5] == "fine"
    assert results[6] == "{'error': 'the arguments are no JSON object'}"
    assert "unexpected keyword argument 'c'" in results[7]
    counts = {name: drawn.metrics[f"environment/{name}"] for name in ("calls", "failed_calls", "timeouts", "lost")}
    assert counts == {"calls": 8, "failed_calls": 6, "timeouts": 1, "lost": 2}
    assert drawn.metrics["environment/cut_results"] == 1
    # Markup in a result is text for the policy: only its own ends of turn are tokens.
    ends = drawn.samples.token_ids[2] == script.tokenizer.eos_token_id
    assert ends.sum() == 2
    assert all(run.text == f"turn 2 of {i}" and run.stopped for i, run in enumerate(runs))


def test_the_first_fault_of_each_kind_is_logged_with_its_line_and_a_mistake_of_the_policy_is_not(caplog):
    ways = [call("hang"), call("throw"), call("throw"), call(1).replace("add", "steal"), call(1).replace('"b"', '"c"')]
    drawn, _ = draw(rounds_of("Faulty", timeout_s=0.5), Script(ways, ["x"] * 5), n=5)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "policy.environments.worlds:Faulty: add() failed: TimeoutError: no result within 0.5 s" in said[0]
    assert "add() failed: RuntimeError: no luck (policy.environments.worlds:Faulty.add, worlds.py:" in said[1]
    assert drawn.metrics["environment/fault_rate"] == 3 / 5


def test_a_reset_that_shows_too_much_is_logged_with_the_setting(caplog):
    draw(rounds_of("Fickle"), Script(["a"]), params=SamplingParams(max_tokens=3))
    assert "reset() failed: what it shows has 4 tokens, and rollout.max_tokens, 3, leaves no room" in caplog.text


def test_an_environment_that_hung_is_replaced_and_not_asked_again():
    rounds = rounds_of("Faulty", timeout_s=0.5, outside=True)
    script = Script([call("hang"), call(1)], [call(1), "b"], ["c"])
    _, (hung, well) = draw(rounds, script, n=2)
    assert results_of(hung)[1] == "{'error': 'the environment does not answer any more'}"
    assert (hung.verdict, well.verdict) == ("silent", "correct")
    made = Faulty.made
    _, (again, _) = draw(rounds, Script([call(1), "b"], ["c"]), n=2)
    assert results_of(again) == ["fine"]
    assert Faulty.made == made + 1


def _hanging_threads() -> int:
    return sum(thread.name == "environment" for thread in threading.enumerate())


@pytest.mark.parametrize(("world", "how"), [("Hanging", "python"), ("AsyncHanging", 1)])
def test_calls_that_hang_in_python_leave_no_threads(world, how):
    rounds = rounds_of(world, timeout_s=0.3)
    for _ in range(3):
        drawn, _ = draw(rounds, Script([call(how)] * 20, ["x"] * 20), n=20)
        assert drawn.metrics["environment/lost"] == 20
    assert wait_for(lambda: _hanging_threads() == 0, 20)


def test_threads_of_calls_that_hang_in_the_system_are_bounded_and_their_room_comes_back(monkeypatch, caplog):
    monkeypatch.setattr(environment, "MOST_HANGING", 24)
    rounds = rounds_of("Hanging", timeout_s=0.3)
    timeouts = []
    for _ in range(3):
        drawn, _ = draw(rounds, Script([call("system")] * 20, ["x"] * 20), n=20)
        timeouts.append(drawn.metrics["environment/timeouts"])
        assert wait_for(lambda: _hanging_threads() <= 24, 20)  # a call that has answered may still be ending
    assert timeouts == [20, 4, 0]
    assert "not called: 24 calls of environments that took too long have not ended yet" in caplog.text
    Hanging.released.set()
    assert wait_for(lambda: _hanging_threads() == 0, 20)
    _, (run,) = draw(rounds, Script([call("well")], ["x"]), n=1)
    assert results_of(run) == ["7"]


def test_get_reward_is_a_verdict_where_the_rule_is_outside():
    script = [call(1), "b"], ["c"]
    _, judged = draw(rounds_of(outside=True), Script(*script), n=2)
    assert [one.verdict for one in judged] == ["correct", "wrong"]
    _, others = draw(rounds_of(), Script(*script), n=2)
    assert [one.verdict for one in others] == [None, None]


def test_a_get_reward_that_throws_or_gives_no_number_leaves_nobody_to_judge():
    script = Script([call(1)] * 3, [call(1), call(1), "done"], [call(1), "done"], ["done"])
    drawn, runs = draw(rounds_of("Faulty", outside=True), script, n=3, params=SamplingParams(max_tokens=2000))
    assert [one.verdict for one in runs] == ["silent", "silent", "correct"]
    assert drawn.metrics["environment/lost"] == 2


def test_an_environment_that_cannot_begin_costs_its_rollouts_only():
    broken = Problem("broken", "broken?", "1")
    drawn, runs = draw(rounds_of("Fickle", outside=True), Script([call(1)] * 8, ["x"] * 8), n=8, problems=[broken])
    lost = int(drawn.metrics["environment/lost"])
    assert 0 < lost < 8
    assert [one.verdict for one in runs].count("silent") == lost


def test_rollouts_with_runs_survive_as_bytes():
    drawn, _ = draw(rounds_of(outside=True), Script([call(1), "b"], ["c"]), n=2)
    rollouts = Rollouts.of([SUM], drawn.prompts, drawn.samples, 2, 3)
    back = from_bytes(to_bytes(rollouts))
    assert [one.record() for one in back.answers()] == [one.record() for one in rollouts.answers()]
    np.testing.assert_array_equal(back.written, rollouts.written)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("policy.environments.worlds:call", "not a class with a method `reset`"),
        ("policy.environments.worlds:Script", "not a class with a method `reset`"),
        ("policy.environments.worlds:Nothing", "Nothing does not exist"),
    ],
)
def test_what_is_no_environment_is_refused(path, message):
    with pytest.raises(InputError, match=message):
        Environments(path, 1)


def test_an_environment_that_cannot_be_reset_is_refused_before_the_run():
    with pytest.raises(InputError, match=r"Undescribed: reset\(\) failed: TypeError"):
        Environments("policy.environments.test_rounds:Undescribed", 1).check(SUM)


class Undescribed:
    def reset(self, wanted):
        """Needs a field that the problems do not have."""
