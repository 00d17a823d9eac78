"""The embedded world: its splits, its surface forms, its gold labels and its corrupter."""

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_lab.arithmetic.answers import (
    FORMS,
    RULE_MISSES,
    Form,
    can_render,
    form_of,
    read_answer,
    render_answer,
)
from cooper_lab.arithmetic.corruption import corrupt
from cooper_lab.arithmetic.figures import figures_verdict
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.solutions import draw_solution, find_answer
from cooper_verify.rules.kinds.maths import RuleVerifier


def problem_with(value: str, unit: str | None = "figs") -> Problem:
    metadata = {"value": value, "unit": unit, "work": "12+7=19", "form": "plain"}
    return Problem("p", "Amy has 12 figs and gets 7. How many?", value, metadata=metadata)


def test_splits_share_no_question_whatever_the_seed():
    train = {problem.question for seed in (0, 1) for problem in arithmetic_problems("train", 800, seed)}
    test = {problem.question for seed in (0, 7) for problem in arithmetic_problems("test", 150, seed)}
    assert not train & test


def test_the_same_seed_gives_the_same_problems_and_another_seed_others():
    first, again, other = (arithmetic_problems("train", 50, seed) for seed in (3, 3, 4))
    assert first == again
    assert [problem.id for problem in first] != [problem.id for problem in other]


def test_ids_are_unique_and_belong_to_the_question():
    problems = arithmetic_problems("train", 500, 0) + arithmetic_problems("test", 100, 0)
    assert len({problem.id for problem in problems}) == len(problems)
    ids = {problem.question: problem.id for problem in arithmetic_problems("train", 500, 1)}
    assert all(ids.get(problem.question, problem.id) == problem.id for problem in problems)


def test_a_shorter_list_is_the_start_of_a_longer_one():
    assert arithmetic_problems("test", 20, 5) == arithmetic_problems("test", 60, 5)[:20]


def test_an_unknown_split_and_too_many_problems_are_reported(monkeypatch):
    with pytest.raises(InputError, match="train or test"):
        arithmetic_problems("validation", 3)  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr("cooper_lab.arithmetic.problems._PATIENCE", 20)
    with pytest.raises(InputError, match="fewer than 1000000"):
        arithmetic_problems("test", 1_000_000)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("19", "12+7=19 answer: 19"),
        ("19", "answer: 19 figs"),
        ("19", "answer: 19."),
        ("19", "answer: nineteen figs"),
        ("19", "12+7=19 \\boxed{19 figs}"),
        ("19", "\\boxed{19}."),
        ("19", "12+7=19"),
        ("19", "19.0"),
        ("-8", "answer: -8"),
        ("-8", "answer: minus 8"),
        ("-8", "answer: minus eight"),
        ("7/4", "answer: 7/4"),
        ("7/4", "answer: 1 3/4"),
        ("7/4", "answer: 1 and 3/4"),
        ("7/4", "answer: 7 over 4"),
        ("7/4", "answer: 1.75"),
        ("7/4", "\\boxed{\\frac{7}{4}}"),
        ("3/4", "answer: .75"),
        ("12000", "answer: 12,000"),
        ("12000", "answer: 12'000"),
        ("12000", "answer: 12 thousand"),
        ("1500", "answer: 1.5 thousand"),
    ],
)
def test_gold_accepts_right_answers_in_every_form(value: str, text: str):
    assert gold(problem_with(value), text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "answer:",
        "answer: figs",
        "answer: 18",
        "12+7=19 answer: 91",
        "answer: 19 or 18",
        "answer: 18 or 19",
        "answer: 19 19",
        "answer: 19 answer: 18",
        "answer: 18 answer: 19",
        "answer: 19 answer: 19",
        "\\boxed{19} \\boxed{19}",
        "\\boxed{19} or 20",
        "answer: 19 dollars",
        "answer: 19?",
        "answer: 1,9",
        "answer: 19/0",
        "answer: -19",
        "answer: ten nine",
        "answer: 19x",
        "Amy has 12 figs and gets 7. How many?",
    ],
)
def test_gold_rejects_wrong_missing_and_several_answers(text: str):
    assert not gold(problem_with("19"), text)


def test_every_form_reads_back_as_the_value_it_was_written_from():
    values = [Fraction(n, d) for n in range(-30, 60) for d in (1, 2, 3, 4, 5, 10)] + [
        Fraction(1000 * n) for n in (1, 32)
    ]
    for value in values:
        for form in FORMS:
            if can_render(value, form):
                text = render_answer(value, form)
                assert read_answer(text) == value, (value, form, text)
                assert form_of(text) is not None
            else:
                with pytest.raises(ValueError, match="cannot be written"):
                    render_answer(value, form)


def test_the_rule_is_precise_and_misses_right_answers_in_the_listed_forms_only():
    problems = arithmetic_problems("train", 120, 2)
    for problem in problems:
        value = Fraction(problem.metadata["value"])
        forms: list[Form] = [form for form in FORMS if can_render(value, form)]
        for form in forms:
            text = f"{problem.metadata['work']} answer: {render_answer(value, form)}"
            assert figures_verdict(problem.answer, text, problem.question) == (
                "unparsed" if form in RULE_MISSES else "correct"
            ), text
        slip = corrupt(problem, problem.solution or "")
        assert figures_verdict(problem.answer, slip, problem.question) != "correct", slip


def test_reference_answers_verify_against_themselves_and_solutions_are_right():
    problems = arithmetic_problems("train", 300, 0)
    with RuleVerifier() as verifier:
        assert all(verifier.fault(problem, problem.answer) is None for problem in problems)
    assert all(problem.solution and gold(problem, problem.solution) for problem in problems)


def test_drawn_solutions_are_right_and_a_tenth_to_a_third_are_in_forms_the_rule_misses():
    random = Random(0)
    problems = arithmetic_problems("train", 1000, 0)
    solutions = [draw_solution(problem, random) for problem in problems]
    assert all(gold(problem, text) for problem, text in zip(problems, solutions, strict=True))
    verdicts = [figures_verdict(p.answer, text, p.question) for p, text in zip(problems, solutions, strict=True)]
    assert 0.1 < sum(verdict != "correct" for verdict in verdicts) / len(verdicts) < 0.35


def test_corruption_is_wrong_and_keeps_everything_but_numbers():
    random = Random(1)
    for problem in arithmetic_problems("train", 400, 0):
        right = draw_solution(problem, random)
        wrong = corrupt(problem, right, attempt=0, seed=5)
        assert wrong == corrupt(problem, right, attempt=0, seed=5)
        assert not gold(problem, wrong)
        stated, changed = find_answer(right), find_answer(wrong)
        forms = {form_of(_number(right, stated.start, stated.end)), form_of(_number(wrong, changed.start, changed.end))}
        assert len(forms) == 1 or forms == {"plain", "decimal"}
        assert ("boxed" in right, "answer:" in right) == ("boxed" in wrong, "answer:" in wrong)


def test_another_attempt_can_draw_another_slip():
    problem = arithmetic_problems("train", 1, 0)[0]
    assert len({corrupt(problem, problem.solution or "", attempt) for attempt in range(8)}) > 2


def test_an_unreadable_completion_is_returned_unchanged():
    problem = replace(problem_with("19"), id="q")
    assert corrupt(problem, "answer: no idea") == "answer: no idea"


def _number(text: str, start: int, end: int) -> str:
    words = text[start:end].split(" ")
    return " ".join(words[:-1]) if words[-1] in ("cups", "eggs", "figs", "hats", "nuts", "pens") else " ".join(words)
