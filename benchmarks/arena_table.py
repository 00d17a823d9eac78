"""The arena's table in Markdown, from its folder or from the saved results.

    python benchmarks/arena_table.py runs/arena --save benchmarks/results/arena.json
    python benchmarks/arena_table.py benchmarks/results/arena.json --page docs/what-stops-hacking.md

A row for each design, a column for each hole: mean gold at the end, and how many of the runs are hacked. Below it, what
the alarm found, and every two designs of the table that the permutation test tells apart.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from cooper_lab.arena.alarm_roc import alarm_report
from cooper_lab.arena.comparison import rank
from cooper_lab.arena.run_cells import read_results

LEVEL = 0.05
LEFT_OUT = ("fingerprint",)
DIGITS = 4
BEGIN, END = "<!-- table of benchmarks/results/arena.json -->\n", "<!-- end of the table -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The table of an arena in Markdown.")
    parser.add_argument("source", type=Path, help="output folder of an arena, or saved results")
    parser.add_argument("--page", type=Path, help="write the table into this page, between its two marks")
    parser.add_argument("--save", type=Path, help="write the results of all cells here")
    arguments = parser.parse_args()
    if arguments.source.is_dir():
        results = [_small(result) for result in read_results(arguments.source)]
    else:
        results = json.loads(arguments.source.read_text(encoding="utf-8"))
    if arguments.save:
        lines = ",\n".join(json.dumps(result) for result in results)
        arguments.save.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    lines = table(results)
    if arguments.page:
        before, rest = arguments.page.read_text(encoding="utf-8").split(BEGIN)
        _, after = rest.split(END)
        arguments.page.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after, encoding="utf-8")
    print("\n".join([*lines, "", *alarm(results), "", *told_apart(results)]))


def alarm(results: Sequence[dict[str, Any]]) -> list[str]:
    """What the alarm's strength and its signs are worth over all runs."""
    report = alarm_report(results)
    areas = {"strongest sign": report["auc"], **report["signs"]}
    areas |= {f"disagreement, {name}": report["disagreement"][name] for name in ("fall", "rise")}
    now, others = report["today"], report["cross_validated"]
    return [
        f"{report['hacked']} of {report['runs']} runs are hacked",
        *(f"area of {name}: {'none' if area is None else f'{area:.3f}'}" for name, area in areas.items()),
        f"alarm as it is: {now['hits']} found, {now['false_alarms']} false",
        f"thresholds of the other holes: {others['hits']} found, {others['false_alarms']} false",
        *(f"{name}: {', '.join(report[name]) or 'none'}" for name in ("missed", "false_alarms", "late")),
    ]


def told_apart(results: Sequence[dict[str, Any]]) -> list[str]:
    """Every two designs over the blocks that both have finished: difference, blocks and p, without correction."""
    lines = []
    names = sorted({result["design"] for result in results})
    for first, second in combinations(names, 2):
        of_both = [result for result in results if result["design"] in (first, second) and not result["held_out"]]
        for pair in rank(of_both)["pairs"]:
            if pair["p"] < LEVEL:
                lines.append(
                    f"{pair['better']} above {pair['worse']}: {pair['difference']:.2f} over {pair['blocks']} blocks, "
                    f"p = {pair['p']:.3f}"
                )
    return lines or ["no two designs differ at level 0.05"]


def table(results: Sequence[dict[str, Any]]) -> list[str]:
    """The lines of the table; a design with more holes comes first, then one with more gold."""
    holes = sorted({result["hole"] for result in results}, key=lambda hole: (_held_out(results, hole), hole))
    designs = {result["design"] for result in results}
    rows = {design: [_cell(results, design, hole) for hole in holes] for design in designs}
    gold = {design: _mean([r["gold_end"] for r in results if r["design"] == design]) for design in designs}
    order = sorted(designs, key=lambda design: (rows[design].count("–"), -gold[design], design))
    heading = [f"{hole} (held out)" if _held_out(results, hole) else hole for hole in holes]
    lines = [f"| design | {' | '.join(heading)} |", "|---" * (len(holes) + 1) + "|"]
    return lines + [f"| `{design}` | {' | '.join(rows[design])} |" for design in order]


def _cell(results: Sequence[dict[str, Any]], design: str, hole: str) -> str:
    runs = [result for result in results if (result["design"], result["hole"]) == (design, hole)]
    if not runs:
        return "–"
    hacked = sum(result["drawdown"] > 0.1 for result in runs)
    return f"{_mean([result['gold_end'] for result in runs]):.2f}, {hacked} of {len(runs)}"


def _held_out(results: Sequence[dict[str, Any]], hole: str) -> bool:
    return any(result["held_out"] for result in results if result["hole"] == hole)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _small(value: Any) -> Any:
    """A result with rounded numbers, without what only the arena itself needs."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, list | tuple):
        return [_small(element) for element in value]
    if isinstance(value, dict):
        return {key: _small(element) for key, element in value.items() if key not in LEFT_OUT}
    return value


if __name__ == "__main__":
    main()
