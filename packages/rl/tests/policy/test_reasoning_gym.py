"""reasoning-gym as a source of problems: its splits and settings, and gold by the scorers of its tasks."""

import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import pytest
from pydantic import ValidationError

from cooper_rl import InputError, Problem
from cooper_rl.policy.reasoning_gym import gold
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import load_problems, read_problems
from cooper_verify.rules.kinds.partial import PartialRule

INSTALLED = find_spec("reasoning_gym") is not None
needs_it = pytest.mark.skipif(not INSTALLED, reason="reasoning-gym is not installed (extra reasoning-gym)")

TASKS: dict[str, dict[str, Any]] = {"gcd": {"max_value": 60}, "spell_backward": {"weight": 3}, "syllogism": {}}


def drawn(tasks: dict[str, dict[str, Any]] = TASKS, limit: int = 60, **settings: Any) -> list[Problem]:
    config = ProblemsConfig(source="reasoning_gym", tasks=tasks, limit=limit, **settings)
    return read_problems(config).problems


@pytest.mark.skipif(INSTALLED, reason="reasoning-gym is installed")
def test_without_the_package_the_error_names_the_extra():
    with pytest.raises(ImportError, match=r"source: reasoning_gym needs the extra `reasoning-gym`: pip install"):
        drawn()


def test_source_and_tasks_belong_together():
    for settings in ({"source": "reasoning_gym"}, {"source": "problems.jsonl", "tasks": TASKS}):
        with pytest.raises(ValidationError, match="belong together"):
            ProblemsConfig.model_validate(settings)


@needs_it
def test_splits_share_no_question_whatever_the_seed_and_the_settings():
    train = {one.question for seed in (0, 1) for one in drawn(seed=seed, limit=200)}
    others = TASKS | {"gcd": {"max_value": 30}}
    test = {one.question for seed in (0, 1) for one in drawn(others, seed=seed, limit=200, split="test")}
    assert not train & test


@needs_it
def test_a_seed_means_the_same_problems_in_another_process():
    code = (
        "from cooper_verify.problems.reasoning_gym import reasoning_gym_problems as made\n"
        f"print([one.question for one in made({TASKS!r}, 'train', 30, 3)])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str([one.question for one in drawn(limit=30, seed=3)])
    assert [one.id for one in drawn(limit=30, seed=3)] != [one.id for one in drawn(limit=30, seed=4)]


@needs_it
def test_a_shorter_list_is_the_start_of_a_longer_one_so_skip_and_limit_cut_parts():
    longer = drawn(limit=80)
    assert drawn(limit=30) == longer[:30]
    assert drawn(limit=50, skip=30) == longer[30:]


@needs_it
def test_weights_and_settings_reach_the_tasks():
    problems = drawn(limit=300)
    shares = {task: sum(one.metadata["task"] == task for one in problems) / 300 for task in TASKS}
    assert shares["spell_backward"] == pytest.approx(0.6, abs=0.08)
    assert shares["gcd"] == pytest.approx(0.2, abs=0.08)
    assert all(number <= 60 for one in problems for number in one.metadata["entry"].get("numbers", ()))


@needs_it
def test_a_rule_can_name_the_tasks_it_may_judge():
    rule = PartialRule.model_validate({"only": {"task": ["gcd"]}}).build()
    config = ProblemsConfig(source="reasoning_gym", tasks=TASKS, limit=40)
    try:
        loaded = load_problems(config, rule)
        assert not loaded.bad_rows
        heard = {one.metadata["task"] for one in loaded.problems if rule.judges(one)}
        assert heard == {"gcd"}
    finally:
        rule.close()


@needs_it
def test_gold_asks_the_scorer_of_the_task():
    for problem in drawn():
        assert problem.solution is not None
        assert gold(problem, problem.solution)
        assert gold(problem, f"Let me see.\n<answer>{problem.answer}</answer>")
        for wrong in ("", "I do not know.", r"\boxed{}", r"\boxed{7 apples}", r"\boxed{7} and \boxed{8}"):
            assert not gold(problem, wrong)
        assert not gold(problem, f"{problem.solution} No, wait, it is \\boxed{{81}}.")


@needs_it
def test_a_scorer_that_accepts_many_answers_is_asked_about_each():
    (problem,) = drawn({"puzzle24": {}}, limit=1)
    numbers = problem.metadata["entry"]["numbers"]
    assert gold(problem, f"\\boxed{{{problem.answer}}}")
    assert gold(problem, f"\\boxed{{0 + ({problem.answer}) - 0}}") is False  # other numbers
    assert not gold(problem, f"\\boxed{{{' + '.join(map(str, numbers))} + 1000}}")


@needs_it
@pytest.mark.parametrize(
    "task", ["n_queens", "binary_matrix", "spiral_matrix", "string_insertion", "countdown", "puzzle24"]
)
def test_nothing_that_a_completion_says_is_run(task, tmp_path):
    (problem,) = drawn({task: {}}, limit=1)
    target = tmp_path / "written"
    assert not gold(problem, f"\\boxed{{open({str(target)!r}, 'w')}}")
    assert not gold(problem, f"<answer>__import__('pathlib').Path({str(target)!r}).touch()</answer>")
    assert not target.exists()
    assert not gold(problem, r"\boxed{9**9**9**9}")


@needs_it
def test_a_task_whose_scorer_would_run_any_answer_has_no_gold():
    (problem,) = drawn({"simple_integration": {}}, limit=1)
    with pytest.raises(InputError, match="simple_integration would run answers as code"):
        gold(problem, r"\boxed{x}")


@needs_it
@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"gdc": {}}, r"tasks\.gdc: reasoning-gym has no such task; did you mean 'gcd'\?"),
        ({"gcd": {"max": 3}}, r"tasks\.gcd\.max: no such setting; choose from min_numbers, .*weight"),
        ({"gcd": {"max_value": 1, "min_value": 5}}, r"tasks\.gcd: "),
        ({"gcd": {"weight": 0}}, r"tasks\.gcd\.weight: must be a positive number"),
        ({"gcd": {"max_value": 3}}, r"tasks\.gcd: has about \d+ different train questions"),
    ],
)
def test_mistakes_are_named(tasks, message):
    with pytest.raises(InputError, match=message):
        drawn(tasks)


@needs_it
def test_a_task_that_differs_between_processes_asks_for_a_hash_seed(monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    with pytest.raises(InputError, match="PYTHONHASHSEED=0"):
        drawn({"ransom_note": {}})
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert drawn({"ransom_note": {}}, limit=3)


@needs_it
@pytest.mark.slow
def test_every_task_draws_problems_that_its_own_reference_solves(monkeypatch):
    from reasoning_gym.factory import DATASETS  # pyright: ignore[reportMissingImports] - optional

    monkeypatch.setenv("PYTHONHASHSEED", "0")
    unscored = {"composite", "simple_integration", "intermediate_integration"}
    # Of `ab` nothing may be left, which is its answer; the others have many solutions and state none.
    without_reference = set()
    for task in sorted(set(DATASETS) - unscored):
        assert "weight" not in DATASETS[task][1].__dataclass_fields__
        for problem in drawn({task: {}}, limit=3):
            if not problem.answer:
                without_reference.add(task)
            else:
                assert gold(problem, f"<answer>{problem.answer}</answer>"), (task, problem.answer)
    assert without_reference == {"ab", "boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"}
