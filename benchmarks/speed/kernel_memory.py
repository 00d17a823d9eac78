"""Measures resident memory while one layer of a 0.5 B model gets more and more row counts, in bfloat16 autocast.

ONEDNN_PRIMITIVE_CACHE_CAPACITY=1024 LRU_CACHE_CAPACITY=1024 python benchmarks/speed/kernel_memory.py
"""

from pathlib import Path

import torch

import cooper_rl.engines.local.device  # noqa: F401 - sets the capacities that the environment leaves unset

REPORTED = (1, 100, 200, 300)


def resident_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def main() -> None:
    torch.set_num_threads(1)
    layer = torch.nn.Linear(896, 4864)
    for count in range(1, max(REPORTED) + 1):
        rows = torch.randn(64 + count, 896, requires_grad=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            layer(rows).float().sum().backward()
        layer.zero_grad()
        if count in REPORTED:
            print(f"after {count} row counts: {resident_mib():.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
