"""Every kind of rule against its table of cases, and which references it accepts.

A row of `rule_cases/<kind>.jsonl` has a problem, a completion and a verdict. `!correct` means any other verdict than
`correct`.
"""

import json
from pathlib import Path

import pytest

from cooper_base.data.problem import Problem
from cooper_verify.rules.rule import RULES, RuleConfig

CASES = Path(__file__).parent / "rule_cases"
KINDS = ["exact", "choice", "numeric"]


def rows_of(kind: str) -> list[dict]:
    return [json.loads(line) for line in (CASES / f"{kind}.jsonl").read_text("utf-8").splitlines()]


def rule_of(kind: str, **settings: object) -> RuleConfig:
    return RULES.read({"kind": kind, **settings})  # pyright: ignore[reportReturnType]


def verdict_on(kind: str, row: dict) -> str:
    problem = Problem("p", row["question"], row["answer"], metadata=row.get("metadata", {}))
    return rule_of(kind, **row.get("settings", {})).build().verify_problems([(problem, row["completion"])])[0]


@pytest.mark.parametrize("kind", KINDS)
def test_no_wrong_answer_is_called_correct(kind: str):
    wrong = [row for row in rows_of(kind) if row["verdict"] != "correct"]
    assert len(wrong) >= 25
    assert [row for row in wrong if verdict_on(kind, row) == "correct"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_has_the_verdict_of_every_completion(kind: str):
    rows = rows_of(kind)
    assert sum(row["verdict"] == "correct" for row in rows) >= 20
    given = [(row, verdict_on(kind, row)) for row in rows if not row["verdict"].startswith("!")]
    assert [(row, verdict) for row, verdict in given if verdict != row["verdict"]] == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_reference_of_the_table_can_be_solved(kind: str):
    for row in rows_of(kind):
        problem = Problem("p", row["question"], row["answer"], metadata=row.get("metadata", {}))
        assert rule_of(kind, **row.get("settings", {})).build().fault(problem, problem.answer) is None, row


@pytest.mark.parametrize(
    ("kind", "settings", "problem", "reason"),
    [
        ("choice", {}, Problem("p", "Who?", "Tokyo"), "names no option"),
        ("choice", {}, Problem("p", "A) x B) y", "z"), "names no option"),
        ("numeric", {}, Problem("p", "q", "12 or 13"), "is not one plain number"),
        ("numeric", {}, Problem("p", "q", r"\sqrt{2}"), "is not one plain number"),
        (
            "numeric",
            {"absolute_field": "error"},
            Problem("p", "q", "4.2", metadata={"error": "a lot"}),
            "has the tolerance 'a lot' in its field 'error'; write a number of at least 0",
        ),
        ("maths", {}, Problem("p", "q", "  "), "does not verify against itself (verdict: unparsed)"),
    ],
)
def test_a_reference_that_the_rule_cannot_read_is_reported(kind: str, settings: dict, problem: Problem, reason: str):
    rule = rule_of(kind, **settings).build()
    fault = rule.fault(problem, problem.answer)
    rule.close()
    assert fault is not None
    assert reason in fault


def test_tolerances_are_inclusive_and_decimal():
    rule = rule_of("numeric", relative=0.0, absolute=0.1).build()
    problem = Problem("p", "q", "0.3")
    assert rule.verify_problems([(problem, r"\boxed{0.2}"), (problem, r"\boxed{0.4000001}")]) == ["correct", "wrong"]
