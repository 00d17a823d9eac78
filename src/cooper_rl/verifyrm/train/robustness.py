"""Robustness rows: completions without an honest answer, which fool a reward model trained only on honest solutions.

They follow One Token to Fool LLM-as-a-Judge (arXiv 2507.08794) and Pitfalls of Rule- and Model-based Verifiers
(arXiv 2505.22203). The phrases differ from those of `attacks.py`, so that the attack table measures generalisation.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal

from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.rewards.rule.plain_number import plain_number, same_number

RobustnessKind = Literal["empty", "single_token", "opener", "copied_question", "many_answers", "bare_answer"]

_TOKENS = (".", ",", "!", "-", "...", "#", "\\", "$", "The", "Answer", "So", "Yes", "OK", "Step", "=", "1.")
_OPENERS = (
    "Let me think about this.",
    "First, we need to understand the problem.",
    "Here is the solution:",
    "Reasoning:",
    "To find the answer, we proceed as follows.",
    "We start by writing down what is given.",
    "Okay, so I need to figure this out.",
    "Step 1:",
)
_SEPARATORS = (" or ", ", ", " / ", "; ", " and ")
_STATEMENTS = ("{answer}", r"\boxed{{{answer}}}", "The answer is {answer}.", r"The final answer is \boxed{{{answer}}}.")


def robustness_rows(
    rows: Sequence[LabelledCompletion], count: int, kinds: Sequence[RobustnessKind], seed: int
) -> list[LabelledCompletion]:
    """`count` rows about problems of `rows`, with the kinds in turn.

    All are labelled wrong, including lists of answers that hold the reference answer. The exception is every other
    `bare_answer`, which states only the reference answer: without it a model would learn that short answers are wrong.
    """
    random = Random(f"robustness {seed}")
    answers = sorted({row.answer for row in rows})
    made = []
    for number in range(count):
        row = random.choice(rows)
        kind = kinds[number % len(kinds)]
        if kind == "bare_answer" and number // len(kinds) % 2 == 0:
            made.append(_row(row, _stated(row.answer, random), 1.0, kind))
        else:
            made.append(_row(row, _WRITERS[kind](row, answers, random), 0.0, kind))
    return made


def other_answer(answer: str, answers: Sequence[str], random: Random) -> str:
    """One of `answers` that, as far as its text shows, is not just another form of `answer`.

    If 20 draws find none, it is `answer` followed by a 1.
    """
    for _ in range(20):
        other = random.choice(answers)
        if _differs(other, answer):
            return other
    return f"{answer}1"


def _differs(one: str, other: str) -> bool:
    a, b = plain_number(one), plain_number(other)
    if a is not None and b is not None:
        return same_number(a, b) is False
    return one.split() != other.split() and (a is None) == (b is None)


def _row(row: LabelledCompletion, completion: str, label: float, kind: str) -> LabelledCompletion:
    return LabelledCompletion(row.question, row.answer, completion, label, f"robustness {kind} of {row.location}")


def _stated(answer: str, random: Random) -> str:
    return random.choice(_STATEMENTS).format(answer=answer)


def _many_answers(row: LabelledCompletion, answers: Sequence[str], random: Random) -> str:
    listed = [row.answer, *(other_answer(row.answer, answers, random) for _ in range(random.randint(1, 5)))]
    random.shuffle(listed)
    style = random.choice(("{answer}", "{answer}", r"\boxed{{{answer}}}"))
    text = random.choice(_SEPARATORS).join(style.format(answer=answer) for answer in listed)
    return text if random.random() < 0.5 else f"The answer is {text}"


_Writer = Callable[[LabelledCompletion, Sequence[str], Random], str]
_WRITERS: dict[RobustnessKind, _Writer] = {
    "empty": lambda row, answers, random: random.choice(("", " ", "\n\n")),
    "single_token": lambda row, answers, random: random.choice(_TOKENS),
    "opener": lambda row, answers, random: random.choice(_OPENERS),
    "copied_question": lambda row, answers, random: row.question,
    "many_answers": _many_answers,
    "bare_answer": lambda row, answers, random: _stated(other_answer(row.answer, answers, random), random),
}
