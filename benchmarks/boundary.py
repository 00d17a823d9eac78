"""Where learning from a judge that errs ends: GRPO and `earned` over Youden's J of a planted judge, and over how much
more it accepts of one wrong kind than of right answers.

    python benchmarks/boundary.py runs/boundary                 # runs what is missing, in about an hour of CPU time
    python benchmarks/boundary.py runs/boundary --save benchmarks/results/boundary.json
    python benchmarks/boundary.py benchmarks/results/boundary.json --picture docs/boundary.png

Prints the tables in Markdown. The world is that of the arena's `answer_lists@heard_35`: the rule judges 35 % of the
problems. The judge's rates lie around 1/2 (right 1/2 + J/2, wrong 1/2 - J/2).
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cooper_lab.arena.arena import built_in_holes
from cooper_lab.arena.cache import default_cache
from cooper_lab.arena.cells import Cell, plan
from cooper_lab.arena.designs import Design
from cooper_lab.arena.run_cells import plant_missing, read_result, run_cell
from cooper_lab.arena.silence import SILENCES

HOLE, SILENCE = "answer_lists", "heard_35"
YOUDENS_J = (0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, -0.1)
STEPS = 20
FAVOURING = {"right": 0.7, "wrong": 0.1, "lists": 1.0}
"""A judge whose J is about .6 while lists of answers, its favoured wrong kind, are rare."""


def earned(**settings: Any) -> dict[str, Any]:
    """The reward of `kind: cooper`, of a reward model that does not learn."""
    return {
        "kind": "static",
        "rewards": [{"kind": "earned", **settings}],
        "algorithm": {"advantages": {"kind": "grpo", "std_floor": 0.2}},
    }


BY_WORST = "cooper_lab.arena.worst_kind:EarnedByWorst"
PAID = {
    "rule": {"kind": "rule"},
    "grpo": {"kind": "static"},
    "earned": earned(),
    "worst_list": earned(kind=BY_WORST, kinds="list"),
    "worst_shape": earned(kind=BY_WORST, kinds="shape"),
}
JUDGE = "cooper_lab.arena.planted_judge:PlantedEngine"


def cells(output_dir: Path) -> Iterator[Cell]:
    """Every run, the most wanted first."""
    for seed in (0, 1):
        for youdens_j in (0.6, 0.2, 0.0, -0.1, 0.4, 0.1, 0.3, 0.5):
            for name in ("grpo", "earned"):
                yield cell(output_dir, name, seed, right=0.5 + youdens_j / 2, wrong=0.5 - youdens_j / 2)
        for name in ("grpo", "earned", "worst_list", "worst_shape"):
            yield cell(output_dir, name, seed, **FAVOURING)
        yield cell(output_dir, "rule", seed)


def cell(output_dir: Path, paid: str, seed: int, **rates: float) -> Cell:
    """The run of one reward with one judge, or of the rule without rates."""
    judge = "".join(f"-{name}-{rate:g}" for name, rate in rates.items())
    settings = PAID[paid] | ({"engine": {"kind": JUDGE, **rates}} if rates else {})
    planned = plan(
        {f"{paid}{judge}": Design(settings=settings)},
        {HOLE: built_in_holes()[HOLE]},
        [seed],
        output_dir / f"{STEPS}-steps",
        default_cache(),
        {"steps": STEPS, "evaluation": {"every": STEPS}},
        silences={SILENCE: SILENCES[SILENCE]},
    )
    plant_missing(planned.models, 1, lambda count: None)
    return planned.cells[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    given = parser.parse_args()
    for run in cells(given.source):
        if not run.result_path.exists():
            run_cell(run)
        row: dict[str, Any] = read_result(run.result_path)
        print(row["steps"], row["design"], row["seed"], row["gold_end"], row["cpu_s"], flush=True)


if __name__ == "__main__":
    main()
