"""Weights of a learner on their way into vLLM engines. vLLM's weight-transfer API has four verbs, those of `_Client`,
and backends with a sending and a receiving half: its own `nccl` and `ipc`, and our `gloo`, registered by this import.
"""

# vLLM has an environment of its own, where types are not checked.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportPrivateImportUsage=false

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformers import PreTrainedModel
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

from cooper_rl.engines.base import WeightSender
from cooper_rl.engines.local.adapter import adapter_files, plain_weights
from cooper_rl.engines.scale.vllm import VllmConfig
from cooper_rl.engines.scale.vllm.engines import InferenceEngine, host_towards

EXTENSION = f"{__name__}.Extension"
UNFINISHED = "unfinished "  # prefix of an engine's version while its weights change, and after a push that was cut


class Extension:
    """Empty. Naming it as the worker's extension makes vLLM import this file in the worker."""


class WeightPushError(RuntimeError):
    """The engine's weights are not the policy's: a push was cut, or the engine reports another version."""


class ModelWeights(WeightSource):
    """The weights of a Hugging Face model under their checkpoint names, in the engine's `dtype`, adapter included.

    All ranks of a sharded model gather each weight together. Rank 0 may stop in the middle of a pass because an engine
    died, and the others would wait for it: `finish_pass` goes through the rest.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype):
        self._model, self._dtype = model, dtype
        self.begun: Iterator[tuple[str, Tensor]] | None = None  # the pass of a push

    def metadata(self) -> list[ParamMeta]:
        named = [(name, p) for name, p in self._model.named_parameters() if ".lora_" not in name]
        return [ParamMeta(name.replace(".base_layer.", "."), self._dtype, tuple(p.shape)) for name, p in named]

    def __iter__(self) -> Iterator[tuple[str, Tensor]]:
        self.begun = plain_weights(self._model)
        for name, weight in self.begun:  # not a generator around it, which would be closed together with this one
            yield name, weight.to(self._dtype)

    def finish_pass(self) -> None:
        with suppress(Exception):  # the error of the pass says more
            for _ in self.begun or self:
                pass


def open_sender(
    engine: InferenceEngine,
    config: VllmConfig,
    backend: str,
    model: PreTrainedModel,
    rank: int = 0,
    host: str | None = None,
) -> WeightSender:
    """The learner's end of one transfer, in every rank. Raises WeightPushError where the engines cannot be reached.

    `host` is the address of this machine for the engines; by default that for a server, or for this machine alone.
    """
    if engine.adapter_rank:
        return AdapterSender(engine, model, rank)
    return VllmWeightSender(engine, config, backend, model, rank, host)


class AdapterSender:
    """Sends the adapter of a model alone, to engines that hold its frozen weights since they were started."""

    def __init__(self, engine: InferenceEngine, model: PreTrainedModel, rank: int = 0):
        self._engine, self._model, self._rank = engine, model, rank

    def sync_weights(self, version: str) -> None:
        """See `VllmWeightSender`. All ranks gather the adapter before anything is sent."""
        files = adapter_files(self._model)
        if self._rank != 0:
            return
        try:
            self._engine.control("update_weight_version", {"new_version": UNFINISHED + version})
            self._engine.load_adapter(files)
            self._engine.reset_prefix_cache()
            self._engine.control("update_weight_version", {"new_version": version})
            found = self._engine.weight_versions()
        except Exception as error:
            raise WeightPushError(f"the adapter of version {version} was not handed over ({error})") from error
        check_versions(found, version)

    def disconnect(self) -> None: ...  # between two pushes nothing is open


class VllmWeightSender:
    """The learner's side of a transfer (`WeightSender`), in every rank. After a failed transfer, make a new one, which
    ends the update that the engines have begun.
    """

    def __init__(
        self,
        engine: InferenceEngine,
        config: VllmConfig,
        backend: str,
        model: nn.Module,
        rank: int = 0,
        host: str | None = None,
    ):
        """See `open_sender`."""
        self._engine, self._rank = engine, rank
        self._client = _Client(engine)
        self._weights = ModelWeights(model, engine.dtype)
        host = host or (host_towards(config.url) if config.url else "127.0.0.1")
        place = (host, get_open_port(), 1 + engine.workers)
        if backend == "ipc":
            info = IPCTrainerInitInfo(rank=rank)
        elif backend == "nccl":
            info = NCCLTrainerInitInfo(*place, rank=rank)
        else:
            info = GlooTrainerInitInfo(*place, rank=rank, timeout_s=config.timeout_s)
        try:
            if rank == 0 and any(version.startswith(UNFINISHED) for version in engine.weight_versions()):
                # An update was cut. Unless it is ended, its layers count what they have as part of the next one. The
                # weights in place are then useless, and the version still says so.
                with suppress(Exception):  # an update is open still: the cut came before any weight
                    engine.control("start_weight_update", {})
                engine.control("finish_weight_update", {"weight_version": UNFINISHED + "cut"})
            self._half = WeightTransferTrainerFactory.trainer_init(info, client=self._client, source=self._weights)
        except Exception as error:
            raise WeightPushError(f"the engines could not be reached for their weights: {error}") from error

    def sync_weights(self, version: str) -> None:
        """Send all weights as they are now. Raises WeightPushError where that fails, or an engine says otherwise."""
        self._client.version, self._weights.begun = version, None
        found = [version]
        try:
            if self._rank == 0:
                self._engine.control("update_weight_version", {"new_version": UNFINISHED + version})
            self._half.send_weights()
            if self._rank == 0:
                self._engine.reset_prefix_cache()
                found = self._engine.weight_versions()
        except Exception as error:
            self.disconnect()  # engines that are still receiving would wait forever
            self._weights.finish_pass()
            raise WeightPushError(f"the weights of version {version} could not be sent: {error}") from error
        check_versions(found, version)

    def disconnect(self) -> None:
        self._half.shutdown()


def check_versions(found: list[str], version: str) -> None:
    if set(found) != {version}:
        raise WeightPushError(f"engines say weights of version {', '.join(found)} after a push of {version}")


class _Client:
    """The four verbs as vLLM's senders call them. They pass no version, so `version` is filled in."""

    def __init__(self, engine: InferenceEngine):
        self._control = engine.control
        self.version: str | None = None

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        self._control("init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self) -> None:
        self._control("start_weight_update", {})

    def update_weights(self, update_info: Any) -> None:
        self._control("update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        self._control("finish_weight_update", {"weight_version": weight_version or self.version})


# The backend `gloo`: the protocol of `nccl` over PyTorch's gloo.


class _GlooGroup:
    """The calls that the `nccl` engines make on their communicator, over gloo."""

    def __init__(
        self, host: str, port: int, rank: int, world_size: int, timeout_s: float, joining: Future[Any] | None = None
    ):
        """Rank 0 gives `joining`, the call that makes the others join, and raises its error where it has failed."""
        self._timeout = timedelta(seconds=timeout_s)
        # Not vLLM's own function, which redirects the process's standard output meanwhile: where both sides are in one
        # process, two threads do so at once, and it stays redirected.
        store = dist.TCPStore(host, port, is_master=rank == 0, timeout=self._timeout, wait_for_workers=False)
        store.set(f"rank {rank}", "")
        if joining is not None:  # gloo itself would wait the whole timeout for one that has died
            others, end = [f"rank {other}" for other in range(1, world_size)], time.monotonic() + timeout_s
            while not store.check(others):
                if joining.done():
                    joining.result()
                if time.monotonic() > end:
                    raise TimeoutError(f"not all engines have joined the transfer within {timeout_s:g} s (timeout_s)")
                time.sleep(0.01)
        self._group: Any = dist.ProcessGroupGloo(dist.PrefixStore("weights", store), rank, world_size, self._timeout)

    def broadcast(self, tensor: Tensor, src: int) -> None:
        options = dist.BroadcastOptions()
        options.rootRank = src
        self._group.broadcast([tensor], options).wait(self._timeout)

    def destroy(self) -> None:
        self._group = None  # closes the connections, so that the others stop waiting


@dataclass(kw_only=True)
class GlooInitInfo(NCCLWeightTransferInitInfo):
    timeout_s: float = 600.0


class GlooEngine(NCCLWeightTransferEngine):  # the receiving half, in every worker
    init_info_cls = GlooInitInfo

    def init_transfer_engine(self, init_info: GlooInitInfo) -> None:
        self.shutdown()
        parallel, address = self.parallel_config, (init_info.master_address, init_info.master_port)
        rank = init_info.rank_offset + parallel.data_parallel_index * parallel.world_size + parallel.rank
        self.model_update_group = _GlooGroup(*address, rank, init_info.world_size, init_info.timeout_s)

    def receive_weights(self, update_info: NCCLWeightTransferUpdateInfo) -> None:
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
        super().finish_weight_update()
        head: Any = getattr(self.model, "lm_head", None)
        if hasattr(head, "cpu_linear"):
            # On a CPU vLLM multiplies by a repacked copy, which a reload does not refresh where head and embeddings are
            # the same tensor. (The configuration's `tie_word_embeddings` may be false by then.)
            head.quant_method.process_weights_after_loading(head)


@dataclass
class GlooTrainerInitInfo(NCCLTrainerInitInfo):
    backend: ClassVar[str] = "gloo"
    timeout_s: float = 600.0


class GlooTrainerEngine(NCCLTrainerWeightTransferEngine):
    """The sending side: rank 0 broadcasts, and the other ranks only help to gather each tensor."""

    init_info_cls = GlooTrainerInitInfo

    @classmethod
    def trainer_init(
        cls, init_info: GlooTrainerInitInfo, *, client: Any, source: WeightSource | None = None
    ) -> "GlooTrainerEngine":
        engine = cls(client=client, source=source, is_sender=init_info.is_sender)
        if engine.is_sender:
            host, port, size = init_info.master_address, init_info.master_port, init_info.world_size
            worker = GlooInitInfo(
                master_address=host, master_port=port, rank_offset=1, world_size=size, timeout_s=init_info.timeout_s
            )
            with ThreadPoolExecutor(1) as pool:
                joining = pool.submit(client.init_weight_transfer_engine, worker_init_payload(worker))
                engine.model_update_group = _GlooGroup(host, port, 0, size, init_info.timeout_s, joining)
                joining.result()
        return engine

    def send_weights(self) -> None:
        declared = self.source.metadata()
        if not self.is_sender:
            for _ in self.source:
                pass
            return
        update = NCCLWeightTransferUpdateInfo(
            names=[meta.name for meta in declared],
            dtype_names=[str(meta.dtype).removeprefix("torch.") for meta in declared],
            shapes=[list(meta.shape) for meta in declared],
        )
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
                    receiving.result()  # the error of the transfer says more
                raise
            receiving.result()
        self.client.finish_weight_update()


WeightTransferEngineFactory.register_engine("gloo", GlooEngine)
WeightTransferTrainerFactory.register_engine("gloo", GlooTrainerEngine)
