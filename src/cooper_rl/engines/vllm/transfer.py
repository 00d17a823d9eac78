"""The hand-over of weights to vLLM engines. Of vLLM's weight-transfer API this package uses what is here and in `gloo`.

The API has four verbs (`init_weight_transfer_engine`, `start_weight_update`, `update_weights`,
`finish_weight_update`) and a backend on both sides, which the engine's worker and the trainer look up by name. `nccl`
and `ipc` are vLLM's own; `gloo`, for CPUs, is ours. A worker knows it from
`worker_extension_cls="cooper_rl.engines.vllm.transfer.Extension"`.
"""

# vLLM has an environment of its own, where types are not checked.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportPrivateImportUsage=false

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource
from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo
from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
from vllm.utils.network_utils import get_open_port

from cooper_rl.engines.local.adapter import plain_weights
from cooper_rl.engines.vllm.gloo import GlooTrainerInitInfo

EXTENSION = f"{__name__}.Extension"
UNFINISHED = "unfinished "
"""How the version of an engine begins whose weights are being changed, or were left half changed."""


class Receiver(Protocol):
    """One engine or several that take the same weights: the verbs of vLLM's `VLLMWeightSyncClient`, and their state."""

    workers: int
    """Processes that hold weights, over all engines."""

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Join the sender's group. `rank_offset` counts the processes before those of the first engine."""

    def start_weight_update(self) -> None:
        """Prepare for new weights."""

    def update_weights(self, update_info: Any) -> None:
        """Take new weights, until they are all there."""

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Put the new weights in place."""

    def update_weight_version(self, new_version: str) -> None:
        """Change what `weight_versions` says."""

    def weight_versions(self) -> list[str]:
        """What each engine says its weights are; `default` are those it started with."""
        ...

    def reset_prefix_cache(self) -> None:
        """Forget keys and values that earlier weights computed."""


class WeightPushError(RuntimeError):
    """The engine's weights are not the policy's: they were handed over in part, or it says another version."""


class ModelWeights(WeightSource):
    """The weights of a Hugging Face model under their names in a checkpoint, sharded ones made whole.

    They are sent in `dtype`, the engine's own. A low-rank adapter (peft) is added to the weights it stands beside.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype):
        self._model = model
        self._dtype = dtype

    def metadata(self) -> list[ParamMeta]:
        """Name, type and shape of what iteration gives."""
        return [ParamMeta(_plain(name), self._dtype, tuple(p.shape)) for name, p in self._parameters()]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        for name, weight in plain_weights(self._model):
            yield name, weight.to(self._dtype)

    def _parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        for name, parameter in self._model.named_parameters():
            if ".lora_" not in name:
                yield name, parameter


def _plain(name: str) -> str:
    return name.replace(".base_layer.", ".")


class WeightSender:
    """The learner's side of one transfer group; every rank of a sharded learner makes one and calls `send`.

    `backend` is `gloo`, `nccl` or `ipc`; `host` and `port` are where rank 0 is reached. A sender whose transfer has
    failed is of no use any more: `close` it and make another, which clears away what the engines have received.
    """

    def __init__(
        self,
        backend: str,
        source: WeightSource,
        receiver: Receiver,
        *,
        rank: int = 0,
        host: str = "127.0.0.1",
        port: int | None = None,
        timeout_s: float = 600.0,
    ):
        """Raises WeightPushError where the engines cannot be reached."""
        self._receiver = receiver
        self._client = _Client(receiver)
        self._rank = rank
        self._source = _WholePasses(source)
        address: dict[str, Any] = {"master_address": host, "master_port": get_open_port() if port is None else port}
        world_size = 1 + receiver.workers
        if backend == "ipc":
            info = IPCTrainerInitInfo(rank=rank)
        elif backend == "nccl":
            info = NCCLTrainerInitInfo(**address, world_size=world_size, rank=rank)
        else:
            info = GlooTrainerInitInfo(**address, world_size=world_size, rank=rank, timeout_s=timeout_s)
        try:
            if rank == 0 and any(version.startswith(UNFINISHED) for version in receiver.weight_versions()):
                _clear_away(receiver)
            self._engine = WeightTransferTrainerFactory.trainer_init(info, client=self._client, source=self._source)
        except Exception as error:
            raise WeightPushError(f"the engines could not be reached for their weights: {error}") from error

    def send(self, version: str) -> None:
        """Hand over all weights as they are now; afterwards every engine says `version`.

        Raises WeightPushError where it failed on the way, or an engine says something else.
        """
        self._client.version = version
        self._source.begin()
        try:
            if self._rank == 0:
                self._receiver.update_weight_version(UNFINISHED + version)
            self._engine.send_weights()
            if self._rank == 0:
                self._receiver.reset_prefix_cache()
                found = self._receiver.weight_versions()
        except Exception as error:
            self.close()  # engines that still receive would wait for what does not come
            self._source.end()
            raise WeightPushError(f"the weights of version {version} were not handed over: {error}") from error
        if self._rank == 0 and set(found) != {version}:
            raise WeightPushError(f"engines say weights of version {', '.join(found)} after a push of {version}")

    def close(self) -> None:
        """Leave the group."""
        self._engine.shutdown()


class _WholePasses(WeightSource):
    """A source that is gone through to the end in every round.

    All ranks of a sharded model make each weight whole together. Where rank 0 stopped in the middle because an engine
    has died, the others would wait for it.
    """

    def __init__(self, source: WeightSource):
        self._source = source
        self._pass: Iterator[tuple[str, Tensor]] | None = None

    def metadata(self) -> list[ParamMeta]:
        return self._source.metadata()

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        self._pass = iter(self._source)
        for item in self._pass:  # noqa: UP028 - `yield from` would close it together with this one
            yield item

    def begin(self) -> None:
        """A round begins."""
        self._pass = None

    def end(self) -> None:
        """Go through what is left of a round that has failed."""
        with suppress(Exception):  # the round's own error says more
            for _ in iter(self) if self._pass is None else self._pass:
                pass


class _Client:
    """A receiver as vLLM's senders know it; they name no version."""

    def __init__(self, receiver: Receiver):
        self.init_weight_transfer_engine = receiver.init_weight_transfer_engine
        self.start_weight_update = receiver.start_weight_update
        self.update_weights = receiver.update_weights
        self._finish = receiver.finish_weight_update
        self.version: str | None = None

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._finish(weight_version or self.version)


def _clear_away(receiver: Receiver) -> None:
    """End an update that was cut, or its layers would count what they have as part of the next one.

    What is in place then is of no use; the version still says so.
    """
    with suppress(Exception):  # an update is open still: the cut came before any weight
        receiver.start_weight_update()
    receiver.finish_weight_update(UNFINISHED + "cut")


class Extension:
    """Nothing. Naming it as a worker's extension makes vLLM import this module there."""
