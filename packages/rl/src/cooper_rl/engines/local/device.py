"""Chooses the device of the tensors and the number of CPU threads, and keeps freed memory for the next pass."""

import ctypes
import logging
import os
from functools import cache
from typing import Any

import torch

from cooper_base.errors import InputError

logger = logging.getLogger(__name__)

# oneDNN compiles a kernel for every new number of rows and keeps the last 1024 in each of two caches, of 1 to 3 MiB:
# gigabytes, although a step uses only a few dozen. It reads these variables at its first product.
for _cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(_cache, "64")

_KEEP_ALL = ((-3, 2**31 - 1), (-1, -1))
"""From malloc.h: M_MMAP_THRESHOLD, the size from which a block is a mapping of its own, and M_TRIM_THRESHOLD, the free
memory above which the heap shrinks (-1: never)."""


def resolve_device(name: str = "auto") -> torch.device:
    """The torch device called `name`; "auto" is the first of CUDA, MPS and the CPU that there is. Raises InputError for
    a name that torch does not know and a device that this machine does not have.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        if torch.backends.mps.is_available():
            warn_untried("device: mps")
            return torch.device("mps")
        return torch.device("cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(f"device: torch knows no device {name!r}; use auto, cpu, cuda, cuda:N or mps") from error
    missing_cuda = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if missing_cuda or (device.type == "mps" and not torch.backends.mps.is_available()):
        raise InputError(f"device: {name!r} is not available on this machine; use device: auto")
    return device


@cache
def warn_untried(part: str, tried: str = "has never run on a GPU here, only on CPUs") -> None:
    """Log, once in a process, how little of `part` of a run was `tried` on what it is for."""
    logger.warning("%s %s: see docs/gpu.md before a long run", part, tried)


def set_threads(n: int | None = None) -> int:
    """Fix the number of CPU threads for tensor work, log it and return it.

    Without `n` it is OMP_NUM_THREADS if that is set, as in PyTorch, else the number of cores that this process may use.
    Threads that share a core spin while they wait for each other: on a busy two-core machine a step of 0.55 s took 4 to
    30 s. For the same reason only one operator runs at a time.
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # OpenMP allows a list, for nested regions
    if n is not None:
        threads, source = n, "as set"
    elif wanted.isdecimal() and int(wanted) > 0:
        threads, source = int(wanted), "OMP_NUM_THREADS"
    else:
        threads, source = available_cores(), "the cores this process may use"
    torch.set_num_threads(threads)
    try:
        torch.set_num_interop_threads(1)
    except RuntimeError:  # torch allows this once, and only before its first parallel work
        logger.debug("inter-op threads stay at %d", torch.get_num_interop_threads())
    logger.info("CPU threads for tensor work: %d (%s)", threads, source)
    return threads


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory of freed CPU tensors for the next ones. Returns False if that is not possible.

    The GNU C library returns large blocks to the system at once, and the system fills them with zeros again: 12 to 22 %
    of the CPU time of a training pass (benchmarks/speed/README.md). Settings in the environment take precedence.
    """
    set_by_user = any(name.startswith(("GLIBC_TUNABLES", "MALLOC_")) for name in os.environ)
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if set_by_user or not hasattr(library, "gnu_get_libc_version"):
        return False
    done = [library.mallopt(setting, value) for setting, value in _KEEP_ALL]
    return all(done)


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux: respects taskset, cpusets and batch schedulers
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
