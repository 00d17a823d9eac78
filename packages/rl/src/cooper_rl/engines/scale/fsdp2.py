"""Learners whose models are sharded over the processes of any process group (PyTorch's FSDP2)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar, Self

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from transformers import PreTrainedModel

from cooper_base.errors import InputError
from cooper_rl.engines.base import LabelledBatch, Lengths, Metrics, PairBatch, PerToken, PolicyBatch, WeightSender
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.cpu import BFloat16Linear
from cooper_rl.engines.local.adapter import adapter_tensors, plain_weights
from cooper_rl.engines.local.device import resolve_device
from cooper_rl.engines.local.learner import TorchLearner, TorchPolicyLearner
from cooper_rl.engines.local.logprobs import check_prompts
from cooper_rl.engines.local.numerics import in_bfloat16
from cooper_rl.engines.local.packing import families
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner, check_not_empty
from cooper_rl.engines.losses.policy import PolicyObjective
from cooper_rl.engines.losses.reward_model import RewardLoss
from cooper_rl.records import Column, offsets_of

_CHOSEN_LATER = {"device": "cpu", "autocast": "off", "attention": "auto"}
"""What a learner chooses for its device, except that it is loaded on the CPU."""

OpenSender = Callable[[PreTrainedModel, int], WeightSender]
"""Called with the sharded model and the rank of this process."""


class ShardedLearner:
    """One process of a learner whose model is sharded over the process group.

    Every process calls the same methods with the whole batch, computes its share of the rows with an in-process
    learner, and returns the result of the whole batch. All processes make each pass through the model together, so
    they agree on the number of passes first, and those with less work make passes of weight 0.
    """

    local: ClassVar[Any]  # the class of the in-process learner

    @classmethod
    def from_config(cls, config: LearnerConfig, total_steps: int, trainable: bool = True) -> Self:
        """Load the model on the CPU, because a device need not hold all of it, and shard it."""
        on_cpu = config.model_copy(update=_CHOSEN_LATER)
        return cls(cls.local.from_config(on_cpu, total_steps, trainable), config)

    def __init__(self, learner: TorchLearner, config: LearnerConfig) -> None:
        """`learner` holds the whole model on the CPU; `config.device` is where its shard will be."""
        self.device = rank_device(config.device)
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.learner = learner
        self.model: Any = learner.model
        learner.run = shard(learner.model, self.device, in_bfloat16(config.autocast, self.device))
        learner.settle(config, self.device)
        learner.losses_finite = learner.losses_finite.to(self.device)

    def optim_step(self) -> Metrics:
        """See `Learner`. Either all processes skip an update, or none."""
        self.learner.losses_finite = _reduced(self.learner.losses_finite.int(), dist.ReduceOp.MIN).bool()
        return self.learner.optim_step()

    @torch.no_grad()
    def save(self, directory: Path) -> None:
        """See `Learner`. All processes must see the folder's disk; weights are gathered one at a time."""
        self.model.reshard()
        weights = (
            None if self.adapted else {name: tensor.cpu() for name, tensor in self.full_weights() if self.rank == 0}
        )
        self.learner.save(directory, weights, self.rank, self.ranks)
        dist.barrier()

    def load(self, directory: Path) -> None:
        """See `Learner`. Reads checkpoints that any number of processes, or the in-process learner, has written."""
        self.learner.load(directory)

    @property
    def adapted(self) -> bool:
        """Whether only the adapter is trained."""
        return self.learner.base_fingerprint is not None

    def describe(self) -> str:
        return f"{self.ranks} processes, each on {self.learner.describe()}"

    def full_weights(self) -> Any:
        """Names and whole tensors, each once, with an adapter merged into its base. Every process must iterate."""
        self.model.reshard()
        yield from plain_weights(self.model)
        parameters = {name for name, _ in self.model.named_parameters(remove_duplicate=False)}
        yield from ((name, buffer) for name, buffer in self.model.state_dict().items() if name not in parameters)

    def adapter_weights(self) -> Any:
        """Names and whole tensors of only the adapter, for a sampler that already has the frozen weights. Every process
        must call this."""
        self.model.reshard()
        return adapter_tensors(self.model)

    def train(self, mine: Any, columns: Sequence[Column], weightless: Any, loss: Any, count: int) -> Metrics:
        """Accumulate the gradient of this process's share `mine` (rows of `columns`), of `count` rows or tokens.
        Returns metrics of the whole batch: `loss` is a sum, everything else a mean.
        """
        local: Any = self.learner
        found, passes = self._together(1, columns, local.forward_backward, (mine, loss), (weightless, loss))
        metrics = found if passes else dict.fromkeys(found, 0.0)
        sums = [count, *(value * (1 if name == "loss" else count) for name, value in metrics.items())]
        total, *added = self._added(np.array(sums, np.float64)).tolist()
        sizes = [1 if name == "loss" else max(1, total) for name in metrics]
        return {name: value / size for name, value, size in zip(metrics, added, sizes, strict=True)}

    def infer(
        self, column: Column, verb: Callable[..., Any], mine: tuple, filler: tuple, found: np.ndarray, places: Any
    ) -> np.ndarray:
        """Call `verb` without gradient. The result for this process's rows `mine` is written to `places` of `found`,
        which is zero elsewhere; the sum over all processes is returned.
        """
        result, passes = self._together(0, [column], verb, mine, filler)
        self.model.reshard()  # usually the backward pass does this, but none follows here
        if passes:
            found[places] = result
        return self._added(found)

    def _together(
        self, least: int, columns: Sequence[Column], verb: Callable[..., Any], mine: tuple, filler: tuple
    ) -> tuple[Any, int]:
        """Call `verb` with `mine`, the rows of `columns`, and then with the `filler` until all processes have made the
        same number of passes. Returns the first result, and how many passes `mine` took.
        """
        passes = len(self.learner.microbatches(*columns)) if len(columns[0]) else 0
        most = int(_reduced(torch.tensor(max(least, passes), device=self.device), dist.ReduceOp.MAX))
        results = [*([verb(*mine)] if passes else []), *(verb(*filler) for _ in range(most - passes))]
        return next(iter(results), None), passes

    def _added(self, values: Shaped[np.ndarray, " N"]) -> Shaped[np.ndarray, " N"]:
        """The sum of the arrays of all processes. It is exact if all but one of them are 0."""
        return _reduced(torch.from_numpy(values).to(self.device), dist.ReduceOp.SUM).cpu().numpy()


