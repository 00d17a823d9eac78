"""The hand-over of weights to vLLM engines. All that this package uses of vLLM's weight-transfer API is in this file.

The API has four verbs (`init_weight_transfer_engine`, `start_weight_update`, `update_weights`,
`finish_weight_update`) and a backend on both sides, which the engine's worker and the trainer look up by name. `nccl`
and `ipc` are vLLM's own. `gloo` is made here, for CPUs: the protocol of `nccl` over another communicator. A worker
knows it from `worker_extension_cls="cooper_rl.engines.vllm.transfer.Extension"`.
"""

# vLLM has an environment of its own, where types are not checked.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportPrivateImportUsage=false

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, ClassVar, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.distributed.weight_transfer.ipc_engine import IPCTrainerInitInfo
from vllm.distributed.weight_transfer.nccl_common import NCCLWeightTransferInitInfo, worker_init_payload
from vllm.distributed.weight_transfer.nccl_engine import (
    NCCLTrainerInitInfo,
    NCCLTrainerWeightTransferEngine,
    NCCLWeightTransferEngine,
    NCCLWeightTransferUpdateInfo,
)
from vllm.utils.network_utils import get_open_port

from cooper_rl.engines.local.adapter import plain_weights

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
        self._receiver = receiver
        self._client = _Client(receiver)
        self._rank = rank
        if rank == 0 and any(version.startswith(UNFINISHED) for version in receiver.weight_versions()):
            _clear_away(receiver)
        address: dict[str, Any] = {"master_address": host, "master_port": get_open_port() if port is None else port}
        world_size = 1 + receiver.workers
        if backend == "ipc":
            info = IPCTrainerInitInfo(rank=rank)
        elif backend == "nccl":
            info = NCCLTrainerInitInfo(**address, world_size=world_size, rank=rank)
        else:
            info = GlooTrainerInitInfo(**address, world_size=world_size, rank=rank, timeout_s=timeout_s)
        self._engine = WeightTransferTrainerFactory.trainer_init(info, client=self._client, source=source)

    def send(self, version: str) -> None:
        """Hand over all weights as they are now; afterwards every engine says `version`.

        Raises WeightPushError where it failed on the way, or an engine says something else.
        """
        self._client.version = version
        try:
            if self._rank == 0:
                self._receiver.update_weight_version(UNFINISHED + version)
            self._engine.send_weights()
            if self._rank == 0:
                self._receiver.reset_prefix_cache()
                found = self._receiver.weight_versions()
        except Exception as error:
            raise WeightPushError(f"the weights of version {version} were not handed over: {error}") from error
        if self._rank == 0 and set(found) != {version}:
            raise WeightPushError(f"engines say weights of version {', '.join(found)} after a push of {version}")

    def close(self) -> None:
        """Leave the group."""
        self._engine.shutdown()


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


class _Group:
    """What the `nccl` engines call on their communicator, over gloo."""

    def __init__(self, host: str, port: int, rank: int, world_size: int, timeout_s: float):
        self._timeout = timedelta(seconds=timeout_s)
        # Not vLLM's own function, which points the process's standard output elsewhere meanwhile: where both sides are
        # in one process, two threads do so at once, and it stays there.
        store = dist.TCPStore(host, port, world_size, is_master=rank == 0, timeout=self._timeout)
        self._group: Any = dist.ProcessGroupGloo(dist.PrefixStore("weights", store), rank, world_size, self._timeout)

    def broadcast(self, tensor: Tensor, src: int) -> None:
        options = dist.BroadcastOptions()
        options.rootRank = src
        self._group.broadcast([tensor], options).wait(self._timeout)

    def destroy(self) -> None:
        """Close the connections, which ends the others' waiting."""
        self._group = None


@dataclass(kw_only=True)
class GlooInitInfo(NCCLWeightTransferInitInfo):
    """What a worker needs to join the group."""

    timeout_s: float = 600.0


