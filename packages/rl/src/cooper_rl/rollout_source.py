"""Where a step's rollouts come from: sampled now, sampled ahead, and sampled again where they teach nothing."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from cooper_base.clock import MEASURED
from cooper_base.data.problem import Problem
from cooper_base.files.durable import write_bytes
from cooper_rl.data.prompts import PromptEncoder
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines.base import Metrics, PolicyLearner, Sampler, sample_at_once
from cooper_rl.engines.config import RolloutConfig
from cooper_rl.policy.advantages import usable_groups
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.environments.rounds import Rounds
from cooper_rl.policy.update import differing, finite_rewards
from cooper_rl.records import Rollouts, Samples
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.scored import Scored

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
            rollouts = self._draw(seed, step - 1).result()
        if ahead:
            self._pending = self._draw(seed + 1, step - 1, ahead=True)
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
        return self._pending_of(problems, seed, version, ahead=False).result() if problems else None

    def _draw(self, seed: int, version: int, ahead: bool = False) -> Pending:
        return self._pending_of(self.stream.next_batch(), seed, version, ahead)

    def _pending_of(self, problems: Sequence[Problem], seed: int, version: int, ahead: bool) -> Pending:
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
            write_bytes(folder / PENDING_FILE, replace(rollouts, problems=ids).to_bytes(), durable=False)

    def restore(self, folder: Path) -> None:
        """Restore what `save` wrote, if anything. At lag 0 it is ignored."""
        self._pending = None
        if self.config.lag and (folder / PENDING_FILE).is_file():
            rollouts = Rollouts.from_bytes((folder / PENDING_FILE).read_bytes())
            problems = [self.stream.problem(problem.id) for problem in rollouts.problems]
            self._pending = replace(rollouts, problems=problems)


def _drawn(pending: Pending | Rollouts | None) -> Rollouts | None:
    return pending.result() if isinstance(pending, Pending) else pending


RESAMPLED_SEED = 3_000_000_000_000_061
"""Between the seeds of a step's first draw and its next ones."""


def resampled(
    rollout: RolloutConfig,
    algorithm: AlgorithmConfig,
    source: RolloutSource,
    reward: CooperReward,
    step: int,
    seed: int,
    rollouts: Rollouts,
    scored: Scored,
) -> tuple[Rollouts, Scored, Metrics]:
    """Dynamic sampling (DAPO): replace the step's groups whose rewards do not differ, because they teach nothing.

    Each is replaced, in its place, by a group of a problem that the step has not had, in at most `rollout.resample`
    further draws. The stream of problems learns what every group got. The reward model learns from all groups.
    """
    calls = [scored]
    picks, extra, draws = [(rollouts, p) for p in range(len(rollouts.problems))], 0, 0
    teaching = _report_to_stream(source.stream, rollouts, scored, algorithm)
    missing = [place for place, teaches in enumerate(teaching) if not teaches]
    flat = len(missing)
    while missing and draws < rollout.resample:
        draws += 1
        more = source.more(len(missing), seed + draws * RESAMPLED_SEED, step - 1)
        if more is None:
            break
        calls.append(reward.score(more.groups(), step=step, earlier=calls))
        for p, teaches in enumerate(_report_to_stream(source.stream, more, calls[-1], algorithm)):
            extra, flat = extra + 1, flat + (not teaches)
            if teaches:
                picks[missing.pop(0)] = (more, p)
    if not rollout.resample:
        return rollouts, scored, {}
    total = len(picks)
    metrics = {"rollout/resampled": extra / total, "rollout/flat_groups": flat / (total + extra)}
    metrics |= {"rollout/resample_draws": float(draws), "rollout/unfilled_groups": len(missing) / total}
    if not extra:
        return rollouts, scored, metrics
    rollouts = Rollouts.joined(picks)  # everything is scored, so only the first call's times are worth keeping
    metrics |= {name: value for name, value in scored.metrics.items() if name.startswith(MEASURED)}
    return rollouts, Scored.joined(calls, rollouts.groups()), metrics


def _report_to_stream(
    stream: ProblemStream, rollouts: Rollouts, scored: Scored, algorithm: AlgorithmConfig
) -> list[bool]:
    """Whether each group teaches something: its rewards differ. Reports this and the mean reward to the stream; of a
    group without any opinion there is no mean."""
    rewards = finite_rewards(scored.scores.rewards.like(scored.scores.rewards.flat.double()))
    summands = differing(algorithm.advantages, rewards, scored.scores.summands, algorithm.min_spread)
    names = [problem.id for problem in rollouts.problems]
    teaching = usable_groups(rewards, algorithm.min_spread, summands).tolist()
    means = dict(zip(names, rewards.opinions().mean().tolist(), strict=True))
    rates = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    stream.tell(rates, dict(zip(names, teaching, strict=True)))
    return teaching
