"""Whatever an assistant's server does during a run, no invalid pair is used and every attempt is counted."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat_server import ChatServer, HttpAnswer
from cooper_base.data.answer import Answer, AnswerGroup
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.cooptimization_config import CooptimizationConfig
from cooper_rl.reward.pairs.chat_assistant import ChatAssistant
from cooper_rl.reward.recipes import RECIPES
from cooper_verify.clients.chat import ChatClient, ChatConfig
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooptimization_cases import context_of  # pyright: ignore[reportMissingImports]
from faulty_assistant import QUICK, FaultyAssistant

PAPER = RECIPES["paper"]["cooptimization"]

ENDLESS = [fault for fault in QUICK if "endless" in fault or "gigabyte" in fault]
"""These faults are tested one by one elsewhere: with megabytes per request, hundreds of requests take too long."""
FAULTS = st.sampled_from([None, *(fault for fault in QUICK if fault not in ENDLESS)])
PROBLEMS = arithmetic_problems("train", 12)
STEPS, A_STEP = 4, 3


class Server:
    """Answers the requests of a run with a sequence of faults, which it repeats."""

    def __init__(self):
        self.faults: list[str | None] = [None]
        self.answered = 0

    def __call__(self, body, number: int) -> HttpAnswer:
        self.answered += 1
        return FaultyAssistant(self.faults[self.answered % len(self.faults)])(body, number)


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer(Server()) as running:
        yield running


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(faults=st.lists(FAULTS, min_size=1, max_size=12), max_retries=st.integers(0, 1), tries=st.integers(1, 3))
def test_any_sequence_of_faults(
    server, verifier: RuleVerifier, make_learner, encoder, faults: list[str | None], max_retries: int, tries: int
):
    learner = make_learner()
    server.respond.faults, server.respond.answered = faults, 0
    chat = ChatConfig(base_url=server.url, model="m", max_retries=max_retries, concurrency=2)
    assistant = ChatAssistant(ChatClient(chat), verifier, tries)
    cooptimization = Cooptimizer(CooptimizationConfig.model_validate(PAPER), verifier, assistant)
    barren = 0
    for step in range(STEPS):
        problems = PROBLEMS[step * A_STEP : (step + 1) * A_STEP]
        groups = [AnswerGroup(problem.id, problem, [Answer(problem.solution or "")]) for problem in problems]
        pairs = cooptimization.finish([cooptimization.start(context_of(groups, verifier), 1)])
        barren = 0 if pairs else barren + 1
        _, metrics = cooptimization.update([], learner, encoder)
        rejected_or_failed = [v for k, v in metrics.items() if k.startswith(("assistant/f", "assistant/r"))]
        assert metrics["assistant/attempts"] == metrics["assistant/accepted"] + sum(rejected_or_failed)
        assert metrics["assistant/accepted"] == metrics["pairs/count"] == len(pairs)
        assert metrics["pairs/steps_without"] == barren
        for pair in pairs:
            assert verifier.verify(pair.answer, pair.negative) == "wrong"
            assert pair.negative not in ("", pair.positive)
            assert len(pair.negative) <= 4 * len(pair.positive) + 400
        assert pairs or faults != [None]
    cooptimization.close()
