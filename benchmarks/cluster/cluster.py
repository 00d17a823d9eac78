"""Sharded learners beside the in-process ones: how far their numbers are apart, what a call to the processes costs, and
how the cost of one update grows with them.

Usage: python -m benchmarks.cluster.cluster [RANKS ...]          (by default 1 2 4; about a minute on two free cores)
       python -m benchmarks.cluster.cluster growth [RANKS ...]   (by default 1 2 4 8 16)
"""

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ray
import torch
from benchmarks.speed.workload import random_model

from cooper_lab.arithmetic.arms import ASSETS
from cooper_rl.engines.base import PairBatch, PolicyBatch
from cooper_rl.engines.config import LearnerConfig, LoraConfig
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.local.adapter import whole
from cooper_rl.engines.losses.policy import KLConfig, PolicyObjective, PPOClip
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.engines.scale.ray import ClusterEngine
from cooper_rl.records import Column

OBJECTIVES = {
    "policy": PolicyObjective(loss=PPOClip(), kl=KLConfig(coefficient=0.1)),
    "reward_model": PairwiseLoss(anchor=0.1),
}
CALLS = 50
UPDATES = 3


def batches(seed: int = 0) -> dict[str, Any]:
    """32 completions of 4 prompts, and 16 pairs."""
    random = np.random.default_rng(seed)
    prompts = [random.integers(3, 107, size) for size in (12, 31, 19, 24)]
    lengths = random.integers(4, 64, 32)
    rows = [np.concatenate([prompts[i // 8], random.integers(3, 107, n)]) for i, n in enumerate(lengths)]
    tokens = int(lengths.sum())
    old, sampler, reference = random.normal(-3, 1, (3, tokens))
    advantages = np.repeat(random.normal(size=32), lengths)
    weights = np.full(tokens, 1 / tokens)
    policy = PolicyBatch(Column.of(rows), lengths, advantages, weights, old, sampler, reference)
    positives, negatives = ([random.integers(3, 107, n).tolist() for n in random.integers(8, 96, 16)] for _ in "ab")
    return {"policy": policy, "reward_model": PairBatch(positives, negatives, [1 / 16] * 16)}


def gradient_of(learner: Any) -> dict[str, torch.Tensor]:
    """The whole gradient of an in-process learner, or of this process's sharded one."""
    module = getattr(learner, "learner", learner).model
    return {name: whole(p.grad).detach().clone() for name, p in module.named_parameters() if p.requires_grad}


def remote_gradient(learner: Any) -> dict[str, torch.Tensor]:
    """Of a remote learner; all processes take part, and the first one's is returned."""
    key = learner.key
    calls = [a.__ray_call__.remote(lambda rank: gradient_of(rank.parts[key])) for a in learner.group.actors]
    return ray.get(calls)[0]


def gaps(engine: ClusterEngine, lora: LoraConfig | None) -> dict[str, float]:
    """Largest differences from the in-process engine, on the embedded world's models, which may have an adapter."""
    found, given, also = {}, batches(), ", adapter" if lora else ""
    for kind, objective in OBJECTIVES.items():
        config = LearnerConfig(model=str(ASSETS / kind), device="cpu", tokens_per_microbatch=512, lora=lora)
        ours, theirs = getattr(engine, kind)(config, 10), getattr(LocalEngine(), kind)(config, 10)
        losses = [learner.forward_backward(given[kind], objective)["loss"] for learner in (ours, theirs)]
        one, other = remote_gradient(ours), gradient_of(theirs)
        largest = max(g.abs().max() for g in other.values())
        found[f"{kind}{also}: loss, relative"] = abs(losses[0] - losses[1]) / abs(losses[1])
        gap = max(float((one[name] - other[name]).abs().max() / largest) for name in other)
        found[f"{kind}{also}: gradient, of the largest"] = gap
        if kind == "policy":
            asked = (given[kind].token_ids, given[kind].lengths)
            found[f"log-probabilities{also}, nats"] = float(
                np.abs(ours.logprobs(*asked) - theirs.logprobs(*asked)).max()
            )
        else:
            asked = given[kind].positives
            found[f"scores{also}"] = float((ours.score(asked) - theirs.score(asked)).abs().max())
    return found


def call_ms(engine: ClusterEngine, *arguments: Any) -> float:
    """Milliseconds of a call that does nothing in every process of the policy."""
    group = engine.policy_group
    group.call("drop", "nothing", *arguments)
    start = time.perf_counter()
    for _ in range(CALLS):
        group.call("drop", "nothing", *arguments)
    return (time.perf_counter() - start) / CALLS * 1e3


def update_cost(engine: ClusterEngine, model: Path) -> tuple[float, float, float]:
    """CPU seconds of all processes and wall seconds of an update from 256 completions, the mean of three after one, and
    the largest resident memory of a process in MiB.
    """
    random = np.random.default_rng(0)
    prompts = [random.integers(3, 107, 32) for _ in range(32)]
    rows = Column.of([np.concatenate([prompts[i // 8], random.integers(3, 107, 96)]) for i in range(256)])
    lengths = np.full(256, 96)
    numbers: list[Any] = [np.full(lengths.sum(), value) for value in (1.0, 1 / lengths.sum(), -4.0, -4.0, -4.0)]
    learner: Any = engine.policy(LearnerConfig(model=str(model), device="cpu", tokens_per_microbatch=1024), 10)

    def update() -> None:
        learner.forward_backward(PolicyBatch(rows, lengths, *numbers), OBJECTIVES["policy"])
        learner.optim_step()

    def used(what: Callable[[Any], float]) -> list[float]:
        return ray.get([actor.__ray_call__.remote(what) for actor in learner.group.actors])

    update()
    cpu, start = sum(used(lambda _: time.process_time())), time.perf_counter()
    for _ in range(UPDATES):
        update()
    wall, cpu = time.perf_counter() - start, sum(used(lambda _: time.process_time())) - cpu
    memory = used(lambda _: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return cpu / UPDATES, wall / UPDATES, max(memory)


def main() -> None:
    torch.set_num_threads(1)
    grows = sys.argv[1:2] == ["growth"]
    for ranks in map(int, sys.argv[1 + grows :] or (["1", "2", "4", "8", "16"] if grows else ["1", "2", "4"])):
        engine = ClusterEngine(policy_ranks=ranks, cpus_per_rank=0.1)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            engine.open(folder)
            print(f"{ranks} ranks")
            if grows:
                cpu, wall, memory = update_cost(engine, random_model(folder, 384)[0])
                print(
                    f"  an update: {cpu:.2f} CPU s in all, {wall:.2f} s of wall time, {memory:.0f} MiB a process",
                    flush=True,
                )
            else:
                for what, gap in (gaps(engine, None) | gaps(engine, LoraConfig(rank=8))).items():
                    print(f"  {what:<44} {gap:.1e}")
                print(f"  empty call {call_ms(engine):.1f} ms, with 8 MiB {call_ms(engine, np.zeros(2**20)):.1f} ms")
            engine.close()


if __name__ == "__main__":
    main()
