"""The memory and the speed of devices. The times of a plan come only from these rates, and each rate names its source.

README.md lists where each figure was looked up, and which could not be confirmed.
"""

import os
import time
from dataclasses import dataclass

import torch

from cooper_rl import InputError

GB = 1e9


@dataclass(frozen=True)
class Device:
    """One accelerator, or a machine's CPU.

    `dense` is the bfloat16 peak without sparsity in FLOP/s (float32 for a CPU), `single` the float32 peak without
    TF32, `bandwidth` of its memory in bytes/s.
    """

    name: str
    memory: float
    """Memory in bytes."""
    dense: float
    single: float
    bandwidth: float
    source: str
    cpu: bool = False

    def peak(self, bfloat16: bool) -> float:
        """FLOP/s in the precision in which the device computes."""
        return self.dense if bfloat16 else self.single


_H100 = Device("h100", 80 * GB, 989e12, 67e12, 3.35e12, "NVIDIA H100 SXM data sheet")
DEVICES = {
    device.name: device
    for device in (
        _H100,
        Device("h200", 141 * GB, 989e12, 67e12, 4.8e12, "NVIDIA H200 SXM data sheet"),
        Device("b200", 180 * GB, 2250e12, 75e12, 8.0e12, "NVIDIA DGX B200, an eighth of the machine"),
        Device("a100", 80 * GB, 312e12, 19.5e12, 2.039e12, "NVIDIA A100 80 GB SXM data sheet"),
        Device("a100-40gb", 40 * GB, 312e12, 19.5e12, 1.555e12, "NVIDIA A100 40 GB data sheet"),
        Device("l40s", 48 * GB, 362.05e12, 91.6e12, 0.864e12, "NVIDIA L40S data sheet"),
        Device("rtx4090", 24 * GB, 165.2e12, 82.6e12, 1.008e12, "NVIDIA Ada white paper, float32 accumulation"),
    )
}

USABLE = 0.9
"""Share of the memory that a plan fills: what is left goes to the CUDA context, NCCL and fragmentation. vLLM's own
default for `gpu_memory_utilization` is the same."""


@dataclass(frozen=True)
class Pace:
    """The speed that a device achieves, at one end of the range that a plan gives."""

    train: float
    """Share of the bfloat16 peak in forward and backward passes, attention counted."""
    forward: float
    """The same in forward passes alone. Assumed: no optimizer, no gradients to reduce."""
    single: float
    """Share of the float32 peak. Assumed."""
    generation: float
    """Share of the published speed of generation."""


FAST = Pace(train=300e12 / _H100.dense, forward=350e12 / _H100.dense, single=0.7, generation=1.0)
"""Llama 3.1 8B with FSDP on H100: 5,762 (eager) to 6,667 (compiled) tokens/s a GPU, which is 280 to 320 TFLOP/s without
attention (torchtitan, benchmarks/llama3_h100_202412). The plan counts attention, so it stays 5 % below the former."""
SLOW = Pace(train=0.11, forward=0.13, single=0.3, generation=0.5)
"""A model of 0.6B on one H100 with FlashAttention 3, fused head and compilation, context 16,384: 11,900 tokens/s, 11 %
of the peak (prime-rl). A LoRA of a 4B model there takes 6,200 tokens/s, which lies between the two. Half the published
speed of generation is assumed."""
PRIME_RL_FULL, PRIME_RL_LORA = 11_900, 6_200
"""Tokens/s of prime-rl's two measurements."""

BF16_OF_FP8, LONG_TAIL = 0.6, 0.7
"""Assumed: generation in bfloat16 is 0.6 of the published speed in float8; while the last long completions of a step
are written the batch is not full, which costs 0.3."""
GENERATE_8B = 15_220 * BF16_OF_FP8 * LONG_TAIL
"""Tokens/s on one H100 for a model of about 8B: TensorRT-LLM 1.0's performance overview, Llama 3.1 8B FP8, 1,000 tokens
in and 1,000 out, 15,220."""
GENERATE_70B = 4_205 / 2 * 0.55 * LONG_TAIL
"""The same for about 70B: 4,205 tokens/s on two H100; bfloat16 over more devices taken as 0.55 (assumed)."""
PARAMS_8B, PARAMS_70B = 7.62e9, 72.7e9
"""The models that the two speeds are taken for (Qwen2.5-7B and -72B). Between and beyond them speed follows the power
of the size that goes through both."""

EAGER_LAYER_S = 1e-3
"""Seconds that one layer of a decoding step of the native sampler takes on a GPU, however small the work: a dozen
kernels started one by one from Python. Assumed, and on the high side for large models."""

PUSH = 8.25e9
"""Bytes/s of weights that go from the learners to all samplers: verl's checkpoint engine, NCCL gather and broadcast,
four machines of eight H100. Within one machine it is faster."""

NEMO_RL_8B = 97.7
"""Published seconds of a step of 2,048 samples for 8B on 16 H100 (NeMo-RL 0.4)."""


def device_called(name: str | None) -> Device:
    """The device of that name; None is the one in this machine, measured.

    Raises InputError for an unknown name, and for None where there is no GPU.
    """
    if name == "here":
        return measured()
    if name is None:
        if not torch.cuda.is_available():
            raise InputError(
                f"no GPU in this machine; name one with --device ({', '.join(DEVICES)}, or here for the CPU)"
            )
        return measured()
    if name not in DEVICES:
        raise InputError(f"--device {name}: not in the table; known: {', '.join(DEVICES)}, here")
    return DEVICES[name]


def measured() -> Device:
    """The device in this machine: its memory as the system reports it, and its rates, measured for a second with a
    matrix product and a copy."""
    if torch.cuda.is_available():
        properties = torch.cuda.get_device_properties(0)
        flops, bandwidth = _measure(torch.device("cuda"), torch.bfloat16, 8192)
        single, _ = _measure(torch.device("cuda"), torch.float32, 4096)
        return Device(properties.name, properties.total_memory, flops, single, bandwidth, "measured here")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    flops, bandwidth = _measure(torch.device("cpu"), torch.float32, 1024)
    return Device("this machine's CPU", memory, flops, flops, bandwidth, "measured here", cpu=True)


def _measure(device: torch.device, dtype: torch.dtype, size: int) -> tuple[float, float]:
    """FLOP/s of a square matrix product, and bytes/s of a copy, read and written."""
    a, b = (torch.ones(size, size, device=device, dtype=dtype) for _ in range(2))

    def seconds(work: int, run) -> float:
        run()
        _wait(device)
        start = time.perf_counter()
        for _ in range(work):
            run()
        _wait(device)
        return (time.perf_counter() - start) / work

    return 2 * size**3 / seconds(10, lambda: a @ b), 2 * a.nbytes / seconds(10, lambda: a.copy_(b))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
