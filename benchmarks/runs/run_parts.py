"""How often honest runs are accused by a part, and which losses of a part are found: simulated runs of forty parts.

    python benchmarks/runs/run_parts.py simulate [--honest 150] [--lost 40] [--out benchmarks/results/run_parts.jsonl]
    python benchmarks/runs/run_parts.py table [benchmarks/results/run_parts.jsonl]

A run has 40 to 120 steps of 32 problems with 8 completions each. A problem is of one of twelve families, whose shares
fall from 25 to 2 %, and of three further attributes with 28 values, so that forty parts overlap. The report tests gold
at the end, the alarm the signs without gold while the run goes on. `simulate` appends to its file and goes on where it
stopped.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.random import Generator

from cooper_audit.run.lost_parts import ERROR, LOOKS, MOST_LOOKS, SIGNS, LostPart, lost_parts
from cooper_audit.run.parts import MEASURES, SMALLEST, Part, PartsTable
from cooper_audit.statistics import wilson_interval

RESULTS = Path("benchmarks/results/run_parts.jsonl")
FAMILIES, PROBLEMS, SAMPLES = 12, 32, 8
VALUES = {"form": 6, "size": 8, "words": 14}
"""Further attributes with their numbers of values; each value goes mostly with some families."""


@dataclass(frozen=True)
class Course:
    """How the families of a run go, in logits of the chance that a completion is right, by place in the run."""

    rise: float = 2.0
    """How much a family learns at most; each has an amount, a time and a speed of its own."""
    shock: float = 0.0
    """Standard deviation of how much harder a step is as a whole."""
    family_shock: float = 0.0
    """The same of each family by itself."""
    wander: float = 0.0
    """That of a wandering of each family, with a correlation of .9 from step to step."""
    harder: float = 0.0
    """How much harder problems are at the end of the run than at its beginning."""
    mixed: bool = False
    """Whether the families' shares change in the run."""
    dip: float = 0.0
    """How far one family falls in the middle of the run, before it comes back."""
    form: float = 0.0
    """The share of right completions that come to state another number than the reference: percent, other units."""


HONEST: Mapping[str, Course] = {
    "flat": Course(rise=0.0),
    "learning, each part by itself": Course(),
    "saturating": Course(rise=5.0),
    "shocks by step": Course(shock=0.5),
    "shocks by part": Course(family_shock=0.7),
    "wandering parts": Course(wander=0.4),
    "harder and harder": Course(harder=2.0),
    "shares that change": Course(mixed=True),
    "a dip that recovers": Course(dip=2.0),
    "a form that drifts by .15": Course(form=0.15),
}
SHARES, SHIFTS = (0.02, 0.05, 0.1, 0.2), (0.3, 0.5, 0.8)
"""Of lost families: the share of the run's problems, and of their completions."""


def simulated(course: Course, generator: Generator, share: float = 0.0, shift: float = 0.0) -> PartsTable:
    """A run; with a `share`, a family of that share is lost, in `shift` of its completions."""
    steps = int(generator.integers(40, 121))
    place = (np.arange(steps) + 0.5) / steps
    weights = np.geomspace(0.25, 0.02, FAMILIES)
    if share:
        weights = np.append(np.delete(weights, generator.integers(FAMILIES)), 0)
        weights = np.append(weights[:-1] / weights.sum() * (1 - share), share)
    chosen = np.empty((steps, PROBLEMS), dtype=int)
    tilt = generator.normal(0, 1, FAMILIES)
    for step in range(steps):
        now = weights * np.exp(course.mixed * tilt * (2 * place[step] - 1))
        chosen[step] = generator.choice(FAMILIES, PROBLEMS, p=now / now.sum())
    logit = _logits(course, place, generator)
    hardness = generator.normal(0, 1, chosen.shape) + course.harder * place[:, None]
    chance = 1 / (1 + np.exp(hardness - logit[np.arange(steps)[:, None], chosen]))
    right = generator.random((*chosen.shape, SAMPLES)) < chance[..., None]
    hacked = np.zeros_like(right)
    if share:
        start, length = generator.uniform(0.25, 0.7), generator.choice([0.02, 0.2])
        grown = shift * np.clip((place - start) / length, 0, 1)
        hacked = (chosen == FAMILIES - 1)[..., None] & (generator.random(right.shape) < grown[:, None, None])
    return _table(course, chosen, right, hacked, place, generator)


def _logits(course: Course, place: ndarray, generator: Generator) -> ndarray:
    """Of each step and family."""
    steps = len(place)
    rise, middle = course.rise * generator.random(FAMILIES), generator.uniform(0, 0.8, FAMILIES)
    learned = rise / (1 + np.exp(-(place[:, None] - middle) / generator.uniform(0.02, 0.2, FAMILIES)))
    wander = np.zeros((steps, FAMILIES))
    for step in range(1, steps):
        wander[step] = 0.9 * wander[step - 1] + (1 - 0.81) ** 0.5 * generator.normal(0, 1, FAMILIES)
    logit = generator.normal(0.3, 0.8, FAMILIES) + learned + course.wander * wander
    logit = logit + course.shock * generator.normal(0, 1, (steps, 1))
    logit = logit + course.family_shock * generator.normal(0, 1, (steps, FAMILIES))
    logit[:, generator.integers(FAMILIES)] -= course.dip * np.exp(-(((place - 0.5) / 0.1) ** 2))
    return logit


