"""Groups of completions to score."""

from collections.abc import Callable

import pytest

from cooper_rl.data.problem import Problem
from cooper_rl.rollouts import Answer, AnswerGroup


@pytest.fixture
def make_group() -> Callable[..., AnswerGroup]:
    def make(answer: str, *texts: str, id: str = "p1", question: str = "How many apples?") -> AnswerGroup:
        return AnswerGroup(id, Problem(id, question, answer), [Answer(text) for text in texts])

    return make
