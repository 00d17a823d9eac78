"""An engine that computes nothing: arrays of the right shape, at once or after as long as a cluster would take.

What is left of a step is the driver's own work. Every call notes when it began and ended, and its CPU seconds.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import PrivateAttr

from cooper_base.data.problem import Problem
from cooper_rl.engines import Engine
from cooper_rl.engines.base import Learner, Metrics, PolicyLearner, RewardModelLearner, Sampler
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.scale.ray import ClusterEngine
from cooper_rl.records import Column, Samples


@dataclass(frozen=True)
class Span:
    """One call of the engine; times are `time.monotonic()`."""

    name: str
    begin: float
    end: float
    cpu: float


SPANS: list[Span] = []
DRAWN: dict[tuple[int, ...], list[tuple[np.ndarray, str]]] = {}
"""Token ids and text of every completion of a prompt, put here beforehand."""


@contextmanager
def noted(name: str, seconds: float = 0.0) -> Iterator[None]:
    """Note a call, and make it take so long at least."""
    begin, cpu = time.monotonic(), time.thread_time()
    yield
    time.sleep(max(0.0, seconds - (time.monotonic() - begin)))
    SPANS.append(Span(name, begin, time.monotonic(), time.thread_time() - cpu))


@dataclass(frozen=True)
class Parts:
    """Seconds of a step's parts on the devices."""

    generate: float = 0.0
    score: float = 0.0
    logprobs: float = 0.0
    update_policy: float = 0.0
    update_reward_model: float = 0.0
    push: float = 0.0

    def scaled(self, factor: float) -> "Parts":
        return Parts(*(seconds * factor for seconds in astuple(self)))

    def alone(self, lag: int, side_by_side: bool) -> float:
        """A step of a driver that takes no time. At lag 1 the completions are drawn beside everything else."""
        policy = self.logprobs + self.update_policy
        learning = max(policy, self.update_reward_model) if side_by_side else policy + self.update_reward_model
        learning += self.score
        return self.push + (max(self.generate, learning) if lag else self.generate + learning)


class FakeEngine(Engine):
    """What takes how long, and where."""

    kind: Literal["benchmarks.cluster.fake_engine:FakeEngine"] = "benchmarks.cluster.fake_engine:FakeEngine"
    parts: Parts = Parts()
    """In a step: old log-probabilities are asked once, and each model is updated once."""
    completions: int = 1
    """How many of them `parts.score` is for; the pairs of stage 2 are scored too."""
    side_by_side: bool = True
    """Whether the reward model has devices of its own."""
    ranks: int = 0
    """Processes of Ray that get the arguments of every call, and throw them away."""

    _cluster: ClusterEngine | None = PrivateAttr(default=None)

    @property
    def learns_side_by_side(self) -> bool:
        return self.side_by_side

    def open(self, directory: Path) -> None:
        """Start the processes that get the arguments, if any."""
        if self.ranks:
            self._cluster = ClusterEngine(policy_ranks=self.ranks, cpus_per_rank=0.1)
            self._cluster.open(directory)

    def close(self) -> None:
        """End them."""
        if self._cluster is not None:
            self._cluster.close()

    def hand_over(self, *arguments: Any) -> None:
        """What a call to the processes costs the driver."""
        if self._cluster is not None:
            self._cluster.policy_group.call("drop", "nothing", *arguments)

    def policy(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> "FakePolicy":
        return FakePolicy(self.parts.update_policy, self)

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> "FakeRewardModel":
        return FakeRewardModel(self.parts.update_reward_model, self)

    def sampler(self, policy: LearnerConfig, max_rows: int) -> "FakeSampler":
        return FakeSampler(self)


class FakeLearner(Learner):
    """Updates take their time in `forward_backward`."""

    name = ""

    def __init__(self, update_s: float, engine: FakeEngine):
        self._update_s, self._engine = update_s, engine
        self._random = np.random.default_rng(0)
        self._metrics: Metrics = {}

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        self._engine.hand_over(batch, loss)
        with noted(f"update {self.name}", self._update_s):
            return {"loss": 0.0, **self._metrics}

    def optim_step(self) -> Metrics:
        return {"grad_norm": 1.0, "learning_rate": 1e-6, "skipped_updates": 0.0}

    def save(self, directory: Path) -> None:
        directory.mkdir(parents=True)

    def load(self, directory: Path) -> None:
        raise NotImplementedError


class FakePolicy(FakeLearner, PolicyLearner):
    name = "policy"

    def logprobs(
        self, token_ids: Column, lengths: np.ndarray, temperature: float = 1.0, adapter: bool = True
    ) -> np.ndarray:
        self._engine.hand_over(token_ids, lengths)
        with noted("logprobs", self._engine.parts.logprobs):
            return self._random.normal(-1, 0.1, int(lengths.sum())).astype(np.float32)


class FakeRewardModel(FakeLearner, RewardModelLearner):
    name = "reward model"

    def score(self, token_ids: list[list[int]]) -> torch.Tensor:
        self._engine.hand_over(token_ids)
        share = len(token_ids) / self._engine.completions
        with noted("score", self._engine.parts.score * share):
            return torch.from_numpy(self._random.normal(size=len(token_ids)).astype(np.float32))


class FakeSampler(Sampler):
    """Draws in a thread of its own, as engines on other devices do."""

    def __init__(self, engine: FakeEngine):
        self._engine, self._thread = engine, ThreadPoolExecutor(max_workers=1)

    def sync_weights(self, learner: Any) -> None:
        with noted("push", self._engine.parts.push):
            pass

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        return self.submit(prompts, n, params, seed).result()

    def submit(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> "Future[Samples]":
        return self._thread.submit(self._draw, prompts, n)

    def _draw(self, prompts: Sequence[Sequence[int]], n: int) -> Samples:
        with noted("generate", self._engine.parts.generate):
            rows = [row for prompt in prompts for row in DRAWN[tuple(prompt)][:n]]
            token_ids = Column.of([ids for ids, _ in rows])
            logprobs = np.full(len(token_ids.values), -1.0, np.float32)
            return Samples(token_ids, logprobs, np.ones(len(rows), bool), [text for _, text in rows])


def wrong_answer(problem: Problem, completion_text: str, attempt: int = 0, seed: int = 0) -> str:
    """An assistant that is nearly free: another number in the box."""
    before, box, _ = completion_text.rpartition("\\boxed{")
    return f"{before}{box}{9000 + attempt}}}."
