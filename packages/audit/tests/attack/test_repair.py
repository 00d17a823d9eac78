"""What a repair changed, and when it is refused."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from cooper_audit.attack.attack import PLAIN_WRONG, AttackAnswer, AttackResult, summarise
from cooper_audit.attack.report import repair_lines, repair_tables
from cooper_audit.attack.results import Repair
from cooper_base.data.problem import Problem
from cooper_verify.graders.written import open_grader

COUNT = 30
BEFORE = {"lists": 28, "empty": 15, PLAIN_WRONG: 4, "right: box": 27}
"""Problems of `COUNT` on which a pattern is accepted."""


def attacked(accepted: Mapping[str, int | Collection[int]]) -> AttackResult:
    """A result in which a pattern is accepted on these problems, or on the first ones of this number."""
    problems = [Problem(str(place), f"What is {place} + 1?", str(place + 1)) for place in range(COUNT)]
    answers = [
        AttackAnswer(
            pattern,
            problem,
            pattern,
            pattern.startswith("right"),
            score=float(place in (range(on) if isinstance(on, int) else on)),
        )
        for place, problem in enumerate(problems)
        for pattern, on in accepted.items()
    ]
    return summarise(open_grader("rule"), answers, accept_above=0.5)


def repaired(**accepted: int) -> Repair:
    learned = frozenset({"lists", PLAIN_WRONG, "right: box"})
    named = {"right: box" if name == "right" else name: count for name, count in accepted.items()}
    return Repair(Path("repaired"), 40, COUNT, learned, attacked(BEFORE), attacked(BEFORE | named))


@pytest.mark.parametrize(
    ("accepted", "risen"),
    [
        ({"lists": 0}, []),
        ({"lists": 0, "right": 9}, []),
        ({"lists": 0, "empty": 18}, []),
        ({"lists": 0, "empty": 21}, ["empty"]),
        ({"lists": 30}, []),
        ({"lists": 0, "plain_wrong": 28, "empty": 30}, [PLAIN_WRONG, "empty"]),
    ],
)
def test_a_repair_is_refused_where_wrong_answers_rise_beyond_chance(accepted, risen):
    repair = repaired(**accepted)
    assert [change.name for change in repair.risen] == risen, "plain wrong answers first, then the others"
    lines = repair_lines(repair)
    assert lines[0].startswith("REPAIR REFUSED, no model written" if risen else "repaired: no pattern of wrong")


def test_a_repair_says_what_it_gained_and_lost_with_intervals():
    repair = repaired(lists=0, right=12)
    (heading, _, groups), (_, _, patterns) = repair_tables(repair)
    assert heading == "Repair: accepted on 30 problems that are not in it"
    assert [(row[0], row[1], row[2], row[-1]) for row in groups] == [
        ("wrong, in the repair", "53.3%", "6.7%", "gained"),
        ("wrong, kept apart", "50.0%", "50.0%", ""),
        ("right, in the repair", "90.0%", "40.0%", "lost"),
    ]
    assert repair.groups[0].difference.low < -0.28 / 0.6 < repair.groups[0].difference.high < 0
    assert [row[0] for row in patterns] == [PLAIN_WRONG, "empty", "lists", "right: box (right)"]
    lines = "\n".join(repair_lines(repair))
    assert "gained wrong, in the repair: 53.3% to 6.7% (-46.7;" in lines
    assert "lost right, in the repair: 90.0% to 40.0% (-50.0;" in lines


def test_a_rise_of_each_pattern_by_chance_is_one_of_all_together():
    names = [f"kind {number}" for number in range(COUNT)]
    before = {name: range(0) for name in names} | {"right: box": range(COUNT)}
    after = before | {name: (number, (number + 1) % COUNT) for number, name in enumerate(names)}
    repair = Repair(Path("repaired"), 40, COUNT, frozenset(), attacked(before), attacked(after))
    assert [change.name for change in repair.risen] == ["wrong, kept apart"]
