"""Verdicts that were wrong once, by kind: cases like those that users of other projects reported.

A case's `expected` is a verdict, several of them separated by `|`, or `!correct` for anything but that.
"""

import json
from pathlib import Path

import pytest

from cooper_rl.rules.kinds.maths import RuleVerifier

CASES = Path(__file__).parents[3] / "shared/data/verdict_cases/cases.jsonl"
KINDS = ("misread_reference", "huge_times_tiny")


def is_as_expected(verdict: str, expected: str) -> bool:
    return verdict != expected[1:] if expected.startswith("!") else verdict in expected.split("|")


@pytest.mark.parametrize("kind", KINDS)
def test_every_case_of_the_kind_has_its_verdict(kind: str):
    if not CASES.exists():
        pytest.skip(f"the cases are not on this machine ({CASES})")
    rows = [row for row in map(json.loads, CASES.read_text("utf-8").splitlines()) if row["kind"] == kind]
    assert rows
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(row["answer"], row["completion"]) for row in rows])
    wrong = [(row, verdict) for row, verdict in zip(rows, verdicts, strict=True)]
    assert [pair for pair in wrong if not is_as_expected(pair[1], pair[0]["expected"])] == []
