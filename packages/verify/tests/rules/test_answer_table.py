"""Hundreds of right and wrong answers by kind: names, words, dates, times, units, options, variables, numbers.

`answers.jsonl` has one answer per line. A right answer that the rule is known to miss is marked `lost`. There is no
mark for a wrong answer that it accepts, because that must not happen.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

from cooper_base.data.problem import Problem
from cooper_verify.rules.answer.extraction import reference_text
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.verdicts.fast_path import fast_verdict, reference_kind
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from repository import ROOT

ROWS = [json.loads(line) for line in (Path(__file__).parent / "answers.jsonl").read_text("utf-8").splitlines()]
CLASSES = list(dict.fromkeys(row["class"] for row in ROWS))


@pytest.fixture(scope="module")
def verdicts() -> list[str]:
    return [maths_verdict(row["reference"], row["completion"]) for row in ROWS]


@pytest.mark.parametrize("name", CLASSES)
def test_no_wrong_answer_is_called_correct(verdicts: list[str], name: str):
    pairs = [(row, verdict) for row, verdict in zip(ROWS, verdicts, strict=True) if row["class"] == name]
    assert sum(not row["right"] for row, _ in pairs) >= 20
    assert [row for row, verdict in pairs if not row["right"] and verdict == "correct"] == []


@pytest.mark.parametrize("name", CLASSES)
def test_right_answers_are_accepted_except_those_marked_lost(verdicts: list[str], name: str):
    right = [pair for pair in zip(ROWS, verdicts, strict=True) if pair[0]["right"] and pair[0]["class"] == name]
    assert [row for row, verdict in right if (verdict == "correct") == row.get("lost", False)] == []


def test_the_fast_path_agrees_and_decides_everything_but_mathematics(verdicts: list[str]):
    for row, verdict in zip(ROWS, verdicts, strict=True):
        fast = fast_verdict(row["reference"], row["completion"])
        assert fast in (None, verdict), row
        assert fast is not None or reference_kind(reference_text(row["reference"])) == "maths", row


def test_every_reference_of_the_table_can_be_solved():
    with RuleVerifier() as verifier:
        answers = dict.fromkeys(row["reference"] for row in ROWS)
        assert [answer for answer in answers if verifier.fault(Problem("p", "?", answer), reference_text(answer))] == []


def test_words_need_no_verifier_process():
    with RuleVerifier() as verifier:
        pairs = [("Tokyo", r"\boxed{Kyoto}"), ("B", "The correct answer is B) apple."), ("9 am", "answer: 9 pm")]
        assert verifier.verify_many(pairs) == ["wrong", "correct", "wrong"]
        assert verifier.counts["fast"] == 3
        assert verifier.counts["answered"] == 0


PAGE = ROOT / "packages/lab/src/cooper_lab/benchmarks/README.md"


def test_the_page_counts_these_verdicts(verdicts: list[str]):
    kinds = [(right, verdict) for right in (True, False) for verdict in ("correct", "wrong", "unparsed")]
    rows = [*zip(ROWS, verdicts, strict=True)]
    names = [*CLASSES, "all"]
    counts = {name: Counter((row["right"], v) for row, v in rows if name in (row["class"], "all")) for name in names}
    page = PAGE.read_text(encoding="utf-8")
    assert f"a table of {len(ROWS):,} answers" in page
    for name, found in counts.items():
        assert f"| {name} | {' | '.join(str(found[kind]) for kind in kinds)} |" in page
