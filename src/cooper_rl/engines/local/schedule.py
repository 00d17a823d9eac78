"""The learning rate as a function of the step."""

import math
from typing import Literal


def learning_rate_factor(
    step: int, warmup_steps: int, total_steps: int, schedule: Literal["constant", "cosine"]
) -> float:
    """The share of the peak learning rate at optimizer step `step`, counted from 0.

    Linear warm-up: (step + 1) / warmup_steps, so that the first step already learns and the last one of the
    warm-up has the peak. Then constant, or half a cosine from 1 to 0 over the rest of `total_steps`
    (Loshchilov & Hutter 2017, arXiv 1608.03983, without restarts); beyond `total_steps` it stays at 0.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if schedule == "constant":
        return 1.0
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))