class ShardedPolicyLearner(ShardedLearner):
    local = TorchPolicyLearner
    learner: TorchPolicyLearner
    _sender: WeightSender | None = None

    def forward_backward(self, batch: PolicyBatch, loss: PolicyObjective) -> Metrics:
        mine = batch.take(self._rows(batch.token_ids, batch.lengths))
        zeros: Any = dict.fromkeys(batch.flat, np.zeros(1))
        weightless = replace(batch, token_ids=_TWO_TOKENS, lengths=np.array([1]), **zeros)
        return self.train(mine, [mine.token_ids], weightless, loss, mine.count)

    def logprobs(self, token_ids: Column, lengths: Lengths, temperature: float = 1.0, adapter: bool = True) -> PerToken:
        rows = self._rows(token_ids, lengths)
        share = token_ids.take(rows)
        return self.infer(
            share,
            self.learner.logprobs,
            mine=(share, lengths[rows], temperature, adapter),
            filler=(_TWO_TOKENS, np.array([1]), temperature, adapter),
            found=np.zeros(int(lengths.sum()), np.float64 if self.model.dtype.itemsize == 8 else np.float32),
            places=Column(np.arange(lengths.sum()), offsets_of(lengths)).places(rows),
        )

    def connect(self, open_sender: OpenSender) -> None:
        if self._sender is not None:
            self._sender.disconnect()
        self._sender = open_sender(self.learner.model, self.rank)

    def sync_weights(self, version: str) -> None:
        if self._sender is None:
            raise RuntimeError("no transfer is open: call connect first")
        self.model.reshard()  # every process, to gather each weight together
        self._sender.sync_weights(version)

    def _rows(self, token_ids: Column, lengths: Lengths) -> list[int]:
        check_prompts(token_ids.lengths, lengths)  # by all processes, or those without such a row would wait forever
        return shares(token_ids.lengths.tolist(), same_prompt(token_ids, lengths), self.ranks)[self.rank]


_TWO_TOKENS = Column.of([[0, 0]])


