"""Named sets of defaults: the paper's published behaviour and ours. Explicit settings win over a preset."""

from typing import Any

from cooper_rl.cooptimization.presets import COOPER, PAPER

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "cooptimization": PAPER,
        # The paper divides every group by its standard deviation, however small.
        "algorithm": {"min_spread": 0.0},
    },
    "cooper": {"cooptimization": COOPER},
}
