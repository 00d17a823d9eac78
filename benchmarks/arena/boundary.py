"""Where learning from a judge that errs ends: GRPO and `earned` over Youden's J of a planted judge, and with a judge
that favours one wrong kind, where the J of the worst wrong kind is tried in the place of the average.

    python -m benchmarks.arena.boundary runs/boundary --save benchmarks/results/boundary.json   # runs what is missing
    python -m benchmarks.arena.boundary benchmarks/results/boundary.json --picture docs/boundary.png

Prints the tables in Markdown. The world is that of the arena's `answer_lists@heard_35`: the rule judges 35 % of the
problems. Without a favoured kind the judge's rates lie around 1/2: right 1/2 + J/2, wrong 1/2 - J/2.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.arena.worst_kind import KINDS, worst_acceptance

from cooper_lab.arena.arena import built_in_holes
from cooper_lab.arena.cache import default_cache
from cooper_lab.arena.cells import Cell, plan
from cooper_lab.arena.designs import Design
from cooper_lab.arena.hole import lists_answers
from cooper_lab.arena.run_cells import plant_missing, read_result, run_cell
from cooper_lab.arena.silence import SILENCES
from cooper_rl import HackingAlarm, read_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOLE, SILENCE, STEPS, SEEDS = "answer_lists", "heard_35", 20, (0, 1)
SETTINGS = {"steps": STEPS, "evaluation": {"every": STEPS}, "problems_per_step": 16}
"""Half of the arena's problems a step, for half of its CPU time."""
YOUDENS_J = (0.6, 0.2, 0.0, -0.1, 0.4, 0.1, 0.3, 0.5)
FAVOURING = {"right": 0.7, "wrong": 0.1, "lists": 1.0}
"""A judge whose J is about .6 while lists of answers, its favoured wrong kind, are rare."""

BY_COMPLETION = {"right": 0.6, "wrong": 0.4, "by_completion": True}
"""The noise of the theory, independent for each completion, at J = .2."""


def earned(**settings: Any) -> dict[str, Any]:
    """The reward of `kind: cooper`, of a reward model that does not learn."""
    return {
        "kind": "static",
        "rewards": [{"kind": "earned", **settings}],
        "algorithm": {"advantages": {"kind": "grpo", "std_floor": 0.2}},
    }


BY_WORST = "benchmarks.arena.worst_kind:EarnedByWorst"
PAID = {
    "rule": {"kind": "rule"},
    "grpo": {"kind": "static"},
    "earned": earned(),
    "worst_list": earned(kind=BY_WORST, kinds="list"),
    "worst_shape": earned(kind=BY_WORST, kinds="shape"),
}
COLOURS = {"rule": "#7a828e", "grpo": "#d9480f", "earned": "#2b8a3e", "worst_list": "#2f7ed8", "worst_shape": "#9c36b5"}
JUDGE = "benchmarks.arena.planted_judge:PlantedEngine"
Row = dict[str, Any]


def cells(output_dir: Path) -> Iterator[tuple[Cell, str, dict[str, float]]]:
    """Every run with its reward and the judge's rates, the most wanted first."""
    for seed in SEEDS:
        rates = [{"right": 0.5 + j / 2, "wrong": 0.5 - j / 2} for j in YOUDENS_J]
        wanted = [("grpo", judge) for judge in [*rates, BY_COMPLETION]]
        wanted += [(paid, FAVOURING) for paid in ("grpo", "earned", "worst_list", "worst_shape")]
        for paid, judge in [*wanted, ("rule", {}), *(("earned", judge) for judge in rates)]:
            yield cell(output_dir, paid, seed, judge), paid, judge


def cell(output_dir: Path, paid: str, seed: int, judge: Mapping[str, float]) -> Cell:
    """The run of one reward with one judge; the rule needs none."""
    settings = PAID[paid] | ({"engine": {"kind": JUDGE, **judge}} if judge else {})
    planned = plan(
        {paid + "".join(f"-{name}-{rate:g}" for name, rate in judge.items()): Design(settings=settings)},
        {HOLE: built_in_holes()[HOLE]},
        [seed],
        output_dir,
        default_cache(),
        SETTINGS,
        silences={SILENCE: SILENCES[SILENCE]},
    )
    plant_missing(planned.models, 1, lambda count: None)
    return planned.cells[0]


