"""The sampler of a cluster: every process of the policy draws for a share of the prompts."""

import weakref
from collections.abc import Sequence

import numpy as np

from cooper_rl.engines.base import PolicyLearner, Sampler
from cooper_rl.engines.cluster.group import RankGroup
from cooper_rl.engines.cluster.learners import RemotePolicyLearner
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.rollouts import Column, Samples


class RemoteSampler(Sampler):
    """Native samplers in the processes of a group; implements `Sampler`. Every call may raise EngineLost.

    Each process holds a copy of all weights beside its shard, taken over by `load_weights`.
    """

    def __init__(self, group: RankGroup, policy: LearnerConfig, max_rows: int) -> None:
        self._group, self._key = group, group.new_key()
        self._loaded: tuple[str, int] | None = None
        group.call("build_sampler", self._key, policy, max_rows)
        weakref.finalize(self, group.forget, self._key)

    def load_weights(self, learner: PolicyLearner) -> None:
        """See `Sampler`. Raises TypeError for a learner of other processes."""
        if not isinstance(learner, RemotePolicyLearner) or learner.group is not self._group:
            raise TypeError(
                f"this sampler takes the weights of a policy learner of its own processes, not of {learner!r}"
            )
        wanted = (learner.key, learner.version)
        if wanted != self._loaded:
            self._group.call("load_weights", self._key, learner.key)
            self._loaded = wanted

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        """See `NativeSampler.sample`."""
        if self._loaded is None:
            raise RuntimeError("no weights to sample with: call load_weights first")
        return _joined(self._group.call_all("sample", self._key, list(prompts), n, params, seed))


def _joined(parts: Sequence[Samples]) -> Samples:
    """Completions of all prompts, from those of each run of prompts."""
    return Samples(
        token_ids=Column.of([row for part in parts for row in part.token_ids]),
        logprobs=np.concatenate([part.logprobs for part in parts]),
        stopped=np.concatenate([part.stopped for part in parts]),
        texts=[text for part in parts for text in part.texts],
    )
