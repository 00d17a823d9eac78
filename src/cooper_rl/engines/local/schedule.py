"""The learning rate as a function of the step."""

import math
from typing import Literal


def learning_rate_factor(
    step: int, warmup_steps: int, total_steps: int, schedule: Literal["constant", "cosine"]
) -> float:
    """The share of the peak learning rate at optimizer step `step`, counted from 0.

    The linear warm-up is (step + 1) / warmup_steps, so that the first step already learns and the last step of the
    warm-up has the peak. After it the factor is constant, or it falls along half a cosine from 1 to 0 over the rest of
    `total_steps` (Loshchilov & Hutter 2017, arXiv 1608.03983, without restarts) and stays at 0 from then on.
    """
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    if schedule == "constant":
        return 1.0
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * min(1.0, progress)))