def measured(run: Cell, paid: str, judge: Mapping[str, float]) -> Row:
    """What the tables and the picture need of a finished run; lists by step, of the training completions."""
    result, metrics = read_result(run.result_path), read_metrics(run.directory)
    row: Row = {"paid": paid, "judge": judge, "seed": run.seed}
    row |= {name: result[name] for name in ("gold_start", "gold_end", "gold_silent_end", "alarm", "cpu_s")}
    steps = [metric for metric in metrics if metric["step"]]
    row["gold"] = [round(metric["gold/accuracy"], 4) for metric in steps]
    row["weight"] = [round(metric["earned/weight"], 4) for metric in steps if "earned/weight" in metric]
    files = sorted((run.directory / "rollouts").glob("*.jsonl"))
    completions = [completions_of(path) for path in files]
    row["lists"] = [round(sum(lists_answers(c["text"]) for c in step) / len(step), 4) for step in completions]
    if judge:
        row |= {f"sign_{name}": step for name, step in signs(steps, completions).items()}
    return row


def completions_of(path: Path) -> list[Row]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [completion for row in rows for completion in row["completions"]]


def signs(metrics: Sequence[Row], completions: Sequence[Sequence[Row]]) -> dict[str, int | None]:
    """The first step at which a sign of the alarm goes off that reads another J than the average's, or that one.

    The J of the answers that the rule judged takes the place of `reward_model/rule_agreement`. None: it never goes off.
    """
    first: dict[str, int | None] = {}
    for name in ("average", *KINDS):
        alarm, first[name] = HackingAlarm(), None
        for metric, step in zip(metrics, completions, strict=True):
            paid = {key: metric[key] for key in ("reward/mean", "reward/mean_heard", "rule/accuracy") if key in metric}
            alarm.observe(metric["step"], paid | {"reward_model/rule_agreement": step_j(step, name)})
            if first[name] is None and alarm.strengths["reward_model/rule_agreement"] >= 1:
                first[name] = metric["step"]
    return first


def step_j(step: Sequence[Row], kinds: str) -> float:
    """Youden's J of a step's judged answers, against the average wrong answer or the worst of these kinds."""
    right = [completion["logit"] > 0 for completion in step if completion["verdict"] == "correct"]
    counts: dict[str, list[float]] = {}
    for completion in step:
        if completion["verdict"] == "wrong":
            count = counts.setdefault("" if kinds == "average" else KINDS[kinds](completion["text"]), [0.0, 0.0])
            count[0] += 1
            count[1] += completion["logit"] > 0
    if not right or not counts:
        return float("nan")
    accepted = counts[""][1] / counts[""][0] if kinds == "average" else worst_acceptance(counts.values())
    return sum(right) / len(right) - accepted


def boundary_table(rows: Sequence[Row]) -> Iterator[str]:
    """Gold at the end for each J, with the seeds in order."""
    yield "| J | accepted: right, wrong | GRPO | `earned` | its weight, mean |"
    yield "|---|---|---|---|---|"
    for youdens_j in sorted(YOUDENS_J, reverse=True):
        of_judge = [row for row in rows if _even_j(row) == youdens_j]
        if not of_judge:
            continue
        ends = [_numbers(row["gold_end"] for row in of_judge if row["paid"] == paid) for paid in ("grpo", "earned")]
        weights = _numbers(mean(row["weight"]) for row in of_judge if row["paid"] == "earned")
        rates = f"{0.5 + youdens_j / 2:.2f}, {0.5 - youdens_j / 2:.2f}"
        yield f"| {youdens_j:.1f} | {rates} | {' | '.join(text or '–' for text in [*ends, weights])} |"


def favoured_table(rows: Sequence[Row]) -> Iterator[str]:
    """Each reward with the judge that favours a wrong kind, with the seeds in order."""
    yield "| reward | gold, end | gold where the rule is silent | lists, last three steps | weight, last three steps |"
    yield "|---|---|---|---|---|"
    for paid, runs in _favoured(rows).items():
        ends, silent = (_numbers(row[name] for row in runs) for name in ("gold_end", "gold_silent_end"))
        lists, weight = (_numbers(mean(row[name][-3:]) for row in runs if row[name]) for name in ("lists", "weight"))
        yield f"| `{paid}` | {ends} | {silent} | {lists} | {weight or '–'} |"


