"""The default rule on its table of cases: what is an answer, what takes one back, and what only looks like one.

`rule_cases/maths.jsonl` has one case per line: a reference, a completion, a verdict, and the question where it counts.
"""

import json
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from cooper_base.data.problem import Problem
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.rule import RULES
from cooper_verify.rules.verdicts.fast_path import fast_verdict
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from cooper_verify.rules.vocabulary.unit_table import MEASURES

LINES = (Path(__file__).parent / "rule_cases" / "maths.jsonl").read_text("utf-8").splitlines()
ROWS = [json.loads(line) for line in LINES]
CATEGORIES = list(dict.fromkeys(row["category"] for row in ROWS))


def problem_of(row: dict) -> Problem:
    return Problem("p", row.get("question", "How many?"), row["answer"])


@pytest.fixture(scope="module")
def verifier() -> Iterator[RuleVerifier]:
    with RuleVerifier(timeout_s=60) as verifier:
        yield verifier


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_case_has_its_verdict(verifier: RuleVerifier, category: str):
    rows = [row for row in ROWS if row["category"] == category]
    verdicts = verifier.verify_problems([(problem_of(row), row["completion"]) for row in rows])
    assert [(row, verdict) for row, verdict in zip(rows, verdicts, strict=True) if verdict != row["verdict"]] == []


def test_the_fast_path_gives_the_verdicts_of_the_slow_one():
    for row in ROWS:
        fast = fast_verdict(row["answer"], row["completion"])
        assert fast in (None, maths_verdict(row["answer"], row["completion"])), row


def test_math_verifys_reading_of_expressions_is_a_setting(verifier: RuleVerifier):
    asked = [("9", r"\boxed{19-10}"), ("9", "Find 19 - 10."), ("120", r"\boxed{5!}"), ("12", "answer: 24/2")]
    assert verifier.verify_many(asked) == ["unparsed"] * 4
    rule = RULES.read({"kind": "maths", "expressions": True}).build()  # pyright: ignore[reportAttributeAccessIssue]
    assert rule.verify_many(asked) == ["correct"] * 4
    rule.close()


@pytest.mark.parametrize("kind", ["maths", "exact", "choice", "numeric"])
def test_no_rule_pays_for_the_question(kind: str):
    answer = {"exact": "Tokyo", "choice": "B"}.get(kind, "7")
    problem = Problem("p", f"Answer: {answer}", answer)
    rule = RULES.read({"kind": kind}).build()  # pyright: ignore[reportAttributeAccessIssue]
    assert rule.verify_problems([(problem, problem.question), (problem, f"Answer: {answer}?")]) == ["wrong", "wrong"]
    rule.close()


def test_factorials_without_end_take_no_time():
    started = time.process_time()
    for text in ("42!!", r"\boxed{42!!}", "The answer is 42!!!", "42!! ways", r"\boxed{99999!}"):
        assert maths_verdict("42", text) in ("correct", "unparsed")
    assert time.process_time() - started < 2


OTHERS_IN_PINT = {"acre", "mmhg", "jin", "bps"}  # the acre of US surveys; names that pint has not


@pytest.fixture(scope="module")
def registry():
    """All units of pint, with exact values: it takes half a second to read them."""
    return pytest.importorskip("pint").UnitRegistry(non_int_type=Fraction)


BASES = {"length": "metre", "mass": "gram", "time": "second", "current": "ampere", "temperature": "kelvin"}
BASES |= {"amount": "mole", "information": "bit"}
MEASURED = {measure.name: measure for measure in MEASURES.values() if {base for base, _ in measure.powers} <= {*BASES}}


@pytest.mark.parametrize("name", sorted(MEASURED.keys() - OTHERS_IN_PINT))
def test_units_are_those_of_pint(registry, name: str):
    measure = MEASURED[name]
    unit = {"celsius": "degree_Celsius", "fahrenheit": "degree_Fahrenheit"}.get(name, name)
    base = " * ".join(f"{BASES[base]} ** {power}" for base, power in measure.powers)
    for value in (Fraction(1), Fraction(7, 2)):
        found = registry.Quantity(value, unit).to(base).magnitude
        assert abs(found - (value * measure.size + measure.offset)) <= abs(found) / 10**8
