"""Environments and a sampler for tests."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from threading import Event
from typing import Any

import numpy as np

from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.engines.base import Sampler
from cooper_rl.policy.environments.environment import Environments
from cooper_rl.policy.environments.rounds import Rounds
from cooper_rl.records import Column, Samples
from cooper_verify.problems.config import PromptConfig


class Adder:
    """Adds, and counts its calls."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1

    def reset(self, question: str, seed: int) -> None:
        self.question, self.random, self.calls = question, Random(seed), 0

    def add(self, a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        self.calls += 1
        return a + b

    def get_reward(self) -> float:
        return float(self.calls)

    def _hidden(self) -> None: ...


class AsyncAdder(Adder):
    async def add(self, a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return a + b


class Faulty(Adder):
    """Does what `a` says."""

    def add(self, a: Any, b: int) -> Any:
        """Misbehave.

        Args:
            a: How.
            b: Ignored.
        """
        self.calls += 1
        if a == "hang":
            time.sleep(1.5)
        if a == "throw":
            raise RuntimeError("no luck")
        if a == "exit":
            raise SystemExit(3)
        if a == "flood":
            return "<|end|>" + "x" * 5_000_000
        return "fine"

    def get_reward(self) -> float:
        if self.calls == 2:
            raise RuntimeError("cannot say")
        return float("nan") if self.calls == 3 else 1.0


class Hanging(Adder):
    """Never answers, in the way that `a` says."""

    released = Event()

    def add(self, a: str, b: int) -> int:
        """Hang.

        Args:
            a: How.
            b: Ignored.
        """
        while a == "python":
            with suppress(Exception):
                time.sleep(0.01)
        if a == "system":
            self.released.wait()
        return b


class AsyncHanging(Adder):
    async def add(self, a: int, b: int) -> int:
        """Hang.

        Args:
            a: Ignored.
            b: Ignored.
        """
        return await asyncio.Event().wait()


class Fickle(Adder):
    """Shows a number that depends on the seed, and cannot always begin."""

    def reset(self, question: str, seed: int) -> str | None:
        super().reset(question, seed)
        if question == "broken?" and self.random.random() < 0.5:
            raise RuntimeError("no server")
        return f" [{seed % 7}]"


class Drawing(Adder):
    """A die whose next face depends on all calls before."""

    def add(self, a: int, b: int) -> int:
        """Roll.

        Args:
            a: Ignored.
            b: Ignored.
        """
        self.calls += 1
        return self.random.randrange(10) + self.calls


class SometimesNoNumber(Drawing):
    """It cannot grade every run."""

    def get_reward(self) -> float:
        return float("nan") if self.calls % 2 else float(self.calls)


class Broken(Adder):
    """Its tool throws whatever it is asked."""

    def reset(self, question: str, seed: int) -> str:
        super().reset(question, seed)
        return "board 4"

    def add(self, a: int, b: int) -> int:
        """Add two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return {}["board"]


class NoReward:
    def reset(self) -> None: ...


class CallsAlways:
    """A syntax for a random policy: whatever ends by itself before `max_turns` is a call."""

    def message(self, text: str, *_: Any) -> dict[str, Any]:
        call = {"name": "add", "arguments": {"a": len(text), "b": 1}}
        return {"role": "assistant", "content": text, "tool_calls": [call] if len(text) % 3 else []}

    def results(self, messages: Sequence[Any]) -> str:
        return f"={messages[0]['content']};"


class Script(Sampler):
    """A sampler that says, for each row in turn, what the script says; `…` at the end stands for a cut."""

    def __init__(self, *rounds: Sequence[str]) -> None:
        self.tokenizer = build_tokenizer()
        self.rounds, self.asked = list(rounds), []

    def sample(self, prompts, n, params, seed, *_) -> Samples:
        self.asked.append((["".join(self.tokenizer.decode(prompt)) for prompt in prompts], n, params, seed))
        texts = self.rounds.pop(0)
        assert len(texts) == n * len(prompts)
        ids = [
            self.tokenizer.encode(text.removesuffix("…")) + [self.tokenizer.eos_token_id] * (text[-1:] != "…")
            for text in texts
        ]
        flat = [-0.5] * sum(map(len, ids))
        stopped = np.array([text[-1:] != "…" for text in texts])
        return Samples(Column.of(ids), np.array(flat, np.float32), stopped, [text.removesuffix("…") for text in texts])

    def sync_weights(self, learner: Any) -> None: ...


def rounds_of(
    world: str = "Adder", syntax: str | None = None, max_turns: int = 4, timeout_s: float = 20, outside: bool = False
) -> Rounds:
    encoder = PromptEncoder(build_tokenizer(), PromptConfig(template="{question}\n"))
    environments = Environments(f"policy.environments.worlds:{world}", timeout_s)
    return Rounds(environments, encoder, max_turns, syntax, 1.0, lambda problem: outside)


def call(a: Any, b: int = 7) -> str:
    """A call in Hermes tags."""
    value = f'"{a}"' if isinstance(a, str) else a
    return f'<tool_call>{{"name": "add", "arguments": {{"a": {value}, "b": {b}}}}}</tool_call>'


SUM = Problem("sum", "12+7?", "19")