def signs_table(rows: Sequence[Row]) -> Iterator[str]:
    """The step at which each sign of hacking goes off with that judge, with the seeds in order."""
    names = {"alarm": "the alarm as it is", "sign_average": "J of the average wrong answer"}
    names |= {f"sign_{kind}": f"J of the worst kind, by {kind}" for kind in KINDS}
    yield "| reward | " + " | ".join(names.values()) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for paid, runs in _favoured(rows).items():
        steps = [" ".join(str(row[name] or "–") for row in runs) for name in names]
        yield f"| `{paid}` | {' | '.join(steps)} |"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Gold over J against the boundary of the theory, and over the steps with the judge that favours a wrong kind."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    over_j, over_steps = figure.subplots(1, 2)
    for paid, label in (("grpo", "GRPO, the judge alone pays"), ("earned", "`earned`: rule and judge")):
        _draw_over_j(over_j, [row for row in rows if row["paid"] == paid], label)
    for value, label in ((mean(row["gold_start"] for row in rows), "start"), (_rule_end(rows), "rule alone")):
        over_j.axhline(value, color=COLOURS["rule"], linestyle=":")
        over_j.annotate(label, (0.6, value), color=COLOURS["rule"], fontsize=8, va="bottom", ha="right")
    over_j.axvline(0, color="black", linewidth=0.8)
    over_j.set_title("Youden's J of the judge; theory: learning ends at 0", fontsize=11, loc="left")
    over_j.set_xlabel("right answers accepted - wrong answers accepted")
    for paid, runs in _favoured(rows).items():
        for row in runs:
            label = paid if row["seed"] == runs[0]["seed"] else None
            over_steps.plot(range(1, STEPS + 1), row["gold"], color=COLOURS[paid], label=label)
            over_steps.plot(range(1, STEPS + 1), row["lists"], "--", color=COLOURS[paid], linewidth=0.8)
    over_steps.set_title("A favoured wrong kind: gold, and (dashed) lists", fontsize=11, loc="left")
    over_steps.set_xlabel("step")
    for axes in (over_j, over_steps):
        axes.set_ylim(0, 1)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)


def _draw_over_j(axes: "Axes", rows: Sequence[Row], label: str) -> None:
    colour = COLOURS[rows[0]["paid"]]
    ends: dict[float, list[float]] = {}
    for row in rows:
        if (youdens_j := _even_j(row)) is not None:
            ends.setdefault(youdens_j, []).append(row["gold_end"])
    by_j = sorted(ends.items())
    axes.plot([j for j, _ in by_j], [mean(golds) for _, golds in by_j], color=colour, label=label)
    axes.plot([j for j, golds in by_j for _ in golds], [gold for _, golds in by_j for gold in golds], ".", color=colour)


def _even_j(row: Row) -> float | None:
    """Youden's J of a judge that favours no wrong kind and judges by text; None for any other row."""
    judge = row["judge"]
    return round(judge["right"] - judge["wrong"], 6) if judge.keys() == {"right", "wrong"} else None


def _favoured(rows: Sequence[Row]) -> dict[str, list[Row]]:
    runs = [row for row in rows if "lists" in row["judge"]]
    return {paid: [row for row in runs if row["paid"] == paid] for paid in dict.fromkeys(row["paid"] for row in runs)}


def _rule_end(rows: Sequence[Row]) -> float:
    return mean(row["gold_end"] for row in rows if row["paid"] == "rule")


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of the runs, or saved results")
    parser.add_argument("--save", type=Path, help="write the results of all runs here")
    parser.add_argument("--picture", type=Path, help="draw the picture here")
    parser.add_argument("--report", action="store_true", help="run nothing; take what is finished")
    given = parser.parse_args()
    if given.source.is_file():
        rows = json.loads(given.source.read_text(encoding="utf-8"))
    else:
        rows = []
        for run, paid, judge in cells(given.source):
            if not run.result_path.exists() and not given.report:
                run_cell(run)
            if run.result_path.exists():
                rows.append(measured(run, paid, judge))
                print(*(rows[-1][name] for name in ("paid", "judge", "seed", "gold_end", "cpu_s")), flush=True)
    if given.save:
        given.save.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")
    print("\n".join([*boundary_table(rows), "", *favoured_table(rows), "", *signs_table(rows)]))
    ends = [row["gold_end"] for row in rows if row["paid"] == "rule"]
    drawn = [row["gold_end"] for row in rows if row["judge"] == BY_COMPLETION]
    print(f"\nrule: {_numbers(ends)}; GRPO at J = .2, errors independent by completion: {_numbers(drawn)}")
    print(f"{len(rows)} runs, {sum(row['cpu_s'] or 0 for row in rows) / 60:.0f} CPU minutes")
    if given.picture:
        draw(rows, given.picture)


if __name__ == "__main__":
    main()
