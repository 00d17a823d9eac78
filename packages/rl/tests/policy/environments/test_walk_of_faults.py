"""What raises on the k-th of n rollouts or chats costs that one: environments, tool syntaxes and chat templates."""

import logging

import pytest

from chat_models import CHATML, chat_tokenizer
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl import SamplingParams
from cooper_rl.data import chat_rendering
from cooper_rl.data.chat_rendering import ChatFault, rendered_each
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.engines.chat_input import ChatInput
from cooper_rl.policy.environments.environment import Environments
from cooper_rl.policy.environments.rounds import Rounds
from cooper_verify.problems.config import PromptConfig
from policy.environments.worlds import Adder, Script, call

N, K = 7, 4
PROBLEMS = [Problem(f"p{place}", f"{place}?", str(place)) for place in range(N)]
BOOM = "boom"
TEMPLATE = (
    "{% for m in messages %}{% if 'boom' in m.content %}{{ raise_exception('no boom') }}{% endif %}"
    "{{ m.content }}\n{% endfor %}"
)
"""Raises on a text with `boom` in it."""


class Moody(Adder):
    """Raises, or says what its template rejects, in one method for one problem."""

    fault = ""

    def reset(self, question: str, seed: int) -> str | None:
        super().reset(question, seed)
        self.bad = question == f"{K}?"
        return self._said("reset", "ready")

    def add(self, a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return self._said("add", "fine")

    def get_reward(self) -> float:
        self._said("get_reward", "")
        return 1.0

    def _said(self, method: str, usual: str) -> str:
        if self.bad and self.fault == f"{method} raises":
            raise ZeroDivisionError(method)
        return BOOM if self.bad and self.fault == f"{method} says it" else usual


class MoodySyntax:
    """Hermes tags, but for what it raises on."""

    fault = ""

    def message(self, text, *_):
        if self.fault == "message raises" and f'"a": {K}' in text:
            raise ZeroDivisionError("message")
        return {"role": "assistant", "content": text}

    def results(self, messages):
        if self.fault == "results raises" and messages[0]["content"] == BOOM:
            raise ZeroDivisionError("results")
        return f"\n{messages[0]['content']}\n"


@pytest.mark.parametrize(
    ("world", "syntax", "verdict"),
    [
        ("reset raises", "", "silent"),
        ("reset says it", "", "silent"),
        ("add raises", "", "correct"),  # the policy reads the error
        ("add says it", "", "silent"),
        ("get_reward raises", "", "silent"),
        ("", "message raises", "correct"),  # the call stays text
        ("add says it", "results raises", "silent"),
    ],
)
def test_what_raises_on_one_of_n_rollouts_costs_that_one(world, syntax, verdict, monkeypatch, caplog):
    monkeypatch.setattr(Moody, "fault", world)
    monkeypatch.setattr(MoodySyntax, "fault", syntax)
    tokenizer = build_tokenizer()
    tokenizer.chat_template = None if syntax else TEMPLATE
    encoder = PromptEncoder(tokenizer, PromptConfig(template="{question}"))
    environments = Environments(f"{__name__}:Moody", 20)
    path = f"{__name__}:MoodySyntax" if syntax else None
    rounds = Rounds(environments, encoder, 4, path, 1.0, lambda problem: True)
    going = N - (verdict == "silent" and world != "get_reward raises" and world.startswith("add"))
    going -= syntax == "message raises"
    script = Script([call(place) for place in range(N)], ["done"] * going)
    drawn = rounds.draw(script, PROBLEMS, 1, SamplingParams(max_tokens=400), 5)
    runs = list(drawn.samples.answers())
    assert script.rounds == []
    assert [run.verdict for run in runs] == [verdict if place == K else "correct" for place in range(N)]
    assert [run.stopped for run in runs if run is not runs[K]] == [True] * (N - 1)
    assert drawn.metrics["environment/lost"] == (verdict == "silent")
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_a_template_that_raises_on_one_of_n_prompts_costs_that_problem(caplog):
    problems = [Problem(p.id, BOOM if p.id == f"p{K}" else p.question, p.answer) for p in PROBLEMS]
    for limit in (None, 100):
        encoder = PromptEncoder(chat_tokenizer(TEMPLATE), PromptConfig(template="{question}"), context=limit)
        assert [problem.id for problem in encoder.fitting(problems)] == [f"p{i}" for i in range(N) if i != K]
    assert f"1 of {N} problems are left out, the first is p{K}: " in caplog.text
    assert "the chat template rejects the prompt: no boom" in caplog.text
    with pytest.raises(InputError, match="rejects the prompt: no boom"):
        encoder.fitting([problems[K]])


@pytest.mark.parametrize("others", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_template_that_needs_too_much_for_one_chat_costs_that_chat(others, monkeypatch):
    """Where it does so for as many chats as `_MOST_EXCEEDING`, those behind them are not tried."""
    loops = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    template = "{% if messages[0].content == 'boom' %}" + loops + "{% endif %}{{ messages[0].content }}"
    tokenizer = chat_tokenizer(template)

    def rendered(*texts):
        return rendered_each(tokenizer, [([{"role": "user", "content": text}], {}) for text in texts])

    monkeypatch.setattr(chat_rendering, "_MOST_EXCEEDING", 2 if others else 1)
    replies = rendered(*(BOOM if place == K else str(place) for place in range(N)))
    kept = [i for i in range(N) if i != K and (others or i < K)]
    assert [reply for reply in replies if isinstance(reply, str)] == [str(i) for i in kept]
    assert getattr(replies[K], "exceeds", False)
    assert isinstance(replies[N - 1], ChatFault) == (not others)


def test_a_reward_model_reads_the_text_that_its_template_rejects_in_its_place(caplog):
    raising = CHATML.replace(
        "{%- for message in messages %}",
        "{%- for message in messages %}{% if 'boom' in message.content %}{{ raise_exception('no boom') }}{% endif %}",
        1,
    )
    rows = [(f"{place}?", str(place), BOOM if place == K else f"It is {place}.") for place in range(N)]
    rows.append((f"{BOOM}?", "This reply stands here.", "Which question stands here?"))
    usual, moody = (ChatInput(chat_tokenizer(template), 512, True) for template in (CHATML, raising))
    assert moody.encode_all(rows) == usual.encode_all(rows)
    assert caplog.text.count("rejects the prompt: no boom") == 1
