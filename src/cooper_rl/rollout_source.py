"""Where a step's rollouts come from: drawn when it begins (lag 0), or while the step before it learns (lag 1)."""

from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path

from cooper_rl.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines.base import AheadSampler, PolicyLearner, Sampler, sample_at_once
from cooper_rl.rollouts import Rollouts, Samples
from cooper_rl.run_config import RolloutConfig

FILE = "pending_rollouts.safetensors"
"""In a checkpoint at lag 1: the completions that the next step learns from."""


@dataclass(frozen=True)
class Pending:
    """Completions that are being drawn."""

    problems: Sequence[Problem]
    prompts: Sequence[Sequence[int]]
    samples: "Future[Samples]"
    n: int
    version: int

    def result(self) -> Rollouts:
        """Wait for them. Raises what the sampler raises."""
        return Rollouts.of(self.problems, self.prompts, self.samples.result(), self.n, self.version)


class RolloutSource:
    """The rollouts of one step after another.

    At lag 1 a step takes what was drawn during the step before, hands the engine the policy of now, and has it draw
    for the step after while it learns. The first step, and one whose predecessor left nothing, draws for itself too.
    """

    def __init__(self, config: RolloutConfig, stream: ProblemStream, encoder: PromptEncoder, sampler: Sampler):
        self._config, self._stream, self._encoder, self._sampler = config, stream, encoder, sampler
        self._pending: Pending | Rollouts | None = None

    def take(self, policy: PolicyLearner, step: int, seed: int, last: bool) -> Rollouts:
        """The rollouts of this step. `seed` is the step's, and the next one's is one more; no step follows the `last`.

        The policy's version is the number of steps that it has learned from. Raises what `Sampler.sample` raises.
        """
        ahead = bool(self._config.lag) and not last
        waiting, self._pending = self._pending, None
        rollouts = None if waiting is None else _finished(waiting)  # weights change when nothing is being drawn
        if rollouts is None or ahead:
            self._sampler.sync_weights(policy)
        if rollouts is None:
            problems, prompts = self._batch()
            samples = self._sampler.sample(prompts, self._config.n, self._config, seed)
            rollouts = Rollouts.of(problems, prompts, samples, self._config.n, step - 1)
        if ahead:
            problems, prompts = self._batch()
            asked = (prompts, self._config.n, self._config, seed + 1)
            sampler = self._sampler
            samples = sampler.submit(*asked) if isinstance(sampler, AheadSampler) else sample_at_once(sampler, *asked)
            self._pending = Pending(problems, prompts, samples, self._config.n, step - 1)
        return rollouts

    def settle(self) -> None:
        """Wait until nothing is being drawn, so that the engine can be used for something else."""
        if isinstance(self._pending, Pending):
            wait([self._pending.samples])

    def forget(self) -> None:
        """Drop what was drawn ahead; its problems come again in the next epoch."""
        self._pending = None

    def save(self, folder: Path) -> None:
        """Write what was drawn ahead, if anything, after waiting for it. Problems stand there by their ids.

        What could not be drawn is not written: a run that goes on from here draws it anew.
        """
        self.settle()
        if isinstance(self._pending, Pending) and self._pending.samples.exception() is not None:
            return
        if self._pending is not None:
            rollouts = _finished(self._pending)
            ids = [Problem(problem.id, "", "") for problem in rollouts.problems]
            (folder / FILE).write_bytes(replace(rollouts, problems=ids).to_bytes())

    def restore(self, folder: Path) -> None:
        """Go on with what `save` wrote, if anything. At lag 0 it is left out."""
        self._pending = None
        if self._config.lag and (folder / FILE).is_file():
            rollouts = Rollouts.from_bytes((folder / FILE).read_bytes())
            problems = [self._stream.problem(problem.id) for problem in rollouts.problems]
            self._pending = replace(rollouts, problems=problems)

    def _batch(self) -> tuple[list[Problem], list[list[int]]]:
        problems = self._stream.next_batch()
        return problems, [self._encoder.encode(problem) for problem in problems]


def _finished(pending: Pending | Rollouts) -> Rollouts:
    return pending.result() if isinstance(pending, Pending) else pending
