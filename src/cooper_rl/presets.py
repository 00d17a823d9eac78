"""Named sets of defaults: the paper's published behaviour and two of ours. Explicit settings win over a preset."""

from typing import Any

from cooper_rl.stage2.presets import COOPER, LIGHT, PAPER

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "cooptimization": PAPER,
        "algorithm": {
            "min_spread": 0.0,  # the paper divides every group by its standard deviation, however small
            "kl": {"kind": "k3", "clamp": 10.0},  # as in verl, on which the paper's code ran
        },
    },
    "cooper": {"cooptimization": COOPER},
    "cooper_light": {"cooptimization": LIGHT},
}
