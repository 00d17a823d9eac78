"""The memory of devices. README.md lists where each figure was looked up."""

import os
from dataclasses import dataclass

import torch

from cooper_rl import InputError

GB = 1e9


@dataclass(frozen=True)
class Device:
    """One accelerator, or a machine's CPU."""

    name: str
    memory: float
    """Memory in bytes."""
    source: str
    cpu: bool = False


DEVICES = {
    device.name: device
    for device in (
        Device("h100", 80 * GB, "NVIDIA H100 SXM data sheet"),
        Device("h200", 141 * GB, "NVIDIA H200 SXM data sheet"),
        Device("b200", 180 * GB, "NVIDIA DGX B200, an eighth of the machine"),
        Device("a100", 80 * GB, "NVIDIA A100 80 GB SXM data sheet"),
        Device("a100-40gb", 40 * GB, "NVIDIA A100 40 GB data sheet"),
        Device("l40s", 48 * GB, "NVIDIA L40S data sheet"),
        Device("rtx4090", 24 * GB, "NVIDIA Ada white paper"),
    )
}

USABLE = 0.9
"""Share of the memory that a plan fills: what is left goes to the CUDA context, NCCL and fragmentation. vLLM's own
default for `gpu_memory_utilization` is the same."""


def device_called(name: str | None) -> Device:
    """The device of that name; None is the GPU in this machine, `here` its CPU where there is none.

    Raises InputError for an unknown name, and for None where there is no GPU.
    """
    if name in DEVICES:
        return DEVICES[name]
    if name not in (None, "here"):
        raise InputError(f"--device {name}: not in the table; known: {', '.join(DEVICES)}, here")
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        return Device(properties.name, properties.total_memory, "as the driver says")
    if name is None:
        raise InputError(f"no GPU in this machine; name one with --device ({', '.join(DEVICES)}, or here for the CPU)")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Device("this machine's CPU", memory, "as the system says", cpu=True)
