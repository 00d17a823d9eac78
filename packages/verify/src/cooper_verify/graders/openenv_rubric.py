"""Rubrics of OpenEnv (its RFC 004): a number for an action and the observation that followed it."""

import asyncio
from collections.abc import Sequence
from inspect import isawaitable
from types import SimpleNamespace
from typing import Any

from cooper_base.data.problem import Problem
from cooper_verify.grader import Asked, Grader, Opinion, files_of, hashes_of

_ACTION = (
    *("message", "content", "text", "answer", "final_answer", "response", "completion", "output", "prediction"),
    *("guess", "solution"),
)
"""What environments call the text of an action."""
_REFERENCE = ("answer", "correct_answer", "ground_truth", "expected", "expected_answer", "reference", "target", "gold")
_QUESTION = ("question", "prompt", "query", "problem", "instruction", "task")


class OpenEnvRubricGrader(Grader):
    """A rubric as a grader of an episode of one turn. Nobody knows the scale of its numbers, so its verdict is always
    `silent`.

    The completion is the action, under the usual names of its text (`message`, `answer`, …), and its string. The
    observation is the last one (`done`), with the question, the reference and the problem's fields under their usual
    names, and with them and the `final_answer` in its `metadata`. A rubric that keeps the expected answer gets the
    reference by its `set_expected`. What else a rubric reads raises an AttributeError, which names it.
    """

    gives_verdicts = False

    def __init__(self, name: str, rubric: Any) -> None:
        self.name = name
        self._rubric = rubric

    def settings(self) -> dict[str, Any]:
        """The rubric's class with the contents of its file, and its own settings."""
        of = type(self._rubric)
        own = repr(self._rubric.state_dict()) if hasattr(self._rubric, "state_dict") else ""
        called = {"kind": "openenv_rubric", "rubric": of.__qualname__, "state": own}
        return {**called, "files": hashes_of(files_of(of))}

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """The rubric's numbers, None where it returns none. Exceptions of the rubric propagate."""
        return [self._opinion(problem, text) for problem, text in answers]

    def _opinion(self, problem: Problem, text: str) -> Opinion:
        if hasattr(self._rubric, "reset"):
            self._rubric.reset()
        if hasattr(self._rubric, "set_expected"):
            self._rubric.set_expected(problem.answer)
        given = self._rubric(_Said(text, dict.fromkeys(_ACTION, text)), _observation(problem, text))
        given = asyncio.run(_awaited(given)) if isawaitable(given) else given
        return Opinion("silent", None if given is None else float(given))


class _Said(SimpleNamespace):
    """Fields, and one text that stands for them all, as a judge's prompt writes it."""

    def __init__(self, text: str, fields: dict[str, Any]) -> None:
        super().__init__(**fields, _text=text)

    def __str__(self) -> str:
        return self._text


def _observation(problem: Problem, text: str) -> _Said:
    known = problem.metadata | dict.fromkeys(_QUESTION, problem.question) | dict.fromkeys(_REFERENCE, problem.answer)
    fields = known | {"done": True, "metadata": known | {"final_answer": text}}
    return _Said(problem.question, {str(name): value for name, value in fields.items()})


async def _awaited(given: Any) -> Any:
    return await given


def is_openenv_rubric(found: object) -> bool:
    """Whether an object, or a class, has what a rubric of OpenEnv has."""
    return callable(found) and hasattr(found, "forward") and hasattr(found, "named_rubrics")
