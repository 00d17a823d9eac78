"""Runs whose problems name their rules, on real but tiny models."""

import json
from pathlib import Path
from typing import Any

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_rl import CooperTrainer, InputError, Problem, build_config
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.kinds.maths import MathsRule
from cooper_verify.rules.verifier import Verifier

FUNCTIONS = """
def even_length(problem, completion_text):
    if problem.metadata["level"] != 3:
        raise ValueError("not my problem")
    if completion_text.startswith("solved"):
        return "correct"
    return "wrong" if len(completion_text) % 2 else "correct"

async def awaited(problem, completion_text):
    return "correct" if completion_text == problem.answer else "unparsed"

def truth(problem, completion_text):
    return True
"""


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"rules_of_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def mixed_rows() -> list[dict[str, Any]]:
    maths = [
        {"question": f"{n} + 1 = ?", "answer": n + 1, "solution": f"\\boxed{{{n + 1}}}", "by": None} for n in range(4)
    ]
    choice = [
        {"question": f"{n}: A) {n} B) {n + 1}", "answer": "B", "solution": f"\\boxed{{{n + 1}}}", "by": "choice"}
        for n in range(4)
    ]
    own = [{"question": f"say {n}", "answer": "x", "solution": "solved", "by": "mine", "level": 3} for n in range(4)]
    return [row for rows in zip(maths, choice, own, strict=True) for row in rows]


@pytest.mark.parametrize("kind", ["cooper", pytest.param("cooper_model", marks=pytest.mark.slow)])
def test_one_run_mixes_maths_choice_and_a_function_of_the_users(settings, tmp_path: Path, functions: str, kind: str):
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in mixed_rows()))
    problems = {
        "source": str(tmp_path / "mixed.jsonl"),
        "solution": "solution",
        "rule_field": "by",
        "prompt": {"template": "{question}\n"},
    }
    pairs = {"pairs": [{"kind": "on_policy", "unread": ["unparsed"]}], "pairs_per_problem": 1}
    run = {
        **settings,
        "kind": kind,
        "steps": 2,
        "problems_per_step": 6,
        "problems": problems,
        "test_problems": problems,
        "rule": {"timeout_s": 3},
        "rules": {"mine": {"kind": f"{functions}:even_length"}},
        "cooptimization": pairs,
    }
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
    rows = read_metrics(trainer.directory)[1:]
    for row in rows:
        shares = [row[f"rule/{name}_share"] for name in ("maths", "choice", "mine") if f"rule/{name}_share" in row]
        assert sum(shares) == pytest.approx(1)
        assert row["pairs/problems_with_positive"] == 1  # each rule accepts its problems' reference solutions
    assert {"rule/maths_accuracy", "rule/choice_unparsed", "rule/mine_accuracy"} <= rows[0].keys()
    assert 0 < rows[0]["rule/mine_accuracy"] < 1
    assert rows[0]["rule/mine_unparsed"] == 0
    recorded = [json.loads(line) for line in (trainer.directory / "rollouts" / "000001.jsonl").read_text().splitlines()]
    for group in recorded:
        for completion in group["completions"]:
            if group["question"].startswith("say"):
                even = len(completion["text"]) % 2 == 0
                assert completion["verdict"] == ("correct" if even else "wrong")
                assert completion["verify_s"] == 0
    costs = [completion["verify_s"] for group in recorded for completion in group["completions"]]
    assert sum(costs) <= rows[0]["time/verify_cpu"] + 0.001 * len(costs)
    assert rows[0]["rule/lost"] == 0


def test_a_name_that_is_no_rule_is_reported_with_its_row(settings, tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text('{"question": "q", "answer": "A", "by": "chioce"}\n')
    problems = {"source": str(tmp_path / "rows.jsonl"), "rule_field": "by"}
    run = {**settings, "problems": problems, "test_problems": None, "evaluation": {"every": 0}}
    with pytest.raises(InputError, match=r"rows\.jsonl:1: rule 'chioce' .*did you mean 'choice'\?"):
        CooperTrainer.from_config(build_config(run))


def test_data_cannot_name_a_function(functions: str):
    with Verifier(MathsRule()) as verifier, pytest.raises(InputError, match="data cannot name a function"):
        verifier.check([Problem("p", "q", "1", rule=f"{functions}:awaited")])


def test_a_problem_without_a_name_gets_the_default_and_a_name_its_own_settings():
    question = "Which? A) red B) blue"
    group = [AnswerGroup("g", Problem("p", question, "B"), [Answer("blue"), Answer("red"), Answer("B")])]
    with Verifier(ChoiceRule(), {"strict": ExactRule()}) as verifier:
        assert verifier.verify_groups(group) == [["correct", "wrong", "correct"]]
        named = [(Problem("p", question, "B", rule="strict"), "blue"), (Problem("p", question, "B"), "blue")]
        assert verifier.verify_problems(named) == ["unparsed", "correct"]
        assert [verifier.rule_name(problem) for problem, _ in named] == ["strict", "choice"]


def test_an_async_function_is_awaited_and_another_value_is_refused(functions: str):
    config = build_rules(functions)
    with Verifier(config.rule, config.rules) as verifier:
        problem = Problem("p", "q", "yes")
        assert verifier.verify_problems([(problem, "yes"), (problem, "no")]) == ["correct", "unparsed"]
        message = rf"{functions}:truth: returned True for problem p7; a rule returns 'correct', 'wrong', 'unparsed'"
        with pytest.raises(InputError, match=message):
            verifier.verify_problems([(Problem("p7", "q", "1", rule="truth"), "1")])


def build_rules(functions: str):
    rules = {"rule": {"kind": f"{functions}:awaited"}, "rules": {"truth": {"kind": f"{functions}:truth"}}}
    return build_config({"policy": {"model": "m"}, "kind": "rule", "problems": {"source": "arithmetic"}, **rules})


def test_todays_settings_are_those_of_maths_and_the_written_ones_read_back(functions: str):
    run = {"policy": {"model": "m"}, "kind": "rule", "problems": {"source": "arithmetic"}}
    config = build_config({**run, "rule": {"workers": 2, "timeout_s": 3, "expressions": True}})
    assert config.rule == MathsRule(workers=2, timeout_s=3, expressions=True)
    own = build_rules(functions)
    assert build_config(own.model_dump(mode="json")) == own


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"kind": "choise"}, "no rule of kind 'choise'; kinds: .*choice"),
        ({"kind": "choice", "workers": 2}, r"unknown key 'rule\.workers'; known keys: kind"),
        ({"worker": 2}, r"unknown key 'rule\.worker'; did you mean 'workers'\?"),
        ({"kind": "numeric", "relative": -1}, r"rule\.relative: .*greater than or equal to 0"),
        ({"kind": "json:nothing"}, "nothing does not exist in json"),
    ],
)
def test_wrong_settings_of_a_rule_are_reported(rule: dict, message: str):
    with pytest.raises(InputError, match=message):
        build_config({"policy": {"model": "m"}, "kind": "rule", "problems": {"source": "arithmetic"}, "rule": rule})


def test_a_missing_rule_field_is_reported(settings, tmp_path: Path):
    (tmp_path / "rows.jsonl").write_text(
        '{"question": "q", "answer": "A", "by": null}\n{"question": "r", "answer": 1}\n'
    )
    problems = {"source": str(tmp_path / "rows.jsonl"), "rule_field": "by"}
    run = {**settings, "problems": problems, "test_problems": None, "evaluation": {"every": 0}}
    with pytest.raises(InputError, match=r"rows\.jsonl:2: field 'by' is missing; .*or write null in rows that leave"):
        CooperTrainer.from_config(build_config(run))
