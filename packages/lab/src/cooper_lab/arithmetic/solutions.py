"""Solutions of the embedded arithmetic world in many surface forms, and the place where a completion has its answer."""

from dataclasses import dataclass
from fractions import Fraction
from random import Random

from cooper_lab.arithmetic.answers import Form, can_render, render_answer
from cooper_rl import Problem

BOX, MARKER = "\\boxed{", "answer:"


def exact_value(problem: Problem) -> Fraction:
    """The exact value of an arithmetic problem."""
    return Fraction(problem.metadata["value"])


def write_solution(problem: Problem, form: Form, boxed: bool = False, with_unit: bool = False) -> str:
    """A solution: the work, then the answer in the given form, in a box or after `answer:`."""
    answer = render_answer(exact_value(problem), form)
    if with_unit and problem.metadata["unit"]:
        answer += f" {problem.metadata['unit']}"
    return f"{problem.metadata['work']} " + (f"\\boxed{{{answer}}}" if boxed else f"answer: {answer}")


def draw_solution(problem: Problem, random: Random) -> str:
    """Draw a solution for the warm-up data. Fixed weights (`habit`) decide how often each surface form is used."""
    value = exact_value(problem)
    habit: dict[Form, float] = {"plain": 6, "decimal": 1}
    if problem.metadata["form"] == "words":
        habit = {"words": 9, "plain": 1}
    elif value < 0:
        habit = {"plain": 5, "minus": 5}
    elif abs(value) >= 1000:
        habit = {"thousands": 5, "plain": 2, "magnitude": 3}
    elif value.denominator == 1:
        habit = {"plain": 9, "words": 1}
    elif problem.metadata["form"] == "decimal":
        habit = {"decimal": 9, "mixed": 1}
    elif value > 1:
        habit = {"fraction": 4, "mixed": 4, "over": 1}
    else:
        habit = {"fraction": 6, "over": 3}
    habit = {form: weight for form, weight in habit.items() if can_render(value, form)}
    (form,) = random.choices(list(habit), weights=list(habit.values()))
    boxed = form not in ("words", "over", "magnitude") and random.random() < 0.15
    return write_solution(problem, form, boxed, with_unit=random.random() < 0.5)


@dataclass(frozen=True)
class StatedAnswer:
    """The final answer that a completion states, without marker, box or outer spaces, and its place from `start` to
    `end`.

    `before` is the text before the answer's marker or box, `after` the text after its box.
    """

    text: str
    start: int
    end: int
    before: str
    after: str


def find_answer(text: str) -> StatedAnswer:
    """The content of the last box, else the text after the last `answer:`, else after the last `=`, else all of it."""
    end, after = len(text), ""
    if (at := text.rfind(BOX)) >= 0:
        start = at + len(BOX)
        end = _closing_brace(text, start)
        after = text[end + 1 :]
    elif (at := text.rfind(MARKER)) >= 0:
        start = at + len(MARKER)
    else:
        at = start = text.rfind("=") + 1
    while start < end and text[start] == " ":
        start += 1
    while end > start and text[end - 1] == " ":
        end -= 1
    return StatedAnswer(text[start:end], start, end, before=text[: max(at, 0)], after=after)


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)
