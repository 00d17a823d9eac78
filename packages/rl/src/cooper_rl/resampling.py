"""Dynamic sampling: a step's groups that teach nothing are sampled again, with other problems."""

import math
from collections.abc import Sequence

import numpy as np

from cooper_base.clock import MEASURED
from cooper_rl.data.stream import ProblemStream
from cooper_rl.engines.base import Metrics
from cooper_rl.engines.config import RolloutConfig
from cooper_rl.policy.advantages import usable_groups
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.estimators import differing
from cooper_rl.policy.rollout_source import RolloutSource
from cooper_rl.policy.update import finite_rewards
from cooper_rl.records import Column, Rollouts
from cooper_rl.reward.cooper_reward import CooperReward
from cooper_rl.reward.scored import Scored

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
    rollouts = joined_rollouts(picks)  # everything is scored, so only the first call's times are worth keeping
    metrics |= {name: value for name, value in scored.metrics.items() if name.startswith(MEASURED)}
    return rollouts, Scored.joined(calls, rollouts.groups()), metrics


def joined_rollouts(picks: Sequence[tuple[Rollouts, int]]) -> Rollouts:
    """New rollouts of the picked groups. A pick is rollouts and the index of one of their groups."""
    rows = [(rollouts, row) for rollouts, p in picks for row in range(rollouts.offsets[p], rollouts.offsets[p + 1])]
    logprobs = {id(rollouts): Column(rollouts.logprobs, rollouts.token_ids.offsets) for rollouts, _ in picks}
    first = picks[0][0]
    return Rollouts(
        token_ids=Column.of([rollouts.token_ids[row] for rollouts, row in rows], first.token_ids.values.dtype),
        logprobs=Column.of([logprobs[id(rollouts)][row] for rollouts, row in rows], first.logprobs.dtype).values,
        stopped=np.array([rollouts.stopped[row] for rollouts, row in rows], bool),
        texts=[rollouts.texts[row] for rollouts, row in rows],
        problems=[rollouts.problems[p] for rollouts, p in picks],
        prompts=Column.of([rollouts.prompts[p] for rollouts, p in picks], first.prompts.values.dtype),
        group_sizes=np.array([rollouts.group_sizes[p] for rollouts, p in picks]),
        versions=np.array([rollouts.versions[row] for rollouts, row in rows]),
    )


def _report_to_stream(
    stream: ProblemStream, rollouts: Rollouts, scored: Scored, algorithm: AlgorithmConfig
) -> list[bool]:
    """Whether each group teaches something: its rewards differ. Reports this and the mean reward to the stream; of a
    group without any opinion there is no mean."""
    rewards = finite_rewards(scored.scores.rewards.like(scored.scores.rewards.flat.double()))
    summands = ()
    if algorithm.advantages.reads_summands:
        summands = differing(rewards, scored.scores.summands, algorithm.min_spread)
    names = [problem.id for problem in rollouts.problems]
    teaching = usable_groups(rewards, algorithm.min_spread, summands).tolist()
    means = dict(zip(names, rewards.opinions().mean().tolist(), strict=True))
    rates = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    stream.tell(rates, dict(zip(names, teaching, strict=True)))
    return teaching
