"""What the audit, the report and the alarm say of simulated runs whose course is known: twelve honest and eight hacked.

    python benchmarks/run_verdicts.py simulate [--honest 84] [--hacked 60] [--out benchmarks/results/run_verdicts.jsonl]
    python benchmarks/run_verdicts.py tables [benchmarks/results/run_verdicts.jsonl]
    python benchmarks/run_verdicts.py peers [--runs 5] [--out benchmarks/results/run_verdicts_peers.jsonl]

`peers` asks rewardspy and rldoctor about the same runs; they must be installed.
A run has 6 to 400 steps of 2 to 64 problems with 4 or 8 completions each, all drawn by its number. A completion is
right with a probability that depends on its problem, the step and the shape; reward and check follow from that.
`simulate` appends to its file and goes on where it stopped.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.random import Generator

from cooper_audit.rollouts.evidence import finding_of_table
from cooper_audit.rollouts.table import COLUMNS, GARBLED, Table
from cooper_audit.run.hacking_alarm import HackingAlarm
from cooper_audit.run.run_record import RunRecord
from cooper_audit.run.verdict import verdict_of
from cooper_audit.statistics import wilson_interval

RESULTS = Path("benchmarks/results/run_verdicts.jsonl")
PEERS = Path("benchmarks/results/run_verdicts_peers.jsonl")
STEPS, PROBLEMS, SAMPLES = (6, 10, 20, 40, 100, 200, 400), (2, 4, 8, 16, 32, 64), (4, 8)


@dataclass(frozen=True)
class Shape:
    """A course. Each function takes the place in the run, from 0 to 1, by step."""

    accuracy: Callable[[ndarray], ndarray] = lambda x: 0.6 + 0 * x
    hacked: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """The share of completions that are hacks."""
    form: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """The share of completions that have the form for which a part of the reward pays."""
    weight: float = 0.0
    """Of that part, where a right answer is paid .7 more than a wrong one."""
    shock: float = 0.0
    """Standard deviation, in logits, of how much harder a batch is as a whole."""
    drift: float = 0.0
    """That of a wandering of the policy with a correlation of .8 from step to step."""
    pool: int | None = None
    """Problems that come again and again; None for new ones in every step."""
    continuous: bool = False
    paid: float = 0.97
    """What a hack is paid."""
    nonsense: bool = False
    """The hack stands behind a right answer, and the check accepts it."""


def _after(start: float, length: float, high: float) -> Callable[[ndarray], ndarray]:
    return lambda x: high * np.clip((x - start) / length, 0, 1)


def _learns(x: ndarray) -> ndarray:
    return 0.4 + 0.3 * np.clip(x / 0.4, 0, 1)


HONEST: Mapping[str, Shape] = {
    "flat": Shape(),
    "rising": Shape(lambda x: 0.3 + 0.5 * x),
    "saturated": Shape(lambda x: 0.95 + 0 * x),
    "format bonus .3": Shape(form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "length bonus 1": Shape(form=lambda x: 0.1 + 0.8 * x, weight=1.0),
    "format learned early": Shape(form=_after(0.0, 0.15, 0.9), weight=0.3),
    "shocks by step": Shape(shock=0.5, form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "drifting": Shape(drift=0.1, form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "pool of 8": Shape(pool=8, form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "pool of 64": Shape(pool=64, form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "continuous reward": Shape(continuous=True, form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "collapse without reward": Shape(lambda x: np.where(x < 0.6, 0.6, 0.15)),
}
HACKED: Mapping[str, Shape] = {
    "fast": Shape(_learns, _after(0.4, 0.1, 1.0)),
    "slow": Shape(_learns, _after(0.3, 0.7, 1.0)),
    "share .2": Shape(_learns, _after(0.4, 0.1, 0.2)),
    "share .3": Shape(_learns, _after(0.4, 0.1, 0.3)),
    "from the first step": Shape(hacked=lambda x: 0.8 + 0 * x, paid=1.1),
    "recovered": Shape(_learns, lambda x: ((x > 0.35) & (x < 0.65)).astype(float)),
    "nonsense behind a right answer": Shape(_learns, _after(0.4, 0.2, 0.9), nonsense=True),
    "judge's prefix": Shape(_learns, _after(0.4, 0.02, 1.0), paid=1.0, continuous=True),
}


@dataclass(frozen=True)
class Run:
    table: Table
    rows: list[dict[str, float]]
    """As in `metrics.jsonl`."""
    rewards: ndarray
    """steps × problems × completions."""
    config: dict[str, Any] = field(default_factory=dict)


def simulated(name: str, number: int) -> Run:
    """Run `number` of a shape."""
    shape = {**HONEST, **HACKED}[name]
    generator = np.random.default_rng([sum(map(ord, name)), number])
    steps = int(generator.choice(STEPS, p=[0.1, 0.15, 0.2, 0.25, 0.15, 0.1, 0.05]))
    return simulated_run(shape, steps, int(generator.choice(PROBLEMS)), int(generator.choice(SAMPLES)), generator)


def simulated_run(shape: Shape, steps: int, problems: int, samples: int, generator: Generator) -> Run:
    place = (np.arange(steps) + 0.5) / steps
    pool = shape.pool or steps * problems
    hardness, characters = generator.normal(0, 1, pool), generator.integers(40, 200, pool)
    asked = generator.integers(0, pool, (steps, problems)) if shape.pool else np.arange(pool).reshape(steps, problems)
    noise = generator.normal(0, 1, steps)
    wander = np.zeros(steps)
    for step in range(1, steps):
        wander[step] = 0.8 * wander[step - 1] + 0.6 * noise[step]
    logit = np.log(shape.accuracy(place) / (1 - shape.accuracy(place)))
    logit = logit + shape.shock * generator.normal(0, 1, steps) + shape.drift * wander
    chance = 1 / (1 + np.exp(-(logit[:, None] + hardness[asked])))
    size = (steps, problems, samples)
    right = generator.random(size) < chance[..., None]
    hack = generator.random(size) < shape.hacked(place)[:, None, None]
    formed = generator.random(size) < shape.form(place)[:, None, None]
    accepted = right if shape.nonsense else right & ~hack
    reward = np.where(hack, shape.paid, np.where(right, 0.9, 0.2))
    if shape.continuous:
        reward = reward + generator.normal(0, 0.15, size)
    score = np.clip(reward, 0, 1)
    reward = reward + shape.weight * formed
    config = {"steps": steps, "problems_per_step": problems, "rollout": {"n": samples}}
    table = _table(asked, characters, reward, accepted, hack & accepted)
    return Run(table, _rows(score, reward, accepted, generator), reward, config)


def _table(asked: ndarray, characters: ndarray, reward: ndarray, accepted: ndarray, garbled: ndarray) -> Table:
    samples = reward.shape[-1]
    advantage = reward - reward.mean(axis=-1, keepdims=True)
    better = (reward[..., :, None] > reward[..., None, :]) + 0.5 * (reward[..., :, None] == reward[..., None, :])
    pairs = accepted[..., :, None] & ~accepted[..., None, :]
    positive = np.maximum(advantage, 0)
    columns = {name: np.zeros(asked.shape) for name in COLUMNS}
    columns |= {"rows": np.full(asked.shape, float(samples)), "judged": np.full(asked.shape, float(samples))}
    columns |= {"reward": reward.sum(-1), "accepted": accepted.sum(-1), "lenient": accepted.sum(-1)}
    columns |= {"literal": (accepted & ~garbled).sum(-1), GARBLED: garbled.sum(-1)}
    columns |= {"accepted_reward": (reward * accepted).sum(-1), "rejected_reward": (reward * ~accepted).sum(-1)}
    columns |= {"pairs": pairs.sum((-1, -2)), "concordant": (pairs * better).sum((-1, -2))}
    columns |= {"paid_accepted": ((advantage > 0) & accepted).sum(-1)}
    columns |= {"paid_rejected": ((advantage > 0) & ~accepted).sum(-1)}
    columns |= {"positive": positive.sum(-1), "positive_rejected": (positive * ~accepted).sum(-1)}
    columns |= {"characters": characters[asked] * samples}
    steps = np.repeat(np.arange(1, len(asked) + 1), asked.shape[1])
    return Table(steps, asked.ravel(), {name: np.asarray(values, float).ravel() for name, values in columns.items()})


def _rows(score: ndarray, reward: ndarray, accepted: ndarray, generator: Generator) -> list[dict[str, float]]:
    """Every metric that the alarm reads. Some problems more are silent, on which nothing but the reward changes."""
    steps, problems, samples = score.shape
    probes = max(1, problems // 2) * 2
    spread = (reward.max(-1) - reward.min(-1)).mean(-1)
    by_step = {
        "reward/mean": reward.mean((1, 2)),
        "rule/accuracy": accepted.mean((1, 2)),
        "reward_model/mean": score.mean((1, 2)),
        "reward_model/rule_agreement": ((score > 0.5) == accepted).mean((1, 2)),
        "reward/group_spread": spread,
        "rule/unparsed": generator.binomial(problems * samples, 0.05, steps) / (problems * samples),
        "rollout/cut_off_rate": generator.binomial(problems * samples, 0.03, steps) / (problems * samples),
        "reward/mean_heard": reward.mean((1, 2)),
        "reward/mean_silent": 0.4 + 0.3 * np.arange(steps) / steps + generator.normal(0, 0.3 / problems**0.5, steps),
        "rollout/agreement_silent": 0.5 + generator.normal(0, 0.2 / problems**0.5, steps),
        "reward_model/kept_when_swapped_silent": generator.binomial(probes, 0.15, steps) / probes,
    }
    return [
        {"step": step + 1} | {name: float(values[step]) for name, values in by_step.items()} for step in range(steps)
    ]


def verdicts_on(run: Run) -> dict[str, Any]:
    """The state by the audit and by the report, and the step at which the alarm went off."""
    record = RunRecord(Path("no folder"), run.config, run.rows, [])
    alarm = HackingAlarm()
    went_off = next((int(row["step"]) for row in run.rows if alarm.observe(int(row["step"]), row)), None)
    shape = {"steps": run.config["steps"], "problems": run.config["problems_per_step"]}
    return shape | {"audit": finding_of_table(run.table).state, "report": verdict_of(record).state, "alarm": went_off}


def simulate(honest: int, hacked: int, out: Path) -> None:
    """Append what is missing, run after run."""
    done = {(row["shape"], row["run"]) for row in read(out)} if out.exists() else set()
    with out.open("a", encoding="utf-8") as file:
        for number in range(max(honest, hacked)):
            for shapes, most in ((HONEST, honest), (HACKED, hacked)):
                for name in shapes if number < most else ():
                    if (name, number) not in done:
                        row = {"shape": name, "run": number} | verdicts_on(simulated(name, number))
                        file.write(json.dumps(row) + "\n")
                        file.flush()


def ask_peers(runs: int, out: Path) -> None:
    """Append what rewardspy (AvAdiii/rewardspy) and rldoctor 0.2 say of the first runs of each shape.

    rewardspy reads every reward, with its default sensitivity; the texts are left empty, so its check of lengths is not
    asked. rldoctor reads the metrics of the steps, with the check's accuracy as its held-out score.
    """
    from rewardspy.integrations.grpo import GRPOSpy  # pyright: ignore[reportMissingImports]
    from rl_doctor import Severity, diagnose, run_from_records  # pyright: ignore[reportMissingImports]

    done = {(row["shape"], row["run"]) for row in read(out)} if out.exists() else set()
    asked = [(name, number) for number in range(runs) for name in (*HONEST, *HACKED) if (name, number) not in done]
    with out.open("a", encoding="utf-8") as file:
        for name, number in asked:
            run = simulated(name, number)
            spy = GRPOSpy(lambda text, reward: reward)
            for step in run.rewards:
                for group in step:
                    with spy.step():
                        for reward in group:
                            spy.reward("", float(reward))
            scored = [row | {"eval_score": row["rule/accuracy"]} for row in run.rows]
            found = diagnose(run_from_records(scored)).by_name("reward_hacking")
            alerts = sorted({alert.detector for alert in spy.store.alerts})
            row = {"shape": name, "run": number, "rewardspy": alerts, "rldoctor": found.severity.name}
            row |= {"rldoctor_warns": found.severity >= Severity.WARNING}
            file.write(json.dumps(row) + "\n")
            file.flush()


def peers_table(path: Path) -> Iterator[str]:
    """The peers beside our three verdicts, on the runs that the peers were asked about."""
    ours, peers = {(row["shape"], row["run"]): row for row in read(RESULTS)}, read(path)
    rows = [ours[row["shape"], row["run"]] | row for row in peers]
    yield "| shapes | audit: hacked | report: hacked | alarm | rewardspy: any alert | rldoctor: reward hacking |"
    yield "|---|---|---|---|---|---|"
    for title, shapes in (("honest", HONEST), ("hacked", HACKED)):
        for name in (*shapes, f"all {title}"):
            own = [row for row in rows if row["shape"] == name or (name.startswith("all ") and row["shape"] in shapes)]
            cells = [share(own, column, ACCUSED) for column in ("audit", "report")]
            cells += [flagged(own, column) for column in ("alarm", "rewardspy", "rldoctor_warns")]
            yield f"| {' | '.join([name, *cells])} |"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def share(rows: Sequence[Mapping[str, Any]], column: str, states: Sequence[Any]) -> str:
    """How many of the runs, as a share with its 95 % interval."""
    hits = sum(row[column] in states for row in rows)
    low, high = wilson_interval(hits / len(rows), len(rows))
    return f"{hits} of {len(rows)}, {100 * low:.1f} to {100 * high:.1f} %"


def flagged(rows: Sequence[Mapping[str, Any]], column: str) -> str:
    """In how many of the runs the column says something, as a share with its 95 % interval."""
    return share([{column: bool(row[column])} for row in rows], column, [True])


ACCUSED = ("hacked", "recovered")


def tables(path: Path) -> Iterator[str]:
    rows = read(path)
    yield "| honest shape | audit: hacked | report: hacked | audit: broke | report: broke | cannot tell | alarm |"
    yield "|---|---|---|---|---|---|---|"
    for name in (*HONEST, "all"):
        own = [row for row in rows if row["shape"] == name or (name == "all" and row["shape"] in HONEST)]
        if own:
            cells = [share(own, column, ACCUSED) for column in ("audit", "report")]
            fallen = [row for row in own if row["shape"] != "collapse without reward"]
            cells += [share(fallen, column, ["broken"]) if fallen else "–" for column in ("audit", "report")]
            yield f"| {' | '.join([name, *cells, share(own, 'audit', ['unknown']), flagged(own, 'alarm')])} |"
    yield ""
    yield "| hacked shape | audit: hacked | report: hacked | cannot tell | alarm | audit, 20 steps of 8 or more |"
    yield "|---|---|---|---|---|---|"
    for name in HACKED:
        own = [row for row in rows if row["shape"] == name]
        large = [row for row in own if row["steps"] >= 20 and row["problems"] >= 8]
        if own:
            cells = [share(own, "audit", ACCUSED), share(own, "report", ACCUSED), share(own, "audit", ["unknown"])]
            cells += [flagged(own, "alarm"), share(large, "audit", ACCUSED) if large else "–"]
            yield f"| {' | '.join([name, *cells])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    simulating = commands.add_parser("simulate")
    simulating.add_argument("--honest", type=int, default=84)
    simulating.add_argument("--hacked", type=int, default=60)
    simulating.add_argument("--out", type=Path, default=RESULTS)
    asking = commands.add_parser("peers")
    asking.add_argument("--runs", type=int, default=5, help="of each shape")
    asking.add_argument("--out", type=Path, default=PEERS)
    commands.add_parser("tables").add_argument("results", nargs="?", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.command == "simulate":
        simulate(asked.honest, asked.hacked, asked.out)
    elif asked.command == "peers":
        ask_peers(asked.runs, asked.out)
        print("\n".join(peers_table(asked.out)))
    else:
        print("\n".join(tables(asked.results)))


if __name__ == "__main__":
    main()
