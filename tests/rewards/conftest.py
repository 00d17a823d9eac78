"""Groups of completions to score."""

from collections.abc import Callable

import pytest

from cooper_rl.data.problem import Problem
from cooper_rl.engines.sampling import Completion, Group


@pytest.fixture
def make_group() -> Callable[..., Group]:
    def make(answer: str, *texts: str, id: str = "p1", question: str = "How many apples?") -> Group:
        completions = [Completion(text, [], [], "stop") for text in texts]
        return Group(Problem(id, question, answer), [], completions)

    return make
