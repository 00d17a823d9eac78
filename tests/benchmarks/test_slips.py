"""Rules that are wrong about a known share of the answers."""

import pytest
from benchmarks.arena import slips

from cooper_lab.arithmetic.problems import arithmetic_problems


@pytest.mark.parametrize(
    ("rule", "missed", "accepted"),
    [(slips.slips_0, 0, 0), (slips.slips_4, 0.04, 0.04), (slips.paper_rule, 0.37, 0.026)],
)
def test_a_rule_that_slips_is_wrong_about_its_share_of_the_answers(rule, missed, accepted):
    problems = arithmetic_problems("train", 4000)
    right = [rule(problem, f"answer: {problem.answer}") for problem in problems]
    wrong = [rule(problem, "answer: 123456") for problem in problems]
    assert right.count("wrong") / 4000 == pytest.approx(missed, abs=0.02)
    assert wrong.count("correct") / 4000 == pytest.approx(accepted, abs=0.01)
    assert set(right) | set(wrong) <= {"correct", "wrong"}