class GlooEngine(NCCLWeightTransferEngine):
    """The receiving half, in every worker."""

    init_info_cls = GlooInitInfo

    def init_transfer_engine(self, init_info: GlooInitInfo) -> None:
        """Join the sender's group, after leaving an earlier one."""
        self.shutdown()
        parallel = self.parallel_config
        rank = init_info.rank_offset + parallel.data_parallel_index * parallel.world_size + parallel.rank
        assert init_info.master_address is not None
        assert init_info.master_port is not None
        address = (init_info.master_address, init_info.master_port)
        self.model_update_group = _Group(*address, rank, init_info.world_size, init_info.timeout_s)

    def receive_weights(self, update_info: NCCLWeightTransferUpdateInfo) -> None:
        """Take every tensor as it comes."""
        group: Any = self.model_update_group
        if group is None:
            raise RuntimeError("no group to receive weights from: the sender has to open one again")
        try:
            for name, dtype, shape in zip(update_info.names, update_info.dtype_names, update_info.shapes, strict=True):
                weight = torch.empty(shape, dtype=getattr(torch, dtype))
                group.broadcast(weight, src=0)
                self.model.load_weights([(name, weight)])
        except BaseException:
            self.shutdown()  # or the sender would wait for a worker that no longer receives
            raise

    def finish_weight_update(self) -> None:
        """Put the weights in place."""
        super().finish_weight_update()
        head: Any = getattr(self.model, "lm_head", None)
        if hasattr(head, "cpu_linear"):
            # On a CPU vLLM multiplies by a repacked copy, which a reload does not refresh where head and embeddings are
            # the same tensor. (The configuration's `tie_word_embeddings` may be false by then.)
            head.quant_method.process_weights_after_loading(head)


@dataclass
class GlooTrainerInitInfo(NCCLTrainerInitInfo):
    """What the sender needs to open the group."""

    backend: ClassVar[str] = "gloo"
    packed: bool = False
    timeout_s: float = 600.0


class GlooTrainerEngine(NCCLTrainerWeightTransferEngine):
    """The sending half: rank 0 broadcasts, the other ranks only take part in making each tensor whole."""

    init_info_cls = GlooTrainerInitInfo

    @classmethod
    def trainer_init(
        cls, init_info: GlooTrainerInitInfo, *, client: Any, source: WeightSource | None = None
    ) -> "GlooTrainerEngine":
        """Open the group; returns when every worker is in it."""
        assert source is not None
        engine = cls(client=client, source=source, is_sender=init_info.is_sender, packed=False)
        if engine.is_sender:
            address = (init_info.master_address, init_info.master_port)
            worker = GlooInitInfo(
                master_address=address[0],
                master_port=address[1],
                rank_offset=1,
                world_size=init_info.world_size,
                timeout_s=init_info.timeout_s,
            )
            with ThreadPoolExecutor(1) as pool:
                joined = pool.submit(client.init_weight_transfer_engine, worker_init_payload(worker))
                engine.model_update_group = _Group(*address, 0, init_info.world_size, init_info.timeout_s)
                joined.result()
        return engine

    def send_weights(self) -> None:
        """One round: the workers receive while this side sends."""
        assert self.source is not None
        declared = self.source.metadata()
        if not self.is_sender:
            for _ in self.source:
                pass
            return
        names = [meta.name for meta in declared]
        dtypes = [str(meta.dtype).removeprefix("torch.") for meta in declared]
        update = NCCLWeightTransferUpdateInfo(names, dtypes, [list(meta.shape) for meta in declared])
        group: Any = self.model_update_group
        if group is None:
            raise RuntimeError("this sender has left its group; make another")
        self.client.start_weight_update()
        with ThreadPoolExecutor(1) as pool:
            receiving = pool.submit(self.client.update_weights, asdict(update))
            try:
                for _, tensor in self._checked_iter(self.source, declared):
                    if receiving.done():
                        break  # it failed, as there is more to come
                    group.broadcast(tensor.contiguous().cpu(), src=0)
            except BaseException:
                a_worker_failed_first = receiving.done()
                self.shutdown()  # or the workers would wait for a sender that no longer sends
                if a_worker_failed_first:
                    receiving.result()  # its error says more
                raise
            receiving.result()
        self.client.finish_weight_update()


class Extension:
    """Nothing. Naming it as a worker's extension makes vLLM import this module there."""


WeightTransferEngineFactory.register_engine("gloo", GlooEngine)
WeightTransferTrainerFactory.register_engine("gloo", GlooTrainerEngine)
