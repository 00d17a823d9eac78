"""A backend of vLLM's weight transfer for CPUs: the protocol of `nccl` over PyTorch's gloo.

Importing this module makes it known to vLLM, on the side that sends and in the workers that receive.
"""

# vLLM has an environment of its own, where types are not checked.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportPrivateImportUsage=false

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor
from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
from vllm.distributed.weight_transfer.base import WeightSource
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.distributed.weight_transfer.nccl_common import NCCLWeightTransferInitInfo, worker_init_payload
from vllm.distributed.weight_transfer.nccl_engine import (
    NCCLTrainerInitInfo,
    NCCLTrainerWeightTransferEngine,
    NCCLWeightTransferEngine,
    NCCLWeightTransferUpdateInfo,
)

LOOK_AGAIN_S = 0.01
"""Seconds between two looks whether all workers have come."""


class _Group:
    """What the `nccl` engines call on their communicator, over gloo."""

    def __init__(
        self, host: str, port: int, rank: int, world_size: int, timeout_s: float, joining: Future[Any] | None = None
    ):
        """Rank 0 gives `joining`, the call that makes the others join, and raises its error where it has failed."""
        self._timeout = timedelta(seconds=timeout_s)
        # Not vLLM's own function, which points the process's standard output elsewhere meanwhile: where both sides are
        # in one process, two threads do so at once, and it stays there.
        store = dist.TCPStore(host, port, is_master=rank == 0, timeout=self._timeout, wait_for_workers=False)
        store.set(_name(rank), "")
        if joining is not None:
            _wait_for([_name(other) for other in range(1, world_size)], store, joining, timeout_s)
        self._group: Any = dist.ProcessGroupGloo(dist.PrefixStore("weights", store), rank, world_size, self._timeout)

    def broadcast(self, tensor: Tensor, src: int) -> None:
        options = dist.BroadcastOptions()
        options.rootRank = src
        self._group.broadcast([tensor], options).wait(self._timeout)

    def destroy(self) -> None:
        """Close the connections, which ends the others' waiting."""
        self._group = None


def _name(rank: int) -> str:
    return f"rank {rank}"


def _wait_for(names: list[str], store: dist.TCPStore, joining: Future[Any], timeout_s: float) -> None:
    """Until all have come. Gloo itself would wait for one that has died, for as long as it is allowed to."""
    end = time.monotonic() + timeout_s
    while not store.check(names):
        if joining.done():
            joining.result()
        if time.monotonic() > end:
            raise TimeoutError(f"not all engines have joined the transfer within {timeout_s:g} s (timeout_s)")
        time.sleep(LOOK_AGAIN_S)


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
                engine.model_update_group = _Group(*address, 0, init_info.world_size, init_info.timeout_s, joined)
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


WeightTransferEngineFactory.register_engine("gloo", GlooEngine)
WeightTransferTrainerFactory.register_engine("gloo", GlooTrainerEngine)
