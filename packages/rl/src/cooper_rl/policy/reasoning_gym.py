r"""Gold labels of the problems of reasoning-gym, by the scorers of its tasks.

Some scorers read an answer with Python's `eval`, or with sympy, which calls `eval`. They only get text that can neither
run code nor compute forever.
"""

import json
import re
from functools import cache
from typing import Any

from cooper_base.data.problem import Problem
from cooper_base.data.thoughts import without_thoughts
from cooper_base.errors import InputError
from cooper_verify.problems.reasoning_gym import dataset
from cooper_verify.rules.answer.extraction import text_answer
from cooper_verify.rules.processes.guard import guarded

_LIST = re.compile(r"[\w\s,.\[\]'\"-]*")  # without calls and arithmetic
_SUM = re.compile(r"(?:[\d\s+/().-]|(?<!\*)\*(?!\*))*")  # without powers, which can take forever
_POLYNOMIAL = re.compile(r"(?:\*\*\d\d?(?!\d|\s*\*\*)|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|[\d\s+-]|(?<!\*)\*(?!\*))*")
_HARMLESS = {
    **dict.fromkeys(("binary_matrix", "n_queens", "spiral_matrix", "string_insertion"), _LIST),
    **dict.fromkeys(("countdown", "puzzle24"), _SUM),
    "polynomial_multiplication": _POLYNOMIAL,
}
_NO_GOLD = ("intermediate_integration", "simple_integration")
_LONGEST_EXPRESSION = 300
_TAG = re.compile(r"<answer>(?:(.*?)</answer>|.*)", re.DOTALL)  # one that is never closed has no group
_TEXT = re.compile(r"\\(?:text|textbf|mathrm)\{([^{}]*)\}")


def gold(problem: Problem, completion_text: str) -> bool:
    r"""Whether the task's own scorer gives the completion's answer full marks; evaluation only.

    The answer is the only `\boxed{}`, else the last `<answer>`, else what the completion states ("The answer is ...").
    Raises InputError for a problem of another source, and for a task whose scorer would run what it reads.
    """
    name, settings = problem.metadata.get("task"), problem.metadata.get("settings")
    if not isinstance(name, str) or not isinstance(settings, dict):
        raise InputError(f"gold: problem {problem.id} is not from reasoning_gym; choose another problems.gold")
    if name in _NO_GOLD:
        raise InputError(f"gold: {name} would run answers as code; leave the task out, or write your own problems.gold")
    answer = guarded(_stated_answer, [(completion_text,)], None)[0]
    if answer is None:
        return False
    if name in _HARMLESS and (len(answer) > _LONGEST_EXPRESSION or not _HARMLESS[name].fullmatch(answer)):
        return False
    entry = {"question": problem.question, "answer": problem.answer or None, "metadata": problem.metadata["entry"]}
    return float(_scorer(name, json.dumps(settings)).score_answer(answer, entry)) >= 1.0


def _stated_answer(completion: str) -> str | None:
    """The text of a completion's only answer; None if it states none, several, or retracts it."""
    completion = without_thoughts(completion)
    found = text_answer(completion)
    tags = [tag[1] for tag in _TAG.finditer(completion) if tag[1] is not None]
    if found.boxes:
        first, *others = found.boxes
        answer = None if others or found.line or found.words else first
    elif tags:
        answer = tags[-1]
    else:
        answer = found.line.strip(" .") if found.line else None
    return None if answer is None else _TEXT.sub(r"\1", answer).strip()


@cache
def _scorer(name: str, settings: str) -> Any:
    return dataset(name, json.loads(settings))
