"""A calculator for the embedded world, and the few characters with which the small policy calls it.

What is 12 + 7?        the prompt
[12+7]<|end|>          the policy calls
=19                    the calculator answers
 answer: 19<|end|>     the policy replies
"""

import re
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from cooper_lab.arithmetic.answers import can_render, render_answer
from cooper_lab.arithmetic.corruption import corrupt
from cooper_lab.arithmetic.solutions import BOX, MARKER, draw_solution
from cooper_rl import Problem

ENVIRONMENT: dict[str, Any] = {
    "environment": f"{__name__}:Calculator",
    "tool_syntax": f"{__name__}:Brackets",
    "max_turns": 4,
    "max_tokens": 64,
}
"""Settings of `rollout`."""
MAX_INPUT_TOKENS = 250
"""Most tokens of a reward model's input: a rollout with two calls is three times as long as a solution."""
REFUSES, LIES, SLOW = 0.04, 0.04, 0.04
"""Share of the calls that fail in each way."""
_CALL = re.compile(r"\[([^\[\]]*)\]\s*\Z")
_CALCULATION = re.compile(r"(-?\d+(?:\.\d+)?)([-+*/])(\d+(?:\.\d+)?)")


class Calculator:
    """A calculator that sometimes refuses, answers wrongly or is slow. When it does so depends only on the seed and the
    calls."""

    def reset(self, seed: int, **row: Any) -> None:
        """Begin a rollout."""
        self._random = Random(f"calculator {seed}")

    def calculate(self, expression: str) -> str:
        """Compute the sum, difference, product or quotient of two numbers.

        Args:
            expression: Two numbers with a sign between them, such as `12+7`.

        Returns:
            The value, such as `19`.
        """
        luck = self._random.random()
        value = computed(expression)
        if luck < REFUSES:
            raise RuntimeError("busy")
        if luck < REFUSES + LIES:
            value += self._random.choice((-2, -1, 1, 2))
        elif luck < REFUSES + LIES + SLOW:
            time.sleep(0.005)
        return shown(value)


def computed(expression: str) -> Fraction:
    """Raises ValueError for a text that is not a calculation with two numbers, ZeroDivisionError if it has no value."""
    if (parts := _CALCULATION.fullmatch(expression.replace(" ", ""))) is None:
        raise ValueError("what?")
    left, sign, right = Fraction(parts[1]), parts[2], Fraction(parts[3])
    return {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[sign](right)


def shown(value: Fraction) -> str:
    """A value as the calculator shows it: `19`, `0.8` or `4/3`."""
    return render_answer(value, "plain" if value.denominator == 1 or not can_render(value, "decimal") else "decimal")


def calls_of(problem: Problem) -> list[str]:
    """What the calculator is asked: `12+7` for the work `12+7=19`."""
    return [step.partition("=")[0] for step in problem.metadata["work"].split(", ")]


def reply_to(problem: Problem, random: Random, right: bool = True) -> str:
    """The turn after the calculator's last answer: ` answer: 19`, or with a slip."""
    text = draw_solution(problem, random)
    if not right:
        text = corrupt(problem, text, seed=random.getrandbits(31))
    return text[max(text.find(f" {MARKER}"), text.find(" " + BOX)) :]


class Brackets:
    """The `ToolSyntax`: a turn that ends in `[12+7]` is a call; the policy then reads `=19`, or `=?` if that failed."""

    def message(self, text: str, token_ids: Sequence[int], before: Sequence[int]) -> Mapping[str, Any]:
        if (brackets := _CALL.search(text)) is None:
            return {"role": "assistant", "content": text}
        call = {"name": "calculate", "arguments": {"expression": brackets[1]}}
        return {"role": "assistant", "content": text[: brackets.start()].strip(), "tool_calls": [call]}

    def results(self, messages: Sequence[Mapping[str, Any]]) -> str:
        return "".join("=?" if message["content"].startswith("{") else f"={message['content']}" for message in messages)