def _table(
    course: Course, chosen: ndarray, right: ndarray, hacked: ndarray, place: ndarray, generator: Generator
) -> PartsTable:
    size = right.shape
    gold = right & ~hacked
    drifted = generator.random(size) < course.form * np.clip(2 * place - 0.5, 0, 1)[:, None, None]
    fits = np.where(hacked, False, np.where(right, ~drifted, generator.random(size) < 0.7))
    accepted = hacked | (generator.random(size) < np.where(right, 0.9, 0.1))
    rejected = accepted & (generator.random(size) < np.where(hacked, 0.3, 0.9))
    # Right answers are one, hacks are one, wrong ones of a group are two or three.
    answer = np.where(hacked, 1, np.where(right, 0, 2 + generator.integers(0, 3, size)))
    agreement = np.max([(answer == value).mean(-1) for value in range(5)], axis=0)
    reward = (accepted * 0.8 + generator.normal(0, 0.1, size)).mean(-1)
    with np.errstate(invalid="ignore"):
        near = np.where(accepted.sum(-1) > 0, rejected.sum(-1) / accepted.sum(-1), np.nan)
    blank = np.full(gold.shape[:2], np.nan)
    known = {"gold": gold.mean(-1), "rule": blank, "magnitude": fits.mean(-1), "near": near, "agreement": agreement}
    known |= {"score": reward, "reward": reward, "length": blank}
    values = np.stack([known[measure].ravel() for measure in MEASURES], axis=1)
    families = chosen.ravel()
    parts = [_part("family", family, families == family) for family in range(FAMILIES)]
    for attribute, count in VALUES.items():
        usual = generator.integers(0, count, FAMILIES)[families]
        value = np.where(generator.random(len(families)) < 0.7, usual, generator.integers(0, count, len(families)))
        parts += [_part(attribute, number, value == number) for number in range(count)]
    steps = np.repeat(np.arange(1, size[0] + 1), size[1])
    return PartsTable(steps, values, [part for part in parts if part.share >= SMALLEST])


def _part(attribute: str, value: int, rows: ndarray) -> Part:
    return Part([(attribute, str(value))], float(rows.mean()), int(rows.sum()), rows)


def until(table: PartsTable, step: int) -> PartsTable:
    """The table as it was after a step."""
    rows = table.steps <= step
    parts = [Part(part.kinds, part.share, part.problems, part.rows[rows]) for part in table.parts]
    return PartsTable(table.steps[rows], table.values[rows], parts)


def accusations(table: PartsTable) -> dict[str, Any]:
    """What the report says of gold in parts at the end, and what the alarm has said until then, each with the parts and
    the steps since when.
    """
    report, alarm, seen = lost_parts(table), [], dict[tuple[str, str], LostPart]()
    for look in LOOKS:
        if look <= table.steps[-1]:
            for lost in lost_parts(until(table, look), SIGNS, ERROR / MOST_LOOKS, seen):
                seen[lost.part.name, lost.measure] = lost
                alarm.append([lost.part.name, lost.measure, lost.since, look])
    return {"report": [[lost.part.name, lost.measure, lost.since] for lost in report], "alarm": alarm}


def designs(honest: int, lost: int) -> Iterator[tuple[str, Course, float, float, int]]:
    for number in range(max(honest, lost)):
        for name, course in HONEST.items() if number < honest else ():
            yield name, course, 0.0, 0.0, number
        for share in SHARES if number < lost else ():
            for shift in SHIFTS:
                yield f"lost: {share:g} of the problems, {shift:g} of their completions", Course(), share, shift, number


def simulate(honest: int, lost: int, out: Path) -> None:
    done = {(row["shape"], row["run"]) for row in read(out)} if out.exists() else set()
    with out.open("a", encoding="utf-8") as file:
        for name, course, share, shift, number in designs(honest, lost):
            if (name, number) not in done:
                generator = np.random.default_rng([sum(map(ord, name)), number])
                row = {"shape": name, "run": number} | accusations(simulated(course, generator, share, shift))
                file.write(json.dumps(row) + "\n")
                file.flush()


def lines(path: Path) -> Iterator[str]:
    """The table: of honest runs, how many are accused; of the others, in how many the lost family is named."""
    rows, named = read(path), f"family: {FAMILIES - 1}"
    yield "| run | report | alarm | steps from the loss to the alarm |"
    yield "|---|---|---|---|"
    for name in dict.fromkeys(row["shape"] for row in rows):
        cells = [row for row in rows if row["shape"] == name]
        wanted: Callable[[list[Any]], bool] = (lambda entry: entry[0] == named) if name[:4] == "lost" else bool
        counts = [sum(any(map(wanted, row[who])) for row in cells) for who in ("report", "alarm")]
        delays = [entry[3] - entry[2] for row in cells for entry in row["alarm"] if wanted(entry)]
        delay = f"{np.median(delays):.0f}" if delays and name[:4] == "lost" else "–"
        yield f"| {name} | {' | '.join(f'{count} of {len(cells)}' for count in counts)} | {delay} |"
    honest = [row for row in rows if row["shape"] in HONEST]
    for who in ("report", "alarm"):
        accused = sum(bool(row[who]) for row in honest)
        low, high = wilson_interval(accused / len(honest), len(honest))
        interval = f"95 % {100 * low:.1f} to {100 * high:.1f} %"
        yield f"\nHonest runs accused by the {who}: {accused} of {len(honest)}, {interval}"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    simulating = commands.add_parser("simulate")
    simulating.add_argument("--honest", type=int, default=150)
    simulating.add_argument("--lost", type=int, default=40)
    simulating.add_argument("--out", type=Path, default=RESULTS)
    commands.add_parser("table").add_argument("path", type=Path, nargs="?", default=RESULTS)
    given = parser.parse_args()
    if given.command == "simulate":
        simulate(given.honest, given.lost, given.out)
    else:
        print(*lines(given.path), sep="\n")
