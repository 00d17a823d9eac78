"""What the sharded learners of the policy and the reward model share: who computes what, updates, checkpoints."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from cooper_rl.engines.base import Metrics
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.fsdp2.agreement import all_true, largest, over_ranks
from cooper_rl.engines.fsdp2.sharding import rank_device, shard
from cooper_rl.engines.fsdp2.shares import shares
from cooper_rl.engines.local.adapter import dropouts, plain_weights, save_adapter
from cooper_rl.engines.local.learner import TorchLearner, disk_errors, save_trainer_state


def on_cpu(config: LearnerConfig) -> LearnerConfig:
    """The settings with which a model is loaded before it is sharded: a device need not hold all of it."""
    return config.model_copy(update={"device": "cpu"})


class ShardedLearner:
    """One process of a learner whose model is sharded over the process group.

    Every process calls the same methods with the whole batch, computes its share of the rows with an in-process
    learner, and returns what the whole batch gives. Each pass through the model is made by all processes together, so
    they agree on their number first, and the ones with less to do make passes that weigh nothing.
    """

    def __init__(self, learner: TorchLearner, config: LearnerConfig) -> None:
        """`learner` holds the whole model on the CPU; `config` says on which device its shard will be."""
        self.device = rank_device(config.device)
        self._calls = 0
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.learner = learner
        learner.run = shard(learner.model, self.device, config.autocast == "bfloat16")
        learner.config, learner.device = config, self.device
        learner.losses_finite = learner.losses_finite.to(self.device)

    def optim_step(self) -> Metrics:
        """See `Learner`. All processes skip an update, or none."""
        self._calls = 0
        self.learner.losses_finite = all_true(self.learner.losses_finite)
        return self.learner.optim_step()

    @torch.no_grad()
    def save(self, directory: Path) -> None:
        """See `Learner`. The folder is on a disk that all processes see; weights are gathered one at a time."""
        learner, first = self.learner, self.rank == 0
        with disk_errors(directory):
            if learner.base_fingerprint is not None:
                learner.model.reshard()  # pyright: ignore[reportCallIssue] - `shard` made it an FSDPModule
                save_adapter(directory, learner.model, learner.base_fingerprint, writes=first)
            else:
                weights = {name: tensor.cpu() for name, tensor in self.full_weights() if first}
                if first:
                    learner.model.save_pretrained(directory, state_dict=weights)
            if first and learner.tokenizer is not None:
                learner.tokenizer.save_pretrained(directory)
            moments = learner.optimizer
            save_trainer_state(directory, learner.model, moments, learner.counters(), self.rank, self.ranks)
        dist.barrier()

    def load(self, directory: Path) -> None:
        """See `Learner`. Reads what any number of processes has written, the in-process learner included."""
        self.learner.load(directory)

    def full_weights(self) -> Any:
        """Names and whole tensors, one after the other; a weight that has two names comes once. All processes ask.

        They are those of a model without adapter: an adapter is added to the weights it stands beside.
        """
        model = self.learner.model
        model.reshard()  # pyright: ignore[reportCallIssue]
        yield from plain_weights(model)
        parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
        yield from ((name, buffer) for name, buffer in model.state_dict().items() if name not in parameters)

    def share(self, costs: Sequence[int], groups: Sequence[Sequence[int]]) -> list[int]:
        """The rows that this process computes."""
        return shares(costs, groups, self.ranks)[self.rank]

    def train(self, passes: int, compute: Callable[[], Metrics], fill: Callable[[], Metrics], count: int) -> Metrics:
        """Accumulate the gradient of this process's share, of `count` rows or tokens; metrics of the whole batch."""
        self._seed_dropout()
        most = max(1, largest(passes, self.device))
        metrics = compute() if passes else {}
        fillers = [fill() for _ in range(most - passes)]
        return over_ranks(metrics or dict.fromkeys(fillers[0], 0.0), count, self.device)

    def infer(self, passes: int, compute: Callable[[], None], fill: Callable[[], object]) -> None:
        """Run this process's share without gradient."""
        most = largest(passes, self.device)
        if passes:
            compute()
        for _ in range(most - passes):
            fill()
        self.learner.model.reshard()  # pyright: ignore[reportCallIssue] - no backward pass comes that would do it

    def _seed_dropout(self) -> None:
        """Before each call of a step that trains: a run that is resumed drops what the run would have dropped."""
        if dropouts(self.learner.model):
            numbers = (self.learner.steps, self._calls, self.rank)
            torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))
        self._calls += 1
