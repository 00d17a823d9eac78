"""A deterministic stand-in for the assistant: it corrupts right completions and repairs wrong ones."""

from fractions import Fraction
from random import Random

from cooper_lab.arithmetic.answers import UNITS, Form, can_render, form_of, read_answer, render_answer
from cooper_lab.arithmetic.solutions import exact_value, find_answer
from cooper_rl import Problem

_TRIES = 50


def corrupt(problem: Problem, completion_text: str, attempt: int = 0, seed: int = 0) -> str:
    """Replace the final answer with a plausible wrong one and keep everything else: style, unit, surface form.

    The slip is an offset, reversed digits, a flipped sign, another denominator or another value. Half the time it also
    appears in the work. The same arguments give the same text; another `attempt` draws again. A completion whose
    answer cannot be read is returned unchanged.
    """
    random = Random(f"{problem.id}|{completion_text}|{attempt}|{seed}")
    stated = find_answer(completion_text)
    answer = stated.text
    number = _without_unit(answer)
    value, form = read_answer(number), form_of(number)
    if value is None or form is None:
        return completion_text
    wrong = render_answer(wrong_value(value, form, random), form)
    before = completion_text[: stated.start]
    if random.random() < 0.5:
        head, equals, tail = before.rpartition("=" + number)
        before = head + "=" + wrong + tail if equals else before
    return before + wrong + completion_text[stated.start + len(number) :]


def repair(problem: Problem, completion_text: str, attempt: int = 0, seed: int = 0) -> str:
    """Put the right answer in the place of the stated one, in its surface form where that can express it. A design of
    `examples/shelf/designs.yaml` names this function.

    The work stays as it is. A text without marker or box is taken for an answer; an empty text is returned unchanged.
    """
    stated = find_answer(completion_text)
    answer = stated.text
    if not answer:
        return completion_text
    number, value = _without_unit(answer), exact_value(problem)
    form = form_of(number)
    right = render_answer(value, form if form is not None and can_render(value, form) else "plain")
    return completion_text[: stated.start] + right + completion_text[stated.start + len(number) :]


def wrong_value(value: Fraction, form: Form, random: Random) -> Fraction:
    """A plausible wrong value that the same surface form can express."""
    for _ in range(_TRIES):
        wrong = random.choice(_SLIPS)(value, random)
        if wrong != value and can_render(wrong, form):
            return wrong
    return value + 1 if can_render(value + 1, form) else value - 1


def _without_unit(answer: str) -> str:
    number = answer.rstrip(".")
    head, _, last = number.rpartition(" ")
    return head if last in UNITS else number


def _grain(value: Fraction) -> Fraction:
    """The step size for changes to this value: 1000 for multiples of 1000, else 1 / its denominator."""
    if value.denominator == 1 and value and value % 1000 == 0:
        return Fraction(1000)
    return Fraction(1, value.denominator)


def _off_by_little(value: Fraction, random: Random) -> Fraction:
    return value + _grain(value) * random.choice((-3, -2, -1, 1, 2, 3))


def _off_by_ten(value: Fraction, random: Random) -> Fraction:
    return value + 10 * _grain(value) * random.choice((-1, 1))


def _transposed(value: Fraction, random: Random) -> Fraction:
    digits = str(abs(value) / _grain(value))
    swapped = Fraction(digits[::-1]) * _grain(value)
    return swapped if value > 0 else -swapped


def _other_sign(value: Fraction, random: Random) -> Fraction:
    return -value


def _other_value(value: Fraction, random: Random) -> Fraction:
    return _grain(value) * random.randint(1, 60)


def _other_denominator(value: Fraction, random: Random) -> Fraction:
    if value.denominator == 1:
        return value
    return Fraction(value.numerator, random.choice((2, 3, 4, 5, 8)))


_SLIPS = (_off_by_little, _off_by_little, _off_by_ten, _transposed, _other_sign, _other_value, _other_denominator)
