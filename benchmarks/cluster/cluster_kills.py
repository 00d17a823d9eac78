"""Kills of processes of a cluster run: how long until it goes on, and does it end where the undisturbed one ends?

    python benchmarks/cluster/cluster_kills.py 30

Eighteen steps of the embedded world on two processes of the policy and one of the reward model. At random moments a
process of each role is killed in turn (SIGKILL; `hanging policy` is stopped for ever, SIGSTOP; `policy twice` is killed
again while it starts). The killed driver, and the one that has lost its raylet, are started again with --resume.
Compared are the metrics of every step, every rollout and pair, and every file of the checkpoints: weights, optimizers,
random states.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "packages/rl/tests"), str(ROOT / "tests")]

from crash.cluster_kills import ROLES, SETTINGS, ClusterRun, Kill, disturbed  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", type=int, nargs="?", default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = Random(options.seed)
    done: list[tuple[Kill, bool]] = []
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        alone = ClusterRun(Path(folder) / "alone")
        alone.finish()
        step_s = (time.monotonic() - begin) / SETTINGS["steps"]
        print(f"undisturbed: {SETTINGS['steps']} steps in {step_s * SETTINGS['steps']:.0f} s")
        while len(done) < options.kills:
            wanted = [ROLES[(len(done) + i) % len(ROLES)] for i in range(min(len(ROLES), options.kills - len(done)))]
            run, kills = disturbed(Path(folder) / f"run{len(done)}", wanted, random, step_s)
            found = run.differences(alone)
            done += [(kill, not found) for kill in kills]
            shutil.rmtree(run.folder)
            told = ", ".join(f"{kill.role} after step {kill.after} ({kill.seconds:.0f} s)" for kill in kills)
            print(f"{told}: {'; '.join(found) or 'equal'}", flush=True)
    print("| role | kills | runs equal | seconds to the second step after it, median (most) |\n|---|---|---|---|")
    for role in ROLES:
        mine = [(kill, equal) for kill, equal in done if kill.role == role]
        if mine:
            seconds = [kill.seconds for kill, _ in mine]
            equal = sum(equal for _, equal in mine)
            print(f"| {role} | {len(mine)} | {equal} | {statistics.median(seconds):.0f} ({max(seconds):.0f}) |")
    sys.exit(not all(equal for _, equal in done))


if __name__ == "__main__":
    main()
