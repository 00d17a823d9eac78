"""verl without a GPU: a platform and a rollout for its registries, so that its own trainer runs in a test.

verl imports this module in every process (VERL_USE_EXTERNAL_MODULES=verl_on_cpu, VERL_PLATFORM=cpu), and
VERL_ENGINE_DEVICE=cuda gives it the FSDP engine, which works on a CPU with `strategy=fsdp2`. What verl 0.9.1 does not
foresee is mended here, each with its reason.
"""

# pyright: reportMissingImports=false

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
import torch.distributed
from verl.plugin.platform import PlatformRegistry
from verl.plugin.platform.platform_base import PlatformBase

# verl patches a class of TRL's that this TRL does not have any more; without TRL it does not.
sys.modules["trl"] = None  # type: ignore[assignment]


class _Device(ModuleType):
    """torch.cpu, and zeros for what verl asks about a GPU's memory."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = {"get_device_name": lambda *_: "CPU", "mem_get_info": lambda *_: (0, 1)}
        return known.get(name) or getattr(torch.cpu, name, None) or (lambda *_, **__: 0)


@PlatformRegistry.register(platform="cpu")
class CPU(PlatformBase):
    """What verl wants to know of a device."""

    device_name = "cpu"
    vendor_name = "cpu"
    device_module = _Device("cpu_device")

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None: ...

    def synchronize(self, device_index: int | None = None) -> None: ...

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None: ...

    def empty_cache(self) -> None: ...

    def get_device_capability(self, device_index: int = 0) -> tuple[None, None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CPU_VISIBLE_DEVICES"

    def ray_resource_name(self) -> str:
        return "NPU"  # beside GPU the only name that verl counts before it starts workers

    def ray_resource_options(self, num_gpus: float) -> dict[str, Any]:
        return {"resources": {"NPU": num_gpus}}

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False

    @contextmanager
    def nvtx_range(self, msg: str) -> Any:
        yield

    def profiler_start(self) -> None: ...

    def profiler_stop(self) -> None: ...

    def cudart(self) -> None: ...


_init_process_group = torch.distributed.init_process_group


def _init_once(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
    """verl asks for "cpu:gloo,<device>:<backend>", which names the CPU twice here."""
    return _init_process_group("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)


torch.distributed.init_process_group = _init_once

from verl.workers.rollout import base, replica  # noqa: E402 - they ask for the platform


def _load_replica() -> Any:
    from verl_rollout import Replica

    return Replica


base._ROLLOUT_REGISTRY["transformers", "async"] = "verl_rollout.Adapter"
replica.RolloutReplicaRegistry.register("transformers", _load_replica)
