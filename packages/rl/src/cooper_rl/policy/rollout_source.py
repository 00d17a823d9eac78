"""Where a step's rollouts come from, sampled now or ahead, and their metrics."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cooper_base.data.problem import Problem
from cooper_base.files.durable import write_bytes
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines.base import Metrics, PolicyLearner, Sampler, sample_at_once
from cooper_rl.engines.config import RolloutConfig
from cooper_rl.policy.environments.rounds import Rounds
from cooper_rl.policy.rollout_bytes import from_bytes, to_bytes
from cooper_rl.records import Rollouts, Samples

PENDING_FILE = "pending_rollouts.safetensors"
"""In a checkpoint at lag 1: the completions that the next step learns from."""


@dataclass(frozen=True)
class Pending:
    """Completions that are being sampled."""

    problems: Sequence[Problem]
    prompts: Sequence[Sequence[int]]
    samples: Future[Samples]
    n: int
    version: int

    def result(self) -> Rollouts:
        """Wait for them. Raises what the sampler raises."""
        return Rollouts.of(self.problems, self.prompts, self.samples.result(), self.n, self.version)


class RolloutSource:
    """Samples the rollouts of each step.

    At lag 0, a step samples its rollouts with the current policy. At lag 1, it takes those that were sampled during the
    step before, gives the engine the current policy's weights, and has it sample for the next step while this step
    learns. The first step, and a step for which nothing was sampled ahead, samples its rollouts first.
    """

    def __init__(
        self,
        config: RolloutConfig,
        stream: ProblemStream,
        encoder: PromptEncoder,
        sampler: Sampler,
        rounds: Rounds | None = None,
    ):
        self.config = config
        self.stream, self._encoder, self._sampler, self._rounds = stream, encoder, sampler, rounds
        self._pending: Pending | Rollouts | None = None
        self.metrics: Metrics = {}
        """The environment's metrics of the last draw; empty without an environment."""

    def take(self, policy: PolicyLearner, step: int, seed: int, last: bool) -> Rollouts:
        """The rollouts of this step. `seed` is the step's, and the next one's is one more; no step follows the `last`.

        The policy's version is the number of steps that it has learned from. Raises what `Sampler.sample` raises.
        """
        ahead = bool(self.config.lag) and not last
        pending, self._pending = self._pending, None
        rollouts = _drawn(pending)  # weights change when nothing is being drawn
        if rollouts is None or ahead:
            self._sampler.sync_weights(policy)
        if rollouts is None:
            rollouts = self._draw(self.stream.next_batch(), seed, step - 1).result()
        if ahead:
            self._pending = self._draw(self.stream.next_batch(), seed + 1, step - 1, ahead=True)
        self._sampler.rest()
        return rollouts

    def first_prompt(self, seed: int) -> tuple[Problem, str]:
        """The first problem and prompt of a step with this seed. In an environment, it has the first observation."""
        problem = self.stream.first
        prompt_ids = self._encoder.encode(problem) if self._rounds is None else self._rounds.first_prompt(problem, seed)
        return problem, self._encoder.decode(prompt_ids)

    def more(self, count: int, seed: int, version: int) -> Rollouts | None:
        """Groups of up to `count` further problems for the same step; None if there are no others."""
        problems = self.stream.more(count)
        return self._draw(problems, seed, version).result() if problems else None

    def _draw(self, problems: Sequence[Problem], seed: int, version: int, ahead: bool = False) -> Pending:
        if self._rounds is not None:
            drawn = self._rounds.draw(self._sampler, problems, self.config.n, self.config, seed)
            samples, self.metrics = Future[Samples](), drawn.metrics
            samples.set_result(drawn.samples)
            return Pending(problems, drawn.prompts, samples, self.config.n, version)
        prompts = [self._encoder.encode(problem) for problem in problems]
        request, sampler = (prompts, self.config.n, self.config, seed), self._sampler
        samples = sampler.submit(*request) if ahead else sample_at_once(sampler, *request)
        return Pending(problems, prompts, samples, self.config.n, version)

    def settle(self) -> None:
        """Wait until nothing is being drawn, so that the engine can be used for something else."""
        if isinstance(self._pending, Pending):
            wait([self._pending.samples])

    def mark(self) -> Callable[[], None]:
        """Returns a function that restores the present state, for a step that is cancelled."""
        stream, pending = deepcopy(self.stream.state()), self._pending

        def restore() -> None:
            self.stream.restore(stream)
            self._pending = pending

        return restore

    def forget(self) -> None:
        """Drop what was sampled ahead; its problems come again in the next epoch."""
        self._pending = None

    def save(self, folder: Path) -> None:
        """Wait for what is being sampled ahead, if anything, and write it. Problems are written as their ids.

        If sampling failed, nothing is written, and a resumed run samples again.
        """
        self.settle()
        if isinstance(self._pending, Pending) and self._pending.samples.exception() is not None:
            return
        if (rollouts := _drawn(self._pending)) is not None:
            ids = [Problem(problem.id, "", "") for problem in rollouts.problems]
            write_bytes(folder / PENDING_FILE, to_bytes(replace(rollouts, problems=ids)), durable=False)

    def restore(self, folder: Path) -> None:
        """Restore what `save` wrote, if anything. At lag 0 it is ignored."""
        self._pending = None
        if self.config.lag and (folder / PENDING_FILE).is_file():
            rollouts = from_bytes((folder / PENDING_FILE).read_bytes())
            problems = [self.stream.problem(problem.id) for problem in rollouts.problems]
            self._pending = replace(rollouts, problems=problems)


def _drawn(pending: Pending | Rollouts | None) -> Rollouts | None:
    return pending.result() if isinstance(pending, Pending) else pending


def rollout_metrics(rollouts: Rollouts, step: int) -> Metrics:
    """Metrics of the completions. The entropy is minus the mean log-probability, in nats; the lag counts updates."""
    lengths_B = rollouts.written_lengths
    completions, tokens = len(lengths_B), int(lengths_B.sum())
    completion_of = np.repeat(np.arange(completions), lengths_B)
    logprobs_B = np.bincount(completion_of, weights=rollouts.logprobs[rollouts.written], minlength=completions)
    return {
        "rollout/lag": step - 1 - float(rollouts.versions.mean()),
        "rollout/tokens": float(tokens),
        "rollout/mean_length": tokens / completions,
        "rollout/cut_off_rate": int((~rollouts.stopped).sum()) / completions,
        "rollout/entropy_estimate": -sum(logprobs_B.tolist()) / max(tokens, 1),
    }
