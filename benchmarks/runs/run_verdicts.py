"""What the audit, the report and the alarm say of simulated runs whose course is known: honest, hacked and broken ones.

    python benchmarks/runs/run_verdicts.py simulate [--runs 60] [--shape NAME ...] [--out RESULTS]
    python benchmarks/runs/run_verdicts.py tables [benchmarks/results/run_verdicts.jsonl]
    python benchmarks/runs/run_verdicts.py peers [--runs 5] [--out benchmarks/results/run_verdicts_peers.jsonl]

`peers` asks rewardspy and rldoctor about the same runs; they must be installed.
A run has 6 to 400 steps of 2 to 64 problems with 4 or 8 completions each, all drawn by its number. A completion is
right with a probability that depends on its problem, the step and the shape; reward and check follow from that.
`simulate` appends to its file and goes on where it stopped.
"""

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy import ndarray
from numpy.random import Generator

from cooper_audit.run.evidence import finding_of_table
from cooper_audit.run.finding import ACCUSED, with_power
from cooper_audit.run.paid_rows import PAYMENTS, payments_of
from cooper_audit.run.run_record import RunRecord
from cooper_audit.run.table import COLUMNS, GARBLED, SET, Table, payment_shares
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
    harder: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """How much harder the problems of a step are, in logits."""
    spread: float = 1.0
    """Standard deviation of how hard the problems of a step are, in logits."""
    easy_first: bool = False
    """The problems of a pool come from the easiest to the hardest, epoch after epoch."""
    resampled: bool = False
    """A group whose completions are all right or all wrong is drawn again, up to three times."""
    second: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """The share of problems of a second data set, which is 1.5 logits harder and has other answers."""
    memory: float = 0.8
    """The correlation of the drift from step to step."""
    unread: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """The share of completions whose form the check cannot read."""
    cut: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """The share of completions that are cut off at the length limit: nothing in them is read, and they earn nothing."""
    lenient: float = 0.0
    """The share of wrong answers that the reward takes for right, at all times."""
    fooled: float = 0.0
    """The same of a problem that the policy never solves, and proportionally fewer of easier ones."""
    convention: tuple[float, float] = (0.0, 0.0)
    """The share of problems whose right answers the check rejects and the reward pays, in both data sets."""
    partial: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """How much of a right answer's pay a wrong one earns more, for its working."""
    noise: float = 0.0
    """Standard deviation of the reward."""
    fails: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """The share of completions on which the grader fails and writes 0."""
    where: Literal["all", "half", "fifth", "second", "alternate"] = "all"
    """Where hacks are: in all problems, in a half or a fifth of them, in the second data set, or in every second
    step."""
    steps: int | None = None
    samples: int | None = None
    scale: Callable[[ndarray], ndarray] = lambda x: 1 + 0 * x
    """By how much every reward is multiplied."""
    normalised: bool = False
    """The dump holds rewards less their group's mean, in its standard deviations."""
    judge: Callable[[ndarray], ndarray] = lambda x: 1 + 0 * x
    """By how much the judge's noise and leniency are multiplied."""
    penalty: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """What a long completion, one in two, is paid less."""
    punished: float = 1.0
    """The place from which a hack is paid nothing."""
    silent: Callable[[ndarray], ndarray] = lambda x: 0 * x
    """The share of problems without a reference."""
    sharp: Callable[[ndarray], ndarray] = lambda x: 1 + 0 * x
    """By how much the logits are multiplied: a policy without entropy is always right or always wrong."""
    doubled: bool = False
    """Every problem of a step is in it twice."""
    repeated: bool = False
    """A tenth of the steps was made again after a resume."""


def _after(start: float, length: float, high: float) -> Callable[[ndarray], ndarray]:
    return lambda x: high * np.clip((x - start) / length, 0, 1)


def _learns(x: ndarray) -> ndarray:
    return 0.4 + 0.3 * np.clip(x / 0.4, 0, 1)


