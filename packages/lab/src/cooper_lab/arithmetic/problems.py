"""Problems of the embedded arithmetic world, which needs no download, and their gold labels."""

import hashlib
from random import Random
from typing import Literal

from cooper_lab.arithmetic.answers import read_answer, render_answer
from cooper_lab.arithmetic.questions import Draft, draft_question
from cooper_lab.arithmetic.solutions import BOX, MARKER, exact_value, find_answer
from cooper_lab.arithmetic.world import run_settings
from cooper_rl import InputError, Problem

Split = Literal["train", "test"]

RUN_SETTINGS = run_settings
"""Settings of a run with the embedded policy on these problems, for `cooper attack --policy`."""

TEST_SHARE = 10
"""About one question in this many is a test question."""

_PATIENCE = 5000


def arithmetic_problems(split: Split, count: int, seed: int = 0) -> list[Problem]:
    """Draw `count` different problems.

    A question belongs to the same split for every seed, so the splits never share a question. `metadata` holds `value`
    (the exact value as a fraction), `unit`, `work`, `form` (the surface form the question asks for) and `family`.

    Raises InputError for an unknown split, or if the world has fewer than `count` questions.
    """
    if split not in ("train", "test"):
        raise InputError(f"the arithmetic world has no split {split!r}; use train or test")
    random = Random(f"{split}-{seed}")
    problems: dict[str, Problem] = {}
    draws_without_a_new_one = 0
    while len(problems) < count and draws_without_a_new_one < _PATIENCE:
        draft = draft_question(random)
        is_new = draft.question not in problems and split_of(draft.question) == split
        draws_without_a_new_one = 0 if is_new else draws_without_a_new_one + 1
        if is_new:
            problems[draft.question] = _problem(draft, split)
    if len(problems) < count:
        raise InputError(
            f"the arithmetic world has about {len(problems)} {split} questions; ask for fewer than {count}"
        )
    return list(problems.values())


def split_of(question: str) -> Split:
    """The split a question belongs to. It is decided by the question's hash."""
    return "test" if _digest(question) % TEST_SHARE == 0 else "train"


def gold(problem: Problem, completion_text: str) -> bool:
    """The trusted label of an arithmetic completion, for evaluation only.

    True if the completion states exactly one final answer and its value is exact, in any surface form. False for
    several stated answers, for other words in or after the answer, and for a number that runs into other text.
    """
    stated = find_answer(completion_text)
    if BOX in stated.before or MARKER in stated.before or stated.after.strip(" ."):
        return False
    return read_answer(stated.text) == exact_value(problem)


def _digest(question: str) -> int:
    return int.from_bytes(hashlib.sha256(question.encode()).digest()[:8], "big")


def _problem(draft: Draft, split: Split) -> Problem:
    return Problem(
        id=f"arithmetic-{split}-{_digest(draft.question):016x}",
        question=draft.question,
        # The world's rule cannot read a number word as a reference.
        answer=render_answer(draft.value, "plain" if draft.form == "words" else draft.form),
        solution=f"{draft.work} {MARKER} {render_answer(draft.value, draft.form)}",
        metadata={
            "value": str(draft.value),
            "unit": draft.unit,
            "work": draft.work,
            "form": draft.form,
            "family": draft.family,
        },
    )
