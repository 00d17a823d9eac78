"""User-written reward functions: how they may be written, where they are found, and what they must return."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator

import pytest

from cooper_audit.run.run_record import read_events, read_metrics
from cooper_base.data.answer import AnswerGroup
from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.reward.base import Scores
from cooper_rl.reward.context import StepContext
from cooper_rl.reward.kinds.function import FunctionReward
from cooper_verify.rules.rule import Rule

MakeGroup = Callable[..., AnswerGroup]


class NoRule(Rule):
    """A rule that fails if it is asked: a reward function needs no verdicts."""

    def verify_problems(self, asked):
        raise AssertionError("no verdicts are needed")

    def rule_name(self, problem) -> str:
        raise AssertionError("no rule is needed")


def score(function: str, groups: list[AnswerGroup]) -> Scores:
    return FunctionReward(function).score(StepContext(groups, NoRule()))


SOURCE = """
import asyncio

under_way = most = 0

def length(problem, completion):
    return len(completion.text)

async def slow_length(problem, completion):
    global under_way, most
    under_way += 1
    most = max(most, under_way)
    await asyncio.sleep(0.02)
    under_way -= 1
    return len(completion.text)

class Judge:
    async def __call__(self, problem, completion):
        return len(completion.text)

judge = Judge()

def lengths(problems, completions):
    assert len(problems) == len(completions)
    return [len(problem.answer) * len(completion.text) for problem, completion in zip(problems, completions)]

async def slow_lengths(problems, completions):
    return lengths(problems, completions)

def of_lists(items, texts):
    return [1.0]

def one_too_few(problems, completions):
    return [1.0] * (len(completions) - 1)

def one_number(problems, completions):
    return 1.0

def a_mapping(problems, completions):
    return dict.fromkeys(range(len(completions)), 1.0)

def without_rewards(queries, prompts, labels):
    return {"scores": [1.0] * len(queries), "extra_logs": {}, "more": {}}

def one_text(problems, completions):
    return "1" * len(completions)

def as_openrlhf(queries, prompts, labels, **kwargs):
    rewards = [float(query.endswith(label)) for query, label in zip(queries, labels)]
    return {"rewards": rewards, "scores": rewards, "extra_logs": {"dummy_scores": rewards}}

def one_infinite(problems, completions):
    return [float("inf")] + [1.0] * (len(completions) - 1)

def fails(problem, completion):
    raise KeyError("a bug of the user's")

async def fails_later(problem, completion):
    raise KeyError("a bug of the user's")
