"""Learners whose models are sharded over the processes of a group: the policy and the reward model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from transformers import PreTrainedModel

from cooper_rl.engines.base import LabelledBatch, Metrics, PairBatch, PolicyBatch, WeightSender
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.fsdp2.sharding import rank_device, same_prompt, shard, shares
from cooper_rl.engines.local.adapter import dropouts, plain_weights, save_adapter
from cooper_rl.engines.local.learner import TorchLearner, disk_errors, save_trainer_state
from cooper_rl.engines.local.packing import families
from cooper_rl.engines.local.policy import TorchPolicyLearner, check_prompts
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner, check_not_empty
from cooper_rl.losses.policy import PolicyObjective
from cooper_rl.losses.reward_model import RewardLoss
from cooper_rl.rollouts import Column, offsets_of

OpenSender = Callable[[PreTrainedModel, int], WeightSender]
"""Opens a process's end of a transfer, given the sharded model and the process's number."""


class ShardedLearner:
    """One process of a learner whose model is sharded over the process group.

    Every process calls the same methods with the whole batch, computes its share of the rows with an in-process
    learner, and returns the result of the whole batch. All processes make each pass through the model together, so
    they agree on the number of passes first, and those with less work make passes of weight 0.
    """

    local: ClassVar[Any]
    """The class of the in-process learner."""

    @classmethod
    def from_config(cls, config: LearnerConfig, total_steps: int, trainable: bool = True) -> Self:
        """Load the model on the CPU, because a device need not hold all of it, and shard it."""
        on_cpu = config.model_copy(update={"device": "cpu"})
        return cls(cls.local.from_config(on_cpu, total_steps, trainable), config)

    def __init__(self, learner: TorchLearner, config: LearnerConfig) -> None:
        """`learner` holds the whole model on the CPU; `config.device` is where its shard will be."""
        self.device = rank_device(config.device)
        self._calls = 0
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.learner = learner
        learner.run = shard(learner.model, self.device, config.autocast == "bfloat16")
        learner.config, learner.device = config, self.device
        learner.losses_finite = learner.losses_finite.to(self.device)

    def optim_step(self) -> Metrics:
        """See `Learner`. Either all processes skip an update, or none."""
        self._calls = 0
        self.learner.losses_finite = _all_true(self.learner.losses_finite)
        return self.learner.optim_step()

    @torch.no_grad()
    def save(self, directory: Path) -> None:
        """See `Learner`. All processes see the folder's disk; weights are gathered one at a time."""
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
        """See `Learner`. Reads checkpoints of any number of processes, and of the in-process learner."""
        self.learner.load(directory)

    def full_weights(self) -> Any:
        """Names and whole tensors, one after the other, with an adapter merged into its base. All processes iterate.

        A weight with two names comes once.
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
        """Accumulate the gradient of this process's share, of `count` rows or tokens.

        Returns the metrics of the whole batch.
        """
        self._seed_dropout()
        most = max(1, _largest(passes, self.device))
        metrics = compute() if passes else {}
        fillers = [fill() for _ in range(most - passes)]
        return _over_ranks(metrics or dict.fromkeys(fillers[0], 0.0), count, self.device)

    def infer(self, passes: int, compute: Callable[[], None], fill: Callable[[], object]) -> None:
        """Run this process's share without gradient."""
        most = _largest(passes, self.device)
        if passes:
            compute()
        for _ in range(most - passes):
            fill()
        self.learner.model.reshard()  # pyright: ignore[reportCallIssue] - no backward pass comes that would do it

    def _seed_dropout(self) -> None:
        """Seed dropout by step, call and process, so that a resumed run drops what the run would have dropped."""
        if dropouts(self.learner.model):
            numbers = (self.learner.steps, self._calls, self.rank)
            torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1)[0]))
        self._calls += 1


class ShardedPolicyLearner(ShardedLearner):
    """One process of a causal language model; implements `PolicyLearner`."""

    local = TorchPolicyLearner
    learner: TorchPolicyLearner
    _sender: WeightSender | None = None

    def forward_backward(self, batch: PolicyBatch, loss: PolicyObjective) -> Metrics:
        mine = _completions(batch, self._rows(batch.token_ids, batch.lengths))
        return self.train(
            passes=len(self.learner.microbatches(mine.token_ids)) if len(mine.lengths) else 0,
            compute=lambda: self.learner.forward_backward(mine, loss),
            fill=lambda: self.learner.forward_backward(_weightless_completion(batch), loss),
            count=len(mine.advantages),
        )

    def logprobs(
        self, token_ids: Column, lengths: Int[np.ndarray, " B"], temperature: float = 1.0, adapter: bool = True
    ) -> Float[np.ndarray, " N"]:
        rows = self._rows(token_ids, lengths)
        mine, places = token_ids.take(rows), Column(np.arange(lengths.sum()), offsets_of(lengths)).places(rows)
        found = np.zeros(int(lengths.sum()), np.float64 if self.learner.model.dtype.itemsize == 8 else np.float32)

        def compute() -> None:
            found[places] = self.learner.logprobs(mine, lengths[rows], temperature, adapter)

        self.infer(
            passes=len(self.learner.microbatches(mine)) if rows else 0,
            compute=compute,
            fill=lambda: self.learner.logprobs(_TWO_TOKENS, np.array([1]), temperature, adapter),
        )
        return _added(found, self.device)

    def connect(self, open_sender: OpenSender) -> None:
        """Open this process's end of a transfer, in place of the one before."""
        if self._sender is not None:
            self._sender.disconnect()
        self._sender = open_sender(self.learner.model, self.rank)

    def sync_weights(self, version: str) -> None:
        """Send all weights as they are now. Every process calls this, to gather each weight together."""
        if self._sender is None:
            raise RuntimeError("no transfer is open: call connect first")
        self.learner.model.reshard()  # pyright: ignore[reportCallIssue]
        self._sender.sync_weights(version)

    def _rows(self, token_ids: Column, lengths: Int[np.ndarray, " B"]) -> list[int]:
        check_prompts(token_ids.lengths, lengths)  # by all processes, or those without such a row would wait forever
        return self.share(token_ids.lengths.tolist(), same_prompt(token_ids, lengths))


