"""Groups of completions to score."""

from collections.abc import Callable

import pytest

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem


@pytest.fixture
def make_group() -> Callable[..., AnswerGroup]:
    def make(answer: str, *texts: str, id: str = "p1", question: str = "How many apples?") -> AnswerGroup:
        return AnswerGroup(id, Problem(id, question, answer), [Answer(text) for text in texts])

    return make