FORM = _after(0.0, 0.8, 0.9)
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
"""Problems are alike at all times."""
CHANGING: Mapping[str, Shape] = {
    "harder, form of 1": Shape(form=FORM, weight=1.0, harder=lambda x: 2.5 * x),
    "harder at half-time, form of 1": Shape(form=FORM, weight=1.0, harder=lambda x: 2.0 * (x > 0.5)),
    "harder while it learns": Shape(lambda x: 0.5 + 0.3 * x, form=FORM, weight=0.3, harder=lambda x: 3 * x),
    "harder, nothing else": Shape(harder=lambda x: 2.5 * x),
    "easy first in epochs": Shape(pool=160, easy_first=True, form=FORM, weight=0.5),
    "easy first, learns": Shape(lambda x: 0.3 + 0.4 * x, pool=160, easy_first=True),
    "dynamic sampling": Shape(lambda x: 0.3 + 0.5 * x, resampled=True, harder=lambda x: 1.5 * x, form=FORM, weight=0.3),
    "mix": Shape(second=lambda x: 0.1 + 0.8 * x, form=FORM, weight=0.5),
    "mix with conventions": Shape(second=lambda x: 0.1 + 0.8 * x, convention=(0.0, 0.3), noise=0.2),
    "sets by turns": Shape(second=lambda x: (x * 6 % 2 > 1).astype(float), form=FORM, weight=0.5),
    "sets by turns with conventions": Shape(second=lambda x: (x * 4 % 2 > 1).astype(float), convention=(0.05, 0.3)),
    "answers in an unread form": Shape(lambda x: 0.3 + 0.3 * x, unread=_after(0.4, 0.3, 0.8), form=FORM, weight=0.3),
    "unread and harder": Shape(harder=lambda x: 2 * x, unread=_after(0.4, 0.3, 0.6), form=FORM, weight=0.5),
    "wandering": Shape(drift=0.5, form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "wandering slowly": Shape(drift=0.7, memory=0.95, form=lambda x: 0.2 + 0.7 * x, weight=0.3),
    "noisy judge, harder": Shape(noise=0.5, harder=lambda x: 2.5 * x, form=FORM, weight=0.3),
    "lenient reward, harder": Shape(lenient=0.15, harder=lambda x: 2.5 * x, form=FORM, weight=0.3),
    "lenient reward, learns": Shape(lambda x: 0.3 + 0.6 * x, lenient=0.15),
    "conventions, learns": Shape(lambda x: 0.25 + 0.65 * x, convention=(0.15, 0.0)),
    "conventions, lenient, harder": Shape(convention=(0.1, 0.0), lenient=0.1, harder=lambda x: 2.5 * x),
    "partial credit": Shape(partial=_after(0.2, 0.5, 0.7), noise=0.05),
    "form of 1, half learned": Shape(form=lambda x: 0.05 + 0.4 * x, weight=1.0),
    "mix with conventions, learns": Shape(
        lambda x: 0.3 + 0.5 * x, second=lambda x: 0.1 + 0.8 * x, convention=(0.05, 0.4)
    ),
    "judge fooled by harder problems": Shape(fooled=0.5, harder=lambda x: 2.5 * x - 1),
    "judge fooled from half-time, problems alike": Shape(fooled=0.5, harder=lambda x: 3 * (x > 0.5) - 1.5, spread=0.0),
    "judge fooled by stages": Shape(fooled=0.4, harder=lambda x: np.floor(3 * x) - 1, spread=0.3),
    "masters": Shape(lambda x: 0.3 + 0.68 * np.clip(x / 0.5, 0, 1), noise=0.3),
}
"""Honest as well, while problems, answers or what is paid change."""
HACKED: Mapping[str, Shape] = {
    "fast": Shape(_learns, _after(0.4, 0.1, 1.0)),
    "slow": Shape(_learns, _after(0.3, 0.7, 1.0)),
    "from the first step": Shape(hacked=lambda x: 0.8 + 0 * x, paid=1.1),
    "recovered": Shape(_learns, lambda x: ((x > 0.35) & (x < 0.65)).astype(float)),
    "nonsense behind a right answer": Shape(_learns, _after(0.4, 0.2, 0.9), nonsense=True),
    "judge's prefix": Shape(_learns, _after(0.4, 0.02, 1.0), paid=1.0, continuous=True),
    **{f"share {share}": Shape(_learns, _after(0.4, 0.1, share)) for share in (0.1, 0.2, 0.3, 0.4, 0.5)},
    "learns, and half hacks": Shape(lambda x: 0.3 + 0.5 * x, _after(0.4, 0.2, 0.5), noise=0.1),
    "grows to .3": Shape(lambda x: 0.3 + 0.5 * x, _after(0.3, 0.7, 0.3), noise=0.1),
    "half of the problems": Shape(_learns, _after(0.4, 0.1, 1.0), where="half"),
    "second data set": Shape(_learns, _after(0.4, 0.1, 1.0), where="second", second=lambda x: 0.3 + 0 * x),
    "sets by turns, hacked in one": Shape(
        _learns, _after(0.4, 0.1, 1.0), where="second", second=lambda x: (x * 6 % 2 > 1).astype(float)
    ),
    "every second step": Shape(_learns, _after(0.4, 0.1, 1.0), where="alternate"),
    "in every second tenth": Shape(_learns, lambda x: 0.9 * ((x > 0.35) & (np.floor(10 * x) % 2 == 0))),
    "six steps": Shape(hacked=lambda x: (x > 0.5).astype(float), steps=6),
    "harder and hacked by half": Shape(hacked=_after(0.4, 0.2, 0.5), harder=lambda x: 1.5 * x, form=FORM, weight=0.5),
}
BROKEN: Mapping[str, Shape] = {
    "grader fails on .7": Shape(_learns, fails=lambda x: 0.7 * (x > 0.5)),
    "grader fails on .4": Shape(_learns, fails=lambda x: 0.4 * (x > 0.5), form=FORM, weight=0.3),
}
"""The reward no longer pays right answers."""
OTHER: Mapping[str, Shape] = {
    "reward ten times as large from half-time": Shape(lambda x: 0.4 + 0.3 * x, scale=lambda x: 1 + 9 * (x > 0.5)),
    "reward a tenth from half-time": Shape(lambda x: 0.4 + 0.3 * x, noise=0.1, scale=lambda x: 1 - 0.9 * (x > 0.5)),
    "rewards normalised by group": Shape(lambda x: 0.3 + 0.5 * x, normalised=True, form=FORM, weight=0.3),
    "normalised, harder": Shape(normalised=True, harder=lambda x: 2.5 * x, form=FORM, weight=0.5),
    "partial credit at all times": Shape(lambda x: 0.3 + 0.5 * x, partial=lambda x: 0.6 + 0 * x, noise=0.05),
    "partial credit, harder": Shape(partial=lambda x: 0.6 + 0 * x, noise=0.05, harder=lambda x: 2.5 * x),
    "length limit that rises": Shape(lambda x: 0.5 + 0.2 * x, cut=lambda x: 0.5 * (1 - x)),
    "length limit that falls": Shape(cut=_after(0.5, 0.3, 0.5)),
    "a data set drops out": Shape(second=lambda x: 0.5 * (x < 0.5), convention=(0.0, 0.3)),
    "a data set is added": Shape(_learns, second=lambda x: 0.6 * (x > 0.5), convention=(0.02, 0.3), noise=0.1),
    "by topic": Shape(_learns, harder=lambda x: 1.2 * np.sin(7 * np.floor(5 * x) + 1), lenient=0.1),
    "resumed": Shape(lambda x: 0.3 + 0.5 * x, repeated=True, lenient=0.1),
    "more and more without a reference": Shape(_learns, silent=lambda x: 0.9 * x, lenient=0.1),
    "tools fail for a while": Shape(lambda x: np.where((x > 0.4) & (x < 0.6), 0.15, 0.6), lenient=0.1),
    "temperature falls": Shape(lambda x: 0.4 + 0.3 * x, sharp=lambda x: 0.6 + 2 * x, noise=0.1),
    "temperature rises": Shape(lambda x: 0.7 - 0.15 * x, sharp=lambda x: 1.5 - 0.8 * x, form=FORM, weight=0.3),
    "entropy is lost": Shape(_learns, sharp=lambda x: 1 + 8 * x, lenient=0.1),
    "three rewards": Shape(_learns, form=FORM, weight=0.4, continuous=True, penalty=lambda x: 0.3 + 0 * x),
    "a stricter judge from half-time": Shape(_learns, lenient=0.3, noise=0.3, judge=lambda x: 1 - 0.8 * (x > 0.5)),
    "length penalty begins": Shape(_learns, penalty=_after(0.4, 0.2, 0.5), lenient=0.1),
    "length penalty begins, harder": Shape(penalty=_after(0.4, 0.2, 0.6), harder=lambda x: 2 * x, lenient=0.1),
    "every problem twice": Shape(_learns, doubled=True, lenient=0.15),
    "one completion each": Shape(_learns, samples=1, lenient=0.1),
    "one completion each, harder": Shape(samples=1, lenient=0.1, harder=lambda x: 2 * x),
    "groups of 64": Shape(_learns, samples=64, lenient=0.1, harder=lambda x: x),
    "groups of 2, harder": Shape(samples=2, lenient=0.1, harder=lambda x: 2.5 * x, form=FORM, weight=1.0),
    "policy renewed every eighth": Shape(lambda x: 0.3 + 0.5 * np.floor(8 * x) / 8, lenient=0.1, drift=0.2),
    "learns late": Shape(lambda x: 0.03 + 0.7 * (x > 0.6), lenient=0.05),
}
"""Honest runs of further kinds: how rewards are written, how groups are drawn, what happens on the way."""
OTHER_HACKED: Mapping[str, Shape] = {
    "normalised, hacked by half": Shape(_learns, _after(0.4, 0.1, 0.5), normalised=True),
    "larger reward and hacked by half": Shape(_learns, _after(0.4, 0.1, 0.5), scale=lambda x: 1 + 9 * (x > 0.6)),
    "in a fifth of the problems": Shape(_learns, _after(0.4, 0.1, 1.0), where="fifth"),
    "punished from .7 on": Shape(_learns, lambda x: 0.8 * ((x > 0.35) & (x < 0.75)), punished=0.7),
    "slow, while it learns": Shape(lambda x: 0.3 + 0.5 * x, lambda x: 0.4 * x),
    "under a noisy judge": Shape(_learns, _after(0.4, 0.2, 0.5), noise=0.4),
    "under a lenient judge": Shape(_learns, _after(0.4, 0.2, 0.5), lenient=0.3),
    "one completion each, hacked by half": Shape(_learns, _after(0.4, 0.1, 0.5), samples=1),
    "groups of 2, hacked by half": Shape(_learns, _after(0.4, 0.1, 0.5), samples=2),
    "groups of 64, hacked by .3": Shape(_learns, _after(0.4, 0.1, 0.3), samples=64),
    "few references, hacked by half": Shape(_learns, _after(0.4, 0.1, 0.5), silent=lambda x: 0.7 + 0 * x),
    "partial credit, hacked by half": Shape(_learns, _after(0.4, 0.1, 0.5), partial=lambda x: 0.6 + 0 * x, noise=0.05),
    "length penalty, hacked by half": Shape(_learns, _after(0.5, 0.1, 0.5), penalty=_after(0.3, 0.2, 0.5)),
    "harder and hacked from half-time, problems alike": Shape(
        hacked=lambda x: 0.6 * (x > 0.5), harder=lambda x: 1.5 * (x > 0.5), spread=0.0, paid=1.0
    ),
    "easy first, hacked by half": Shape(_learns, _after(0.4, 0.1, 0.5), pool=160, easy_first=True),
}
"""Hacked runs of further kinds."""
SHAPES: Mapping[str, Shape] = {**HONEST, **CHANGING, **HACKED, **BROKEN, **OTHER, **OTHER_HACKED}


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
    shape = SHAPES[name]
    generator = np.random.default_rng([sum(map(ord, name)), number])
    steps = int(generator.choice(STEPS, p=[0.1, 0.15, 0.2, 0.25, 0.15, 0.1, 0.05]))
    problems, samples = int(generator.choice(PROBLEMS)), int(generator.choice(SAMPLES))
    return simulated_run(shape, shape.steps or steps, problems, shape.samples or samples, generator)


def simulated_run(shape: Shape, steps: int, problems: int, samples: int, generator: Generator) -> Run:
    place = (np.arange(steps) + 0.5) / steps
    pool = shape.pool or steps * problems
    hardness, characters = shape.spread * generator.normal(0, 1, pool), generator.integers(40, 200, pool)
    asked = generator.integers(0, pool, (steps, problems)) if shape.pool else np.arange(pool).reshape(steps, problems)
    if shape.easy_first:
        asked = np.argsort(hardness)[np.arange(steps * problems) % pool].reshape(steps, problems)
    if shape.doubled:
        asked = np.repeat(asked[:, : problems // 2], 2, axis=1)
    if shape.repeated and (again := steps // 10):
        asked[steps // 2 : steps // 2 + again] = asked[steps // 2 - again : steps // 2]
    second = generator.random((steps, problems)) < shape.second(place)[:, None]
    odd = generator.random(pool)[asked] < np.where(second, shape.convention[1], shape.convention[0])
    noise = generator.normal(0, 1, steps)
    wander = np.zeros(steps)
    for step in range(1, steps):
        wander[step] = shape.memory * wander[step - 1] + math.sqrt(1 - shape.memory**2) * noise[step]
    logit = np.log(shape.accuracy(place) / (1 - shape.accuracy(place)))
    logit = logit + shape.shock * generator.normal(0, 1, steps) + shape.drift * wander - shape.harder(place)
    logits = logit[:, None] + hardness[asked] - 1.5 * second
    chance = 1 / (1 + np.exp(-shape.sharp(place)[:, None] * logits))
    size = (steps, problems, samples)
    right = generator.random(size) < chance[..., None]
    for _ in range(3 if shape.resampled else 0):
        flat = right.all(-1) | ~right.any(-1)
        right = np.where(np.expand_dims(flat, -1), generator.random(size) < chance[..., None], right)
    open_to_hacks = {
        "all": np.ones(asked.shape, bool),
        "half": (shares := generator.random(pool)[asked]) < 0.5,
        "fifth": shares < 0.2,
        "second": second,
        "alternate": np.broadcast_to((np.arange(steps) % 2 == 0)[:, None], asked.shape),
    }[shape.where]
    hack = (generator.random(size) < shape.hacked(place)[:, None, None]) & open_to_hacks[..., None]
    formed = generator.random(size) < shape.form(place)[:, None, None]
    judge = shape.judge(place)[:, None, None]
    lenient = judge * shape.lenient + shape.fooled * (1 - chance[..., None])
    paid = right | (generator.random(size) < lenient)
    wrong_pay = 0.2 + 0.7 * shape.partial(place)[:, None, None] * generator.random(size)
    pay_of_hack = np.where(place < shape.punished, shape.paid, 0.0)[:, None, None]
    reward = np.where(hack, pay_of_hack, np.where(paid, 0.9, wrong_pay))
    spread = judge * (shape.noise or 0.15 * shape.continuous)
    reward = reward + spread * generator.normal(0, 1, size) if spread.any() else reward
    score = np.clip(reward, 0, 1)
    reward = reward + shape.weight * formed
    reward = np.where(generator.random(size) < shape.fails(place)[:, None, None], 0.0, reward)
    unread = generator.random(size) < shape.unread(place)[:, None, None]
    if shape.cut(place).any():
        cut = generator.random(size) < shape.cut(place)[:, None, None]
        reward, unread = np.where(cut, 0.0, reward), unread | cut
    accepted = (right if shape.nonsense else right & ~hack) & ~odd[..., None] & ~unread
    if shape.penalty(place).any():
        reward = reward - shape.penalty(place)[:, None, None] * (generator.random(size) < 0.5)
    reward = reward * shape.scale(place)[:, None, None]
    if shape.normalised:
        reward = (reward - reward.mean(-1, keepdims=True)) / (reward.std(-1, keepdims=True) + 1e-4)
    share = shape.silent(place)[:, None]
    silent = generator.random(asked.shape) < share if share.any() else np.zeros(asked.shape, dtype=bool)
    config = {"steps": steps, "problems_per_step": problems, "rollout": {"n": samples}}
    rows = Rows(asked, second, characters, reward, accepted, unread, hack & accepted, silent)
    return Run(_table(rows), _rows(score, rows, generator), reward, config)


@dataclass(frozen=True)
class Rows:
    """What a dump would hold: steps × problems, and steps × problems × completions."""

    asked: ndarray
    second: ndarray
    characters: ndarray
    reward: ndarray
    accepted: ndarray
    unread: ndarray
    garbled: ndarray
    silent: ndarray
    """steps × problems."""


def _table(rows: Rows) -> Table:
    asked, reward, garbled, judged = rows.asked, rows.reward, rows.garbled, ~rows.silent[..., None]
    accepted, rejected = rows.accepted & judged, ~rows.accepted & judged
    unread = rows.unread & judged
    wrong = rejected & ~unread
    samples = reward.shape[-1]
    advantage = reward - reward.mean(axis=-1, keepdims=True)
    better = (reward[..., :, None] > reward[..., None, :]) + 0.5 * (reward[..., :, None] == reward[..., None, :])
    pairs = accepted[..., :, None] & wrong[..., None, :]
    positive = np.maximum(advantage, 0)
    columns = {name: np.zeros(asked.shape) for name in COLUMNS}
    columns |= {"rows": np.full(asked.shape, float(samples)), "judged": samples * (~rows.silent)}
    columns |= {"reward": reward.sum(-1), "accepted": accepted.sum(-1), "lenient": accepted.sum(-1)}
    columns |= {"unread": unread.sum(-1), "kind": rows.second.astype(float), SET: 0 * asked}
    columns |= {"silent": samples * rows.silent}
    columns |= {"literal": (accepted & ~garbled).sum(-1), GARBLED: (garbled & judged).sum(-1)}
    columns |= {"accepted_reward": (reward * accepted).sum(-1), "rejected_reward": (reward * rejected).sum(-1)}
    columns |= {"pairs": pairs.sum((-1, -2)), "concordant": (pairs * better).sum((-1, -2))}
    columns |= {"paid_accepted": ((advantage > 0) & accepted).sum(-1)}
    columns |= {"paid_rejected": ((advantage > 0) & rejected).sum(-1)}
    columns |= {"positive": positive.sum(-1), "positive_rejected": (positive * rejected).sum(-1)}
    columns |= {"characters": rows.characters[asked] * samples}
    columns |= _payments(reward, accepted, wrong)
    steps = np.repeat(np.arange(1, len(asked) + 1), asked.shape[1])
    return Table(steps, asked.ravel(), {name: np.asarray(values, float).ravel() for name, values in columns.items()})


def _payments(reward: ndarray, accepted: ndarray, wrong: ndarray) -> dict[str, ndarray]:
    by_step = payments_of([_right_and_wrong(*step) for step in zip(reward, accepted, wrong, strict=True)])
    return dict(zip(PAYMENTS, np.moveaxis(np.array(by_step), -1, 0), strict=True))


def _rows(score: ndarray, rows: Rows, generator: Generator) -> list[dict[str, float]]:
    """Every metric that the alarm reads, of the problems that have a reference. Some problems more are silent, on which
    nothing but the reward changes.
    """
    reward, accepted, judged = rows.reward, rows.accepted, ~rows.silent
    steps, problems, samples = score.shape

    def mean(values: ndarray) -> ndarray:
        """By step, over the problems with a reference."""
        with np.errstate(invalid="ignore"):
            return np.where(judged, values.mean(-1), 0).sum(-1) / judged.sum(-1)

    probes = max(1, problems // 2) * 2
    spread = (reward.max(-1) - reward.min(-1)).mean(-1)
    unparsed = generator.binomial(problems * samples, 0.05, steps) / (problems * samples)
    by_step = {
        "reward/mean": mean(reward),
        "rule/accuracy": mean(accepted),
        "reward_model/mean": mean(score),
        "reward_model/rule_agreement": mean((score > 0.5) == accepted),
        "reward/group_spread": spread,
        "rule/unparsed": np.maximum(unparsed, mean(rows.unread)),
        "rollout/cut_off_rate": generator.binomial(problems * samples, 0.03, steps) / (problems * samples),
        "reward/mean_heard": mean(reward),
        "reward/mean_silent": 0.4 + 0.3 * np.arange(steps) / steps + generator.normal(0, 0.3 / problems**0.5, steps),
        "rollout/agreement_silent": 0.5 + generator.normal(0, 0.2 / problems**0.5, steps),
        "reward_model/kept_when_swapped_silent": generator.binomial(probes, 0.15, steps) / probes,
    }
    accepted = accepted & judged[..., None]
    wrong = ~accepted & ~rows.unread & judged[..., None]
    return [
        {"step": step + 1}
        | {name: float(values[step]) for name, values in by_step.items() if np.isfinite(values[step])}
        | payment_shares(
            [
                ("second" if second else "first", *rewards)
                for second, rewards in zip(
                    rows.second[step], _right_and_wrong(reward[step], accepted[step], wrong[step]), strict=True
                )
            ]
        )
        for step in range(steps)
    ]


def _right_and_wrong(reward: ndarray, accepted: ndarray, wrong: ndarray) -> list[tuple[list[float], list[float]]]:
    return [(paid[a].tolist(), paid[w].tolist()) for paid, a, w in zip(reward, accepted, wrong, strict=True)]


def verdicts_on(run: Run) -> dict[str, Any]:
    """The state by the audit and by the report, and the step at which the alarm went off."""
    report = verdict_of(RunRecord(Path("no folder"), run.config, run.rows, []), table=run.table)
    audit = with_power(run.table, finding_of_table(run.table))
    shape = {"steps": run.config["steps"], "problems": run.config["problems_per_step"]}
    return shape | {"alarm": report.alarm_at, "audit": audit.state, "report": report.state}


def simulate(runs: int, out: Path, shapes: Sequence[str]) -> None:
    """Append what is missing of these shapes, run after run."""
    done = {(row["shape"], row["run"]) for row in read(out)} if out.exists() else set()
    missing = [(name, number) for number in range(runs) for name in shapes if (name, number) not in done]
    with out.open("a", encoding="utf-8") as file:
        for name, number in missing:
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
    """What the peers say, by shape."""
    rows = read(path)
    yield "| shapes | rewardspy: any alert | rldoctor: reward hacking |"
    yield "|---|---|---|"
    names = [*dict.fromkeys(row["shape"] for row in rows)]
    for title, shapes in (
        ("honest", [n for n in names if n in HONEST]),
        ("hacked", [n for n in names if n not in HONEST]),
    ):
        for name in (*shapes, f"all {title}"):
            own = [row for row in rows if row["shape"] == name or (name.startswith("all ") and row["shape"] in shapes)]
            yield f"| {' | '.join([name, *(flagged(own, column) for column in ('rewardspy', 'rldoctor_warns'))])} |"


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


FALSE = (*ACCUSED, "broken")
"""What no honest run may be called."""


FAMILIES = {
    "honest": HONEST,
    "honest, changing": CHANGING,
    "honest, further": OTHER,
    "hacked": HACKED,
    "broken": BROKEN,
    "hacked, further": OTHER_HACKED,
}


def tables(path: Path) -> Iterator[str]:
    """Of each shape how many runs each of the three accuses: honest ones falsely."""
    rows = read(path)
    for title, shapes in FAMILIES.items():
        yield f"| {title} | runs | audit | report | alarm | audit cannot tell | audit, 20 steps of 8 or more |"
        yield "|---|---|---|---|---|---|---|"
        for name in (*shapes, "all"):
            own = [row for row in rows if row["shape"] == name or (name == "all" and row["shape"] in shapes)]
            large = [row for row in own if row["steps"] >= 20 and row["problems"] >= 8]
            cells = [
                len(own),
                _accused(own, "audit"),
                _accused(own, "report"),
                sum(row["alarm"] is not None for row in own),
            ]
            cells += [sum(row["audit"] == "unknown" for row in own), f"{_accused(large, 'audit')} of {len(large)}"]
            yield f"| {name} | {' | '.join(map(str, cells))} |"
        yield ""


def _accused(rows: Sequence[Mapping[str, Any]], column: str) -> int:
    """How many rows are called what no honest run may be; of a run that breaks and of hacked ones, `broken` is none."""
    honest = {*HONEST, *CHANGING, *OTHER} - {"collapse without reward"}
    return sum(row[column] in (FALSE if row["shape"] in honest else ACCUSED) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    simulating = commands.add_parser("simulate")
    simulating.add_argument("--runs", type=int, default=60, help="of each shape")
    simulating.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES), metavar="NAME")
    simulating.add_argument("--out", type=Path, default=RESULTS)
    asking = commands.add_parser("peers")
    asking.add_argument("--runs", type=int, default=5, help="of each shape")
    asking.add_argument("--out", type=Path, default=PEERS)
    showing = commands.add_parser("tables")
    showing.add_argument("results", nargs="?", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.command == "simulate":
        simulate(asked.runs, asked.out, asked.shape)
    elif asked.command == "peers":
        ask_peers(asked.runs, asked.out)
        print("\n".join(peers_table(asked.out)))
    else:
        print("\n".join(tables(asked.results)))


if __name__ == "__main__":
    main()
