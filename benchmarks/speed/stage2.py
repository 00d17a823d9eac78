"""Measures what stage 2 adds to a step of the demo's co-trained runs, by kind, as it ships.

    python benchmarks/speed/stage2.py cooper

The unit is a step. `share` is the time of the reward model's update and of the wait for the assistant, divided by the
step's wall time. benchmarks/speed/stage2_parts.py takes settings, and divides the step into its parts.
"""

import torch

from cooper_lab.arithmetic.arms import arm_settings
from cooper_rl import CooperTrainer, build_config
from measure import Meter, report
from workload import arguments, scratch

STEPS = 6


def main() -> None:
    parser = arguments(__doc__, "cooper", "cooper_light", "paper")
    options = parser.parse_args()
    changes = {"kind": options.engine, "evaluation": {"every": 0}, "threads": options.threads}
    settings = arm_settings("cooper", scratch(), options.seed, changes)
    meter, stage2, whole = Meter(), 0.0, 0.0
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.step()
        for _ in range(STEPS):
            with meter.measure():
                metrics = trainer.step()
            stage2 += metrics["time/update_reward_model"] + metrics["time/wait_for_assistant"]
            whole += metrics["time/step"]
    report(meter, STEPS, share=stage2 / whole)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
