"""Kills of a reward service while a trainer uses it: does every run end where the undisturbed one does?

    python benchmarks/service/service_kills.py 100

The embedded reward model is trained for eight steps. The server is killed at random moments (SIGKILL, one time in five
SIGTERM) and started again; the trainer's client just goes on. Compared are every score and pair that the trainer was
told, and every file of the last checkpoint: weights, optimizer, replay, random states.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "packages/rl/tests"), str(ROOT / "tests")]

from cooper_lab.arithmetic.arms import ASSETS  # noqa: E402
from service.answered import CORRUPTER  # noqa: E402
from service.killing import differences, disturbed, undisturbed  # noqa: E402
from service.served import Served  # noqa: E402

STEPS = 8
KILLS_A_RUN = 5
SETTINGS = {
    "threads": 1,
    "reward_model": {"model": str(ASSETS / "reward_model"), "learning_rate": 3e-4, "max_input_tokens": 160},
    "cooptimization": {"assistant": CORRUPTER, "replay": {"pairs_per_step": 3}},
    "serve": {"checkpoint_every": 3},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        expected, seconds = undisturbed(Served(Path(folder) / "undisturbed", SETTINGS), STEPS)
        print(f"undisturbed: {STEPS} steps in {seconds:.1f} s")
        kills = runs = equal = 0
        while kills < options.kills:
            wanted = min(KILLS_A_RUN, options.kills - kills)
            outcome, done = disturbed(Served(Path(folder) / f"run{runs}", SETTINGS), STEPS, wanted, seconds, rng)
            found = differences(outcome, expected)
            kills, runs, equal = kills + done, runs + 1, equal + (not found)
            print(f"run {runs}: {done} kills, {'; '.join(found) or 'equal'}", flush=True)
        print(f"{kills} kills in {runs} runs; {equal} runs equal to the undisturbed one")
    sys.exit(equal < runs)


if __name__ == "__main__":
    main()
