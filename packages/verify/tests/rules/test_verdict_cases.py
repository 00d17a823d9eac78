"""Verdicts that were wrong once, by kind: cases like those that users of other projects reported.

A case's `expected` is a verdict, several of them separated by `|`, or `!correct` for anything but that.
"""

import json

import pytest

from cooper_verify.rules.kinds.maths import RuleVerifier
from repository import SHARED

CASES = SHARED / "data/verdict_cases/cases.jsonl"
ROWS = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()] if CASES.exists() else []


def is_as_expected(verdict: str, expected: str) -> bool:
    return verdict != expected[1:] if expected.startswith("!") else verdict in expected.split("|")


@pytest.mark.skipif(not ROWS, reason="needs the verdict cases in ../shared/data")
@pytest.mark.parametrize("kind", sorted({row["kind"] for row in ROWS}))
def test_every_case_of_the_kind_has_its_verdict(kind: str):
    rows = [row for row in ROWS if row["kind"] == kind]
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(row["answer"], row["completion"]) for row in rows])
    judged = list(zip(rows, verdicts, strict=True))
    assert [(row, verdict) for row, verdict in judged if not is_as_expected(verdict, row["expected"])] == []
