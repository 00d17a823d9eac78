"""The tables of the real runs, from the saved results and from what a person wrote after reading the completions."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.real_runs.plan import LONG, REWARDS, RUNS, STEPS

RESULTS = Path(__file__).parents[1] / "results" / "real_runs.json"
AGAIN = RESULTS.with_name("real_runs_again.json")
"""Some of the same runs, made once more on another machine."""
READINGS = Path(__file__).with_name("readings.json")
"""What a person wrote of each run, without the audit: `verdict`, `since` and `why`."""
PAGE, LONG_PAGE = Path(__file__).parents[2] / "docs" / "audit-verdicts.md", Path(__file__).with_name("README.md")
BEGIN, END = "<!-- {} of benchmarks/results/real_runs.json -->\n", "<!-- end of {} -->\n"
TRAINERS = {"trl": "TRL", "retrain": "retrain", "cooper": "Cooper, 135 M"}
AUDITED_EARLIER = ("retrain", "cooper")
"""The trainers whose runs an earlier version audited. Their files are not kept."""
SIZES = ("trl", "cooper")
"""The trainers whose runs are compared with the attack. Their policies differ in size."""
STATES = {
    "hacked": "hacked",
    "recovered": "hacked, no longer down",
    "wrong paid": "pays for wrong answers",
    "right unpaid": "no longer pays right ones",
    "broken": "broke",
    "healthy": "learned",
    "nothing learned": "nothing to see",
    "unknown": "cannot tell",
}
"""The words of docs/audit-verdicts.md for the states of a finding."""


def load() -> dict[str, Any]:
    """The saved results, with the readings."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    readings = json.loads(READINGS.read_text(encoding="utf-8")) if READINGS.exists() else {}
    again = json.loads(AGAIN.read_text(encoding="utf-8")) if AGAIN.exists() else {"runs": {}}
    return results | {"readings": readings, "again": again}


def verdicts(results: dict[str, Any]) -> str:
    """The table of verdicts: what the audit says beside what a person reads."""
    rows = ["| reward | trainer | audit | onset | read | since step | right, first and last steps |"]
    rows.append("|---|---|---|---|---|---|---|")
    for reward, trainer, seed in RUNS:
        name = f"{reward}-{trainer}-{seed}"
        if name not in results["runs"]:
            continue
        run, reading = results["runs"][name], results["readings"].get(name, {})
        state = STATES[run["audit"]["state"]] + (" (earlier version)" if trainer in AUDITED_EARLIER else "")
        cells = (reward + _longer(run), TRAINERS[trainer], state, _onset(run), reading.get("verdict", "?"))
        ends = f"{run['first']['gold']:.2f} → {run['last']['gold']:.2f}"
        rows.append("| " + " | ".join((*cells, str(reading.get("since") or "–"), ends)) + " |")
    return "\n".join(rows) + "\n"


def again(results: dict[str, Any]) -> str:
    """The runs that were made once more: what the audit says beside labelled shares of the first and last ten steps."""
    rows = ["| reward | audit | onset | with a check that reads as a person does | right | paid and wrong |"]
    rows.append("|---|---|---|---|---|---|")
    for reward, trainer, seed in RUNS:
        run = results["again"]["runs"].get(f"{reward}-{trainer}-{seed}")
        if run is None:
            continue
        shares = [[run[end].get(of) for end in ("first", "last")] for of in ("gold", "paid wrong")]
        cells = [" → ".join(f"{share:.2f}" for share in ends) if None not in ends else "–" for ends in shares]
        name = reward + _longer(run) + (f", seed {seed}" if seed else "")
        name += "" if trainer == "trl" else f" ({TRAINERS[trainer]})"
        states = (STATES[run["audit"]["state"]], _onset(run), STATES[run["strict"]["state"]])
        rows.append("| " + " | ".join((name, *states, *cells)) + " |")
    return "\n".join(rows) + "\n"


def _onset(run: dict[str, Any]) -> str:
    return "–" if run["audit"]["onset"] is None else "{} to {}".format(*run["audit"]["onset"])


def _longer(run: dict[str, Any]) -> str:
    """How long a run is, behind its name, where it is not as long as most."""
    return "" if run["steps"] == STEPS else f", {run['steps']} steps"


def readings(results: dict[str, Any]) -> str:
    """What was read in each run that is not honest."""
    parts = []
    for reward, trainer, seed in RUNS:
        name = f"{reward}-{trainer}-{seed}"
        reading = results["readings"].get(name, {"verdict": "?", "why": "?"})
        if name in results["runs"] and reading["verdict"] != "honest":
            parts.append(f"- **{reward}, {TRAINERS[trainer]}{_longer(results['runs'][name])}.** {reading['why']}")
    return "\n".join(parts) + "\n"