_TWO_TOKENS = Column.of([[0, 0]])


def _completions(batch: PolicyBatch, rows: list[int]) -> PolicyBatch:
    tokens = Column(batch.advantages, batch.offsets).places(rows)
    return PolicyBatch(
        token_ids=batch.token_ids.take(rows),
        lengths=batch.lengths[rows],
        advantages=batch.advantages[tokens],
        weights=batch.weights[tokens],
        old_logprobs=batch.old_logprobs[tokens],
        sampler_logprobs=batch.sampler_logprobs[tokens],
        reference_logprobs=None if batch.reference_logprobs is None else batch.reference_logprobs[tokens],
        temperature=batch.temperature,
    )


def _weightless_completion(batch: PolicyBatch) -> PolicyBatch:
    """A completion of one token, of weight 0."""
    zero = np.zeros(1)
    reference = None if batch.reference_logprobs is None else zero
    return PolicyBatch(_TWO_TOKENS, np.array([1]), zero, zero, zero, zero, reference, batch.temperature)


class ShardedRewardModelLearner(ShardedLearner):
    """One process of a sequence-classification model with one label; implements `RewardModelLearner`."""

    local = TorchRewardModelLearner
    learner: TorchRewardModelLearner

    def forward_backward(self, batch: PairBatch | LabelledBatch, loss: RewardLoss) -> Metrics:
        tokens = (batch.positives, batch.negatives) if isinstance(batch, PairBatch) else (batch.token_ids,)
        columns = [Column.of(rows) for rows in tokens]
        rows = self._rows(*columns)
        mine, nothing = batch.take(rows), _weightless_rows(batch)
        return self.train(
            passes=len(self.learner.microbatches(*(column.take(rows) for column in columns))) if rows else 0,
            compute=lambda: self.learner.forward_backward(mine, loss),
            fill=lambda: self.learner.forward_backward(nothing, loss),
            count=len(rows),
        )

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        column = Column.of(token_ids)
        rows = self._rows(column)
        found = np.zeros(len(token_ids), np.float32)

        def compute() -> None:
            found[rows] = self.learner.score([token_ids[i] for i in rows]).numpy()

        self.infer(
            passes=len(self.learner.microbatches(column.take(rows))) if rows else 0,
            compute=compute,
            fill=lambda: self.learner.score([[0]]),
        )
        return torch.from_numpy(_added(found, self.device))

    def _rows(self, first: Column, *others: Column) -> list[int]:
        """This process's rows; rows that share a prefix in `first` stay together."""
        for column in (first, *others):  # by all processes, or those without such a row would wait forever
            check_not_empty(list(column))
        costs = np.sum([column.lengths for column in (first, *others)], axis=0).tolist()
        return self.share(costs, [family.rows for family in families(list(first))])


def _weightless_rows(batch: PairBatch | LabelledBatch) -> PairBatch | LabelledBatch:
    """A row, or a pair of rows, of weight 0."""
    return PairBatch([[0]], [[0]], [0.0]) if isinstance(batch, PairBatch) else LabelledBatch([[0]], [0.0], [0.0])


# What the processes tell each other besides weights and gradients: a few numbers at a time.


def _largest(number: int, device: torch.device) -> int:
    """The largest of the processes' numbers."""
    return int(_reduced(torch.tensor(number, device=device), dist.ReduceOp.MAX).item())


def _all_true(flag: torch.Tensor) -> torch.Tensor:
    """Whether the flag is true in every process."""
    return _reduced(flag.int(), dist.ReduceOp.MIN).bool()


def _added(values: Shaped[np.ndarray, " N"], device: torch.device) -> Shaped[np.ndarray, " N"]:
    """The sum of the processes' arrays; it is exact where all but one of them are 0."""
    return _reduced(torch.from_numpy(values).to(device), dist.ReduceOp.SUM).cpu().numpy()


def _over_ranks(metrics: Metrics, count: int, device: torch.device) -> Metrics:
    """Combine the metrics of the processes' shares, of `count` rows or tokens each, to those of the whole batch.

    `loss` is a sum over the batch, everything else a mean. All processes have the same metrics.
    """
    names = list(metrics)
    sums = np.array([count, *(metrics[name] * (1 if name == "loss" else count) for name in names)], np.float64)
    total, *found = _added(sums, device).tolist()
    return {name: value / (1 if name == "loss" else max(1, total)) for name, value in zip(names, found, strict=True)}


def _reduced(tensor: torch.Tensor, how: "dist.ReduceOp.RedOpType") -> torch.Tensor:
    dist.all_reduce(tensor, how)
    return tensor
