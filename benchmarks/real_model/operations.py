"""Runs the experiment of operations.md: word problems, a rule that judges those of one operation of four.

python -m benchmarks.real_model.operations OUT --arms rule cooper static     # continues after an interruption
python -m benchmarks.real_model.operations OUT --picture docs/operations.png # the tables of the runs in OUT
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

from benchmarks.real_model.arms import WINDOW, ends, first_alarm
from benchmarks.real_model.experiment import draw, train_once

from cooper_audit.run.run_record import RunRecord, read_record
from cooper_audit.statistics import mean_interval

CONFIG = Path(__file__).with_name("operations.yaml")
JUDGED = {"additions": "+", "subtractions": "-", "products": "*", "quotients": "/"}
"""The operations that a rule may judge. Each has a seed of its own, its place here."""
ARMS = ("rule", "static", "cooper")
GOLD = {"judged": "test/gold_avg_heard", "silent": "test/gold_avg_silent"}
PANELS = {"test/gold_avg_silent": "Gold where the rule is silent", "test/gold_avg_heard": "Gold where it judges"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="holds data/ and models/policy, models/reward_model (operations.md)")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=[])
    parser.add_argument("--judged", nargs="*", choices=JUDGED, default=list(JUDGED))
    parser.add_argument("--picture", type=Path, help="draw the runs' curves into this file")
    given = parser.parse_args()
    for judged in given.judged:
        for arm in given.arms:
            train(given.out, arm, judged)
    runs = [read_record(path) for path in sorted((given.out / "runs").glob("*-*"))]
    table(runs)
    differences({one.directory.name: one for one in runs})
    if given.picture is not None:
        draw(runs, PANELS, given.picture)


def train(out: Path, arm: str, judged: str) -> None:
    """Start or continue one run."""
    models = [f"{role}.model={out}/models/{role}" for role in ("policy", "reward_model")]
    settings = [f"kind={arm}", *judging(out / "data", [JUDGED[judged]]), *models, f"seed={list(JUDGED).index(judged)}"]
    train_once(out, f"{arm}-{judged}", CONFIG, settings)


def judging(data: Path, operations: Sequence[str]) -> list[str]:
    """The settings of a run on the problems in the folder, whose rule judges these operations."""
    rule = f"rule={{kind: partial, only: {{operation: {list(operations)}}}}}"
    return [rule, f"problems.source={data}/train.jsonl", f"test_problems.source={data}/test.jsonl"]


def table(runs: Sequence[RunRecord], golds: Mapping[str, str] = GOLD) -> None:
    """A row a run: gold at every evaluation, and what the run itself saw."""
    print(f"\n| run | steps | {' | '.join(f'gold, {part}' for part in golds)} | reward |", end="")
    print(" agreement where judged | alarm | s a step | stage 2 |")
    print("|---" * (7 + len(golds)) + "|")
    for one in (one for one in runs if one.step):
        gold = [", ".join(f"{value:.2f}" for _, value in one.series(name)) or "–" for name in golds.values()]
        means = [ends(one, name, WINDOW) for name in ("reward/mean", "reward_model/rule_agreement")]
        step = one.values("time/step")
        stage2 = sum(one.values("time/update_reward_model")) / sum(step)
        cells = [
            one.directory.name,
            str(one.step),
            *gold,
            *means,
            first_alarm(one),
            f"{mean(step):.0f}",
            f"{stage2:.2f}",
        ]
        print(f"| {' | '.join(cells)} |")


def differences(runs: dict[str, RunRecord]) -> None:
    """Last gold of `cooper` minus that of the others, by what is judged, and over that with a 95 % interval."""
    for other in ("rule", "static"):
        for part, name in GOLD.items():
            both = [(runs.get(f"cooper-{judged}"), runs.get(f"{other}-{judged}")) for judged in JUDGED]
            ended = [(one.last(name), two.last(name)) for one, two in both if one and two]
            found = [one - two for one, two in ended if one is not None and two is not None]
            if len(found) > 1:
                print(f"cooper - {other}, {part}: {interval(found)}")


def interval(values: Sequence[float]) -> str:
    """The values, and of two or more their mean with its 95 % interval."""
    each = " ".join(f"{value:+.3f}" for value in values)
    if len(values) < 2:
        return each
    middle, low, high = mean_interval(values)
    return f"{each}; {middle:+.3f} ({low:+.3f} to {high:+.3f})"


if __name__ == "__main__":
    main()