"""


@pytest.fixture
def rewards_module(tmp_path, monkeypatch) -> Iterator[str]:
    """A module in the working folder, which is not on the module path, as with the `cooper` command."""
    (tmp_path / "rewards_here.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder not in ("", str(tmp_path))])
    yield "rewards_here"
    sys.modules.pop("rewards_here", None)


@pytest.mark.parametrize("name", ["length", "slow_length", "judge"])
def test_a_function_of_one_completion_may_be_async_and_is_found_in_the_working_folder(
    rewards_module, make_group: MakeGroup, name
):
    before = list(sys.path)
    groups = [make_group("2", "a", "bbb"), make_group("2", "cc", "")]
    assert score(f"{rewards_module}:{name}", groups).rewards.rows() == [[1.0, 3.0], [2.0, 0.0]]
    assert sys.path == [*before, os.getcwd()], "last, for what the module imports later and for worker processes"


@pytest.mark.parametrize("name", ["lengths", "slow_lengths"])
def test_a_batched_function_gets_all_completions_of_a_step_with_their_problems(
    rewards_module, make_group: MakeGroup, name
):
    groups = [make_group("2", "a", "bbb"), make_group("22", "cc", "")]
    scores = score(f"{rewards_module}:{name}", groups)
    assert scores.rewards.rows() == [[1, 3], [4, 0]]
    assert scores.metrics == {f"function/{name}": 2.0}


def test_a_function_of_openrlhf_may_return_its_rewards_beside_its_logs(rewards_module, make_group: MakeGroup):
    assert score(f"{rewards_module}:as_openrlhf", [make_group("2", "1", "2", "12")]).rewards.rows() == [[0, 1, 1]]


def test_async_calls_of_a_step_run_concurrently_even_under_a_running_event_loop(rewards_module, make_group: MakeGroup):
    reward = FunctionReward(f"{rewards_module}:slow_length")
    context = StepContext([make_group("2", *"abcdefgh")], NoRule())

    async def notebook():
        return [reward.score(context).rewards.rows() for _ in range(2)]

    assert asyncio.run(notebook()) == [[[1.0] * 8]] * 2
    assert sys.modules[rewards_module].most == 8


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one_too_few", r"rewards_here:one_too_few: returned 2 values for 3 completions"),
        ("one_number", r"rewards_here:one_number: returned 1.0; a batched function must return a list"),
        ("a_mapping", r"rewards_here:a_mapping: returned \{.*\}; a batched function must return a list"),
        ("without_rewards", r"rewards_here:without_rewards: returned \{.*\}; a batched function must return a list"),
        ("one_text", r"rewards_here:one_text: returned '111'; a batched function must return a list"),
        ("one_infinite", r"rewards_here:one_infinite: returned inf for problem p7; return a finite number"),
        (
            "of_lists",
            r"rewards_here:of_lists: returned \[1.0\] for problem p7; .* calls its parameters",
        ),
    ],
)
def test_an_error_about_a_return_value_names_the_function(rewards_module, make_group: MakeGroup, name, words):
    with pytest.raises(InputError, match=words):
        score(f"{rewards_module}:{name}", [make_group("2", "a", "b", "c", id="p7")])


@pytest.mark.parametrize("name", ["fails", "fails_later"])
def test_an_exception_in_the_function_propagates(rewards_module, make_group: MakeGroup, name):
    with pytest.raises(KeyError, match="a bug of the user's"):
        score(f"{rewards_module}:{name}", [make_group("2", "a")])


@pytest.fixture
def function_run(settings, tmp_path, rewards_module):
    """A run without a reward model and without reference answers, with a function as the only reward."""
    rows = [{"question": f"{n}+1="} for n in range(7)] + [{"question": "8+1=", "answer": ["no", "text"]}]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    problems = {"source": "questions.jsonl", "prompt": {"template": "{question}\n"}}
    kept = ("name", "output_dir", "threads", "policy", "problems_per_step", "rollout", "algorithm")
    return {
        **{key: settings[key] for key in kept},
        "kind": "function",
        "steps": 5,
        "problems": problems,
        "rewards": [{"kind": "function", "function": f"{rewards_module}:slow_length", "weight": 0.1}],
    }


def test_a_function_can_be_the_only_reward_of_problems_without_answers(function_run):
    with CooperTrainer.from_config(build_config(function_run)) as trainer:
        trainer.fit()
    rows = read_metrics(trainer.directory)
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[0]["reward/mean"] == pytest.approx(0.1 * rows[0]["function/slow_length"])
    assert rows[0]["rule/accuracy"] == 0
    assert "reward_model/mean" not in rows[0]
    line = (trainer.directory / "rollouts" / "000001.jsonl").read_text().splitlines()[0]
    completion = json.loads(line)["completions"][0]
    assert completion["reward"] == pytest.approx(0.1 * len(completion["text"]), abs=1e-6)
    assert not [event for event in read_events(trainer.directory) if event["metric"] == "rule/accuracy"]


def test_only_a_run_with_function_rewards_can_do_without_answers(function_run):
    with pytest.raises(InputError, match="field 'answer' is missing"):
        CooperTrainer.from_config(build_config({**function_run, "kind": "rule", "rewards": [{"kind": "rule"}]}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rewards": []}, "kind: function pays only the rewards that you list"),
        ({"monitor": {"labelled": "x.jsonl"}}, "kind: function has none"),
    ],
)
def test_a_function_run_that_cannot_work_is_refused(function_run, changes, words):
    with pytest.raises(InputError, match=words):
        build_config({**function_run, **changes})
