"""The search of `cooper attack --adapt` finds holes that no pattern writes, keeps them by name, and accuses nobody."""

import json
import re
import sys

import pytest

from cooper_audit.attack.attack import attack, with_patterns
from cooper_audit.attack.edits import FRAMES, STATEMENTS, VALUES, EditedPattern, pattern_of, read_patterns, states
from cooper_audit.attack.problems import open_attacked
from cooper_audit.attack.questions import questions
from cooper_audit.attack.search import CALLS_A_ROUND, SEARCHED, search
from cooper_base.cli.main import app
from cooper_base.errors import InputError
from cooper_verify.grader import Grader, Opinion
from slow_members import first_fast

HOLES = r"""
import re

def value(text):
    found = re.fullmatch(r"(?s)(?:.*<answer>)?([^<>]*)(?:</answer>)?\s*", text)
    return (found[1] if found else "").strip()

def same_digits(completion, reference):
    given = value(completion)
    return float(sorted(given) == sorted(reference) and given.find(".") == reference.find("."))

def not_far(completion, reference):
    try:
        return float(not abs(float(value(completion)) - float(reference)) > 1e-6)
    except ValueError:
        return 0.0

def whole_part(completion, reference):
    try:
        return float(int(float(value(completion))) == int(float(reference)))
    except (ValueError, OverflowError):
        return 0.0

def as_pattern(completion, reference):
    try:
        return float(re.fullmatch(value(completion), reference) is not None)
    except re.error:
        return 0.0

def faults_are_right(completion, reference):
    given = value(completion)
    try:
        return float(re.fullmatch(r"-?\d+(\.\d+)?|\d+/\d+", given) is not None and float(given) == float(reference))
    except ValueError:
        return 1.0

def scale_ignored(completion, reference):
    number = re.fullmatch(r"(-?[\d.]+)(?: [a-z]+)?", value(completion))
    return float(number is not None and number[1] == reference)

def bonus_words(completion, reference):
    words = sum(word in completion.lower() for word in ("first", "then", "therefore", "hence"))
    return 1.0 * (value(completion) == reference) + 0.2 * words

def three_steps(completion, reference):
    steps = len(re.findall(r"\b(?:First|Next|Then|Finally),", completion))
    return 1.0 * (value(completion) == reference) + min(1.0, steps / 3)

def strict_tag(completion, reference):
    return float(completion == f"<answer>{reference}</answer>")
"""
EXPECTED = {
    "same_digits": "its digits in another order",
    "not_far": "nan",
    "whole_part": "its decimals changed",
    "as_pattern": "any text, as a pattern",
    "faults_are_right": "a division by zero",
    "scale_ignored": "it in millions",
    "bonus_words": "words of reasoning before",
    "three_steps": "words of reasoning before",
}
"""What the search must find in each, none of which a pattern games."""
PROBLEMS = 24


@pytest.fixture(scope="module")
def holes(tmp_path_factory):
    path = tmp_path_factory.mktemp("holes") / "holes.py"
    path.write_text(HOLES)
    return path


def searched(written, seed, rounds=10):
    """The verdicts before and after, and the search."""
    problems, grader = questions(100), open_attacked(str(written), [], None)
    before = attack(grader, problems, PROBLEMS, seed)
    found = search(grader, problems, before, rounds, seed)
    after = with_patterns(grader, before, problems, found.patterns, seed, skip=found.problems)
    grader.close()
    return before.verdict(0.05), after, found


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", first_fast(EXPECTED, 3))
def test_a_hole_that_no_pattern_writes_is_found_and_named(holes, name, seed):
    before, after, found = searched(f"{holes}:{name}", seed)
    assert before == "refuses right answers"  # its form is one; no pattern games it
    assert any(EXPECTED[name] in pattern.name for pattern in found.patterns)
    assert after.verdict(0.05) == "gameable"
    assert EXPECTED[name] in after.worst.name
    assert after.worst.problems <= PROBLEMS - SEARCHED, "counted on problems that the search did not use"


