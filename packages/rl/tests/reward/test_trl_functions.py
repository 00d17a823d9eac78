"""Reward functions written for TRL run as they are: called once with lists, by name, with the columns they take."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from trl.rewards.format_rewards import think_format_reward
from trl.rewards.other_rewards import get_soft_overlong_punishment

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_rl import CooperTrainer, InputError, build_config, read_metrics
from cooper_rl.reward.context import StepContext
from cooper_rl.reward.kinds.function import FunctionReward, FunctionRewardConfig
from cooper_verify.rules.rule import Rule

CALLS: list[dict[str, Any]] = []


def contains_answer(completions, answer, **kwargs):
    CALLS.append({name: value for name, value in kwargs.items() if not name.startswith(("log_", "trainer_"))})
    return [1.0 if own in text else 0.0 for text, own in zip(completions, answer, strict=True)]


def first_message(prompts, completions, level=None):
    assert all(prompt[-1]["role"] == "user" for prompt in prompts)
    return [float(len(completion[0]["content"])) for completion in completions]


async def sometimes(completions, prompts=None, answer=None, **kwargs):
    return [None if not text else 2.0 for text in completions]


def of_a_column(completions, difficulty):
    return [float(one) for one in difficulty]


def logs(completions, log_metric, log_extra):
    for text in completions:
        log_metric("length", len(text))
    log_extra("length", [len(text) for text in completions])
    log_extra("text", completions)
    return [1.0] * len(completions)


def warms_up(completions, trainer_state):
    CALLS.append({"step": trainer_state.global_step, "of": trainer_state.max_steps})
    return [float(trainer_state.global_step)] * len(completions)


def of_ids(completion_ids, **kwargs):
    return [float(len(ids)) for ids in completion_ids]


def may_read_ids(completions, completion_ids=None):
    return [-1.0] * len(completions) if completion_ids is None else of_ids(completion_ids)


def logs_of_libraries(completions, log_extra):
    log_extra("array", np.arange(len(completions)))
    log_extra("tensor", torch.arange(len(completions)))
    log_extra("numbers", [np.float32(0), np.int64(1)])
    log_extra("truth", [np.bool_(False), True])
    log_extra("nothing", [None] * len(completions))
    log_extra("digits", ["0", "1"])
    return np.ones(len(completions), np.float32)


def too_few(completions, **kwargs):
    return [1.0]


class NoRule(Rule):
    def verify_problems(self, asked):
        raise AssertionError("no verdicts are needed")

    def rule_name(self, problem) -> str:
        raise AssertionError("no rule is needed")


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setitem(sys.modules, "trl_functions", sys.modules[__name__])
    CALLS.clear()


def _rewards(function: str | Callable[..., Any], *texts: str, **settings: Any) -> list[float]:
    chat = settings.pop("messages", None)
    problem = Problem("p", "1+1?", "2", metadata={"level": "easy"}, messages=chat)
    group = AnswerGroup("p", problem, [Answer(text) for text in texts])
    reward = FunctionReward(f"trl_functions:{function}", **settings)
    return reward.score(StepContext([group], NoRule())).rewards.rows()[0]


def test_texts_and_columns_come_as_lists_by_name():
    assert _rewards("contains_answer", "it is 2", "3") == [1.0, 0.0]
    assert len(CALLS) == 1
    assert CALLS[0] == {"prompts": ["1+1?"] * 2, "level": ["easy"] * 2, "id": ["p"] * 2, "question": ["1+1?"] * 2}


def test_completions_are_messages_where_the_problem_is_a_chat_or_the_setting_says_so():
    assert _rewards("first_message", "four", messages=[{"role": "user", "content": "1+1?"}]) == [4.0]
    assert _rewards("first_message", "four", chats=True) == [4.0]


def test_an_async_function_may_return_none_for_no_opinion():
    assert str(_rewards("sometimes", "a", "")) == "[2.0, nan]"


def test_trls_own_functions_run(monkeypatch):
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "think", think_format_reward, raising=False)
    assert _rewards("think", "<think>\nIt is easy.\n</think>\n2", "2", chats=True) == [1.0, 0.0]
    punish = get_soft_overlong_punishment(max_completion_len=8, soft_punish_cache=4)
    monkeypatch.setattr(module, "punish", punish, raising=False)
    answers = [Answer(text, token_ids=np.arange(count)) for text, count in (("2", 3), ("2 again", 6))]
    group = AnswerGroup("p", Problem("p", "1+1?", "2"), answers)
    reward = FunctionReward("trl_functions:punish")
    assert reward.score(StepContext([group], NoRule())).rewards.rows()[0] == [0.0, -0.5]


@pytest.mark.parametrize(("function", "refused"), [("of_ids", True), ("may_read_ids", False)])
def test_ids_of_tokens_are_passed_where_they_are_known_and_required_nowhere_else(settings, function, refused):
    if refused:
        with pytest.raises(InputError, match="of_ids: takes 'completion_ids', which only the loop"):
            _rewards(function, "a")
    else:
        assert _rewards(function, "a") == [-1.0]
    reward = {"kind": "function", "function": f"trl_functions:{function}"}
    run = {**settings, "kind": "function", "rewards": [reward], "steps": 1, "evaluation": {"every": 0}}
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
    (row,) = read_metrics(trainer.directory)
    assert row["reward/mean"] == pytest.approx(row["rollout/mean_length"])


def test_a_column_that_the_data_lack_is_refused_before_training(settings):
    reward = {"kind": "function", "function": "trl_functions:of_a_column"}
    with pytest.raises(InputError, match=r"of_a_column: takes 'difficulty', but problem \S+ has no such field; it has"):
        CooperTrainer.from_config(build_config({**settings, "kind": "function", "rewards": [reward]}))


def test_a_list_of_the_wrong_length_names_the_function():
    with pytest.raises(InputError, match="trl_functions:too_few: returned 1 values for 2 completions"):
        _rewards("too_few", "a", "b")


def test_a_run_is_paid_by_one(settings):
    reward = {"kind": "function", "function": "trl_functions:contains_answer", "weight": 0.5}
    run = {**settings, "kind": "function", "rewards": [reward], "steps": 1, "evaluation": {"every": 0}}
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
    row = read_metrics(trainer.directory)[-1]
    assert row["reward/mean"] == pytest.approx(0.5 * row["function/contains_answer"])
    assert len(CALLS) == 1


def test_the_trainer_s_state_says_how_far_the_run_is(settings):
    reward = {"kind": "function", "function": "trl_functions:warms_up"}
    run = {**settings, "kind": "function", "rewards": [reward], "steps": 2, "evaluation": {"every": 0}}
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
    assert CALLS == [{"step": 0, "of": 2}, {"step": 1, "of": 2}]
    assert [row["reward/mean"] for row in read_metrics(trainer.directory)] == [0.0, 1.0]


def test_what_a_function_logs_is_on_record():
    problem = Problem("p", "1+1?", "2")
    context = StepContext([AnswerGroup("p", problem, [Answer("2"), Answer("four")])], NoRule())
    scores = FunctionReward("trl_functions:logs").score(context)
    assert scores.metrics == {"function/logs": 1.0, "function/logs/length": 2.5}
    assert {name: part.rows() for name, part in scores.parts.items()} == {
        "function/logs": [[1.0, 1.0]],
        "function/logs/length": [[1.0, 4.0]],
    }
    FunctionRewardConfig(function="trl_functions:logs").check_problems([problem])


def test_columns_of_numpy_and_torch_are_numbers_and_those_of_anything_else_are_left_out():
    context = StepContext([AnswerGroup("p", Problem("p", "1+1?", "2"), [Answer("2"), Answer("4")])], NoRule())
    name = "function/logs_of_libraries"
    parts = FunctionReward(f"trl_functions:{name.partition('/')[2]}").score(context).parts
    logged = {f"{name}/{column}": [[0.0, 1.0]] for column in ("array", "tensor", "numbers", "truth")}
    assert {part: column.rows() for part, column in parts.items()} == {name: [[1.0, 1.0]], **logged}