class ShardedRewardModelLearner(ShardedLearner):
    local = TorchRewardModelLearner
    learner: TorchRewardModelLearner

    def forward_backward(self, batch: PairBatch | LabelledBatch, loss: RewardLoss) -> Metrics:
        mine = batch.take(self._rows(*batch.columns))
        pairs = isinstance(batch, PairBatch)
        weightless = PairBatch([[0]], [[0]], [0.0]) if pairs else LabelledBatch([[0]], [0.0], [0.0])
        return self.train(mine, mine.columns, weightless, loss, len(mine.weights))

    def score(self, token_ids: list[list[int]]) -> Float[Tensor, " B"]:
        column = Column.of(token_ids)
        rows, zeros = self._rows(column), np.zeros(len(token_ids), np.float32)
        mine = ([token_ids[i] for i in rows],)
        return torch.from_numpy(self.infer(column.take(rows), self.learner.score, mine, ([[0]],), zeros, rows))

    def _rows(self, *columns: Column) -> list[int]:
        """This process's rows; rows that share a prefix in the first column stay together."""
        for column in columns:  # by all processes, or those without such a row would wait forever
            check_not_empty(list(column))
        costs = np.sum([column.lengths for column in columns], axis=0).tolist()
        return shares(costs, [family.rows for family in families(list(columns[0]))], self.ranks)[self.rank]


def _reduced(tensor: Tensor, how: "dist.ReduceOp.RedOpType") -> Tensor:
    dist.all_reduce(tensor, how)
    return tensor


def rank_device(name: str) -> torch.device:
    """The device of this process. Raises InputError as `resolve_device` does, and for Apple's MPS."""
    device = resolve_device(name)
    if device.type == "mps":
        raise InputError("device: FSDP2 runs on CUDA and on CPUs; set device: cpu")
    return torch.device("cuda", torch.cuda.current_device()) if device.type == "cuda" else device


def shard(model: PreTrainedModel, device: torch.device, bfloat16: bool) -> Callable[..., Any]:
    """Shard a whole model over all processes, and move it to `device` layer by layer. Every process calls this.

    Returns a function that runs another one as a pass through the model: by itself FSDP2 gathers weights only for calls
    of `forward`. Gradients of the processes are added, because the weights of a loss are shares of the whole step. With
    `bfloat16`, products and gathered weights are in bfloat16, and shards, gradients and their sum in float32. Raises
    InputError for a model that FSDP2 does not take.
    """
    how: dict[str, Any] = {"mesh": init_device_mesh(device.type, (dist.get_world_size(),))}
    if bfloat16 and device.type == "cuda":
        how["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    layers = set(model._no_split_modules or ())  # the blocks, which transformers never divides between devices
    try:
        for module in [*(m for m in model.modules() if type(m).__name__ in layers), model]:
            fully_shard(module, **how)
    except ValueError as error:
        raise InputError(
            f"{model.config.name_or_path}: FSDP2 does not take this {type(model).__name__}: {error}"
        ) from error
    for module in model.modules():
        if isinstance(module, BFloat16Linear):
            module.keeps_packed = False
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            if device.type == "cpu":
                module.set_force_sum_reduction_for_comms(True)  # gloo has no PREMUL_SUM
    inside: Any = MethodType(lambda _, function, *arguments: function(*arguments), model)
    model.inside = inside  # pyright: ignore[reportAttributeAccessIssue]
    register_fsdp_forward_method(model, "inside")
    return model.inside  # pyright: ignore[reportReturnType]


def shares(costs: Sequence[int], groups: Sequence[Sequence[int]], ranks: int) -> list[list[int]]:
    """The rows of each of `ranks` processes, in ascending order; row i costs `costs[i]` (tokens).

    A group, whose rows share a prefix, is cut only if it costs more than an even share. The most expensive piece comes
    first; each goes to the process with the least work so far.
    """
    even, pieces = sum(costs) / ranks, []
    for group in groups:
        cost = math.inf
        for row in group:
            if cost + costs[row] <= even:
                pieces[-1].append(row)
                cost += costs[row]
            else:
                pieces.append([row])
                cost = costs[row]
    loads, taken = [0] * ranks, [[] for _ in range(ranks)]
    for piece in sorted(pieces, key=lambda piece: (-sum(costs[row] for row in piece), piece[0])):
        rank = loads.index(min(loads))
        loads[rank] += sum(costs[row] for row in piece)
        taken[rank].extend(piece)
    return [sorted(rows) for rows in taken]


def same_prompt(token_ids: Column, lengths: Lengths) -> list[list[int]]:
    groups: dict[bytes, list[int]] = {}
    for i, row in enumerate(token_ids):
        groups.setdefault(row[: len(row) - lengths[i]].tobytes(), []).append(i)
    return list(groups.values())