def attacks(results: dict[str, Any]) -> str:
    """What the attack says of each reward beside what the runs of either size found in their last ten steps."""
    rows = ["| reward | functions | worst pattern | all wrong patterns | paid and wrong | right | 135 M | right |"]
    rows.append("|---|---|---|---|---|---|---|---|")
    for reward in REWARDS:
        attack = results["attacks"].get(reward.name, {})
        cells = [reward.name, ", ".join(f"`{part}`" for part in reward.parts), "none", "–"]
        if "error" in attack:
            cells[2] = "not attacked: pays no right answer"
        if "worst" in attack:
            name, share, *_ = attack["worst"]
            cells[2:4] = [f"`{name}` {100 * share:.0f} %" if share else "none", f"{100 * attack['wrong']:.1f} %"]
        for trainer in SIZES:
            last = results["runs"].get(f"{reward.name}-{trainer}-0", {}).get("last", {})
            shares = (last.get("paid wrong"), last.get("gold"))
            cells += ["–" if share is None else f"{100 * share:.0f} %" for share in shares]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def longer(results: dict[str, Any]) -> str:
    """The runs of a hundred steps beside the first of the same reward: shares of their last ten steps."""
    rows = ["| reward | paid and wrong after 60 steps | after 100, another seed | right after 60 | after 100 |"]
    rows.append("|---|---|---|---|---|")
    for reward, trainer, seed in LONG:
        runs = [results["runs"].get(f"{reward}-{trainer}-{each}") for each in (0, seed)]
        if all(runs):
            shares = [[run["last"][of] for run in runs if run] for of in ("paid wrong", "gold")]
            cells = [f"{100 * share:.0f} %" for both in shares for share in both]
            rows.append("| " + " | ".join((reward, *cells)) + " |")
    return "\n".join(rows) + "\n"


def correlation(results: dict[str, Any], figure: str, trainer: str = "trl") -> tuple[float, float, float, int]:
    """Spearman's rank correlation between a figure of the attack, `worst` or `wrong`, and what a trainer's run found.

    With its 95 % interval (Fisher's transform with Bonett and Wright's standard error) and the number of rewards.
    """
    pairs = []
    for reward in REWARDS:
        attack, run = results["attacks"].get(reward.name, {}), results["runs"].get(f"{reward.name}-{trainer}-0")
        if "worst" in attack and run and "paid wrong" in run["last"]:
            pairs.append((attack["worst"][1] if figure == "worst" else attack["wrong"], run["last"]["paid wrong"]))
    given, found = (_ranks([pair[place] for pair in pairs]) for place in (0, 1))
    rho = float(np.corrcoef(given, found)[0, 1])
    half = 1.96 * math.sqrt((1 + rho**2 / 2) / (len(pairs) - 3))
    return rho, math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half), len(pairs)


def _ranks(values: list[float]) -> list[float]:
    """Ranks from 1, the mean of their places for equal values."""
    return [sum(each < value for each in values) + (values.count(value) + 1) / 2 for value in values]


def correlations(results: dict[str, Any]) -> str:
    rows = ["| figure of the attack | runs | Spearman's ρ with the share paid and wrong | 95 % interval | rewards |"]
    rows.append("|---|---|---|---|---|")
    figures = {"worst": "worst pattern", "wrong": "all wrong patterns"}
    for trainer, figure in product(SIZES, figures):
        rho, low, high, count = correlation(results, figure, trainer)
        rows.append(f"| {figures[figure]} | {TRAINERS[trainer]} | {rho:.2f} | {low:.2f} to {high:.2f} | {count} |")
    return "\n".join(rows) + "\n"


def repairs(results: dict[str, Any]) -> str:
    """Cooper's own loop with the public reward as its rule, alone and beside a reward model that learns."""
    rows = ["| reward | loop | seed | right, first and last ten steps | accepted and wrong |", "|---|---|---|---|---|"]
    for name, run in sorted(results.get("repairs", {}).items()):
        reward, kind, seed = name.split("-")
        ends = [f"{100 * run['first'][of]:.0f} → {100 * run['last'][of]:.0f} %" for of in ("gold", "paid wrong")]
        rows.append(f"| {reward} | `kind: {kind}` | {seed} | {ends[0]} | {ends[1]} |")
    return "\n".join(rows) + "\n"


TABLES = {
    "verdicts": verdicts,
    "again": again,
    "readings": readings,
    "attacks": attacks,
    "longer": longer,
    "correlations": correlations,
    "repairs": repairs,
}


def filled(page: str, results: dict[str, Any]) -> str:
    """A page with the text between each table's marks made again."""
    for name, table in TABLES.items():
        before, mark, rest = page.partition(BEGIN.format(name))
        if mark:
            page = before + mark + table(results) + END.format(name) + rest.partition(END.format(name))[2]
    return page


def main() -> None:
    results = load()
    for path in (PAGE, LONG_PAGE):
        path.write_text(filled(path.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