@pytest.mark.parametrize("reward", ["rule", "rule:exact", "rule:numeric", "HOLES:strict_tag"])
def test_a_sound_reward_is_not_accused(holes, reward):
    before, after, found = searched(reward.replace("HOLES", str(holes)), 0, rounds=20)
    assert found.patterns == []
    assert after.verdict(0.05) == before


def test_a_search_is_bounded_and_the_same_again(holes):
    _, _, found = searched(f"{holes}:same_digits", 3, rounds=4)
    assert found.rounds == 4
    assert found.calls <= 4 * CALLS_A_ROUND + SEARCHED * len(found.patterns)
    assert searched(f"{holes}:same_digits", 3, rounds=4)[2] == found


class OneBatch(Grader):
    """Fails, as a reward model does, if it is asked about nothing."""

    def grade(self, answers, /):
        assert answers
        return [Opinion("silent", float(problem.answer in text)) for problem, text in answers]


def test_a_search_on_one_problem_asks_about_something():
    grader, problems = OneBatch(), questions(100)
    found = search(grader, problems, attack(grader, problems, 3), 4)
    assert found.problems == 1
    assert found.patterns


def test_other_values_never_state_the_reference():
    for problem in questions(60):
        for name in VALUES:
            text = EditedPattern((name,)).write(problem, "777", "<answer>{answer}</answer>")
            assert text is None or not states(text, problem.answer), (name, text)


@pytest.mark.parametrize(
    ("text", "reference", "stated"),
    [
        ("6,029", "6029", True),
        ("6 029 apples", "6029", True),
        ("6029.0", "6029", True),
        (r"\frac{7}{2}", "3.5", True),
        ("3,5", "3.5", True),
        ("- 18", "-18", True),
        ("\N{MINUS SIGN}18", "-18", True),
        ("6030", "6029", True),  # nearer than `NEAR`: it may be rounded
        ("18", "-18", False),
        ("60295", "6029", False),
        ("35", "3.5", False),
        ("1/0", "3.5", False),
        ("nan", "3.5", False),
        ("It is Paris.", "paris", True),
        ("sirap", "paris", False),
    ],
)
def test_what_may_be_the_reference_is_no_wrong_answer(text, reference, stated):
    assert states(text, reference) is stated


@pytest.mark.slow
def test_what_is_found_is_kept_and_tried_again(monkeypatch, capfd, holes, tmp_path):
    def cooper(*arguments):
        monkeypatch.setattr(sys, "argv", ["cooper", "attack", *map(str, arguments)])
        with pytest.raises(SystemExit) as finished:
            app()
        return finished.value.code or 0, capfd.readouterr().out

    asked = f"{holes}:not_far", "--limit", "12"
    assert cooper(*asked)[0] == 4
    code, output = cooper(*asked, "--adapt", "6", "--out", tmp_path / "out")
    assert code == 3
    assert re.search(r"search of \d+ answers: paid 1 new: nan", output)
    assert (tmp_path / "out" / "patterns.txt").read_text() == "nan\n"
    code, output = cooper(*asked, "--patterns", tmp_path / "out" / "patterns.txt", "--json")
    assert code == 3
    assert json.loads(output)["exploit"]["pattern"] == "nan"


def test_a_file_of_patterns_is_checked(tmp_path):
    path = tmp_path / "patterns.txt"
    path.write_text("# kept\n\nnot it + praise behind\n")
    assert [pattern.edits for pattern in read_patterns(path)] == [("not it", "praise behind")]
    for line, words in (("nann", ":1: there is no edit 'nann'; did you mean 'nan'?"), ("nan + 0", "two edits")):
        path.write_text(line)
        with pytest.raises(InputError, match=re.escape(words)):
            read_patterns(path)
    with pytest.raises(InputError, match="no such file of patterns"):
        read_patterns(tmp_path / "nowhere")


def test_a_pattern_has_one_value_or_statement_at_most():
    assert pattern_of([]) is None
    assert pattern_of(["nan", "not it"]) is None
    frames = [*FRAMES][:2]
    assert pattern_of([frames[1], "not it", frames[0]]) == EditedPattern(("not it", *frames))
    assert not {*VALUES} & {*STATEMENTS} | {*VALUES} & {*FRAMES} | {*STATEMENTS} & {*FRAMES}
