"""Rubrics of verifiers (0.1.9 to 0.3): they score groups of states, the answers to one problem."""

import asyncio
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from cooper_base.errors import InputError, MissingExtraError
from cooper_verify.grader import Asked, Grader, Opinion
from cooper_verify.graders.function import rubric_state

VERSIONS = "'verifiers>=0.1.9,<0.4'"


class RubricGrader(Grader):
    """A rubric as a grader. Nobody knows the scale of its numbers, so its verdict is always `silent`."""

    gives_verdicts = False

    def __init__(self, name: str, rubric: Any) -> None:
        self.name = name
        self._rubric = rubric

    def settings(self) -> dict[str, Any]:
        """The names of its functions."""
        functions = [getattr(part, "__name__", repr(part)) for part in self._rubric.funcs]
        return {"kind": "rubric", "rubric": self.name, "functions": functions}

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """The rubric's numbers."""
        groups = [list(group) for _, group in groupby(answers, key=lambda asked: asked.problem)]
        return [Opinion("silent", float(score)) for group in groups for score in asyncio.run(self._of_group(group))]

    async def _of_group(self, answers: Sequence[Asked]) -> list[Any]:
        problem = answers[0].problem
        prompt = problem.messages or [{"role": "user", "content": problem.question}]
        completions = [[{"role": "assistant", "content": text}] for _, text in answers]
        states = [rubric_state(problem, completion, prompt) for completion in completions]
        await self._rubric.score_group(states)
        return [state["reward"] for state in states]


def is_rubric(found: object) -> bool:
    """Whether an object has what a rubric of verifiers has."""
    return hasattr(found, "score_group") and hasattr(found, "funcs")


def rubric_of(environment: str) -> Any:
    """The rubric of an environment of verifiers. Raises MissingExtraError without verifiers, and InputError for an
    environment or a version without rubrics."""
    try:
        import verifiers  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingExtraError(f"a rubric needs verifiers: pip install {VERSIONS}") from error
    if not hasattr(verifiers, "load_environment"):
        raise InputError(f"verifiers:{environment}: this version has no rubrics; install {VERSIONS}")
    rubric = verifiers.load_environment(environment).rubric
    if not is_rubric(rubric):
        raise InputError(f"verifiers:{environment}: its rubric has no score_group; install {VERSIONS}")
    return rubric
