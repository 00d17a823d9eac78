"""How much memory this process holds: in main memory, and on its GPUs if PyTorch uses any."""

import sys
from pathlib import Path

_MIB = 2**20
_STATUS = Path("/proc/self/status")


def resident_mib() -> float | None:
    """Main memory that the process holds now, in MiB. None where the system does not tell, as on macOS."""
    return _status_mib("VmRSS:")


def peak_mib() -> float | None:
    """The most main memory that the process ever held, in MiB. None where the system does not tell."""
    if (found := _status_mib("VmHWM:")) is not None:  # on Linux ru_maxrss may be that of the parent process
        return found
    if sys.platform != "darwin":
        return None
    import resource  # noqa: PLC0415 - not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB


def gpu_peak_mib() -> float | None:
    """The most that PyTorch had allocated on one GPU since `forget_gpu_peak`, in MiB. None if it uses no GPU."""
    if (cuda := _cuda_in_use()) is None:
        return None
    return max(cuda.max_memory_allocated(device) for device in range(cuda.device_count())) / _MIB


def forget_gpu_peak() -> None:
    """Start to measure `gpu_peak_mib` anew. PyTorch has one such peak for the whole process."""
    if (cuda := _cuda_in_use()) is not None:
        for device in range(cuda.device_count()):
            cuda.reset_peak_memory_stats(device)


def _cuda_in_use():
    """`torch.cuda` if the process has loaded it and used a GPU. A process without PyTorch stays without it."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def _status_mib(field: str) -> float | None:
    if not _STATUS.exists():
        return None
    lines = _STATUS.read_text(encoding="utf-8").splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), None)
