"""Is Cooper better than a rule that judges half of the problems? Six reward models, planned in headline.md.

    python -m benchmarks.real_model.headline OUT --bases SMOLLM2 QWEN --problems DATA --labelled labelled.parquet
    python -m benchmarks.real_model.headline OUT --bases … --pilot          # the KL coefficient of `rule_kl`, before
    python -m benchmarks.real_model.headline OUT --bases … --further        # two arms more on the same models
    python -m benchmarks.real_model.headline OUT --bases … --rivals         # three that learn in other ways, likewise
    python -m benchmarks.real_model.headline OUT --save benchmarks/results/headline.json              # the tables alone

Every command continues after an interruption and leaves out what is finished. Units come one after the other, each with
its models and all of its arms, so that what is there at any time is whole units and a part of one.
"""

import argparse
import json
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from benchmarks.real_model import data
from benchmarks.real_model.decides import GOLD, Result, golds_by_unit, make_policy, make_reward_model, results
from benchmarks.real_model.experiment import run, train_once, write
from benchmarks.real_model.operations import JUDGED, interval, judging, table
from benchmarks.verdicts.split_labelled import draw_evenly, fitting_rows

from cooper_audit.run.run_record import read_record
from cooper_base.data.labelled import problem_folds
from cooper_base.files.durable import write_text

CONFIG = Path(__file__).with_name("headline.yaml")
KL = "algorithm.kl.coefficient"
KL_TRIED = ("0.01", "0.05", "0.25", "1.0")
"""Coefficients of `rule_kl` in the pilot. The default, which all other arms have, is 0.001."""
PILOT_STEPS = 20
KL_CHOSEN = "0.25"
ARMS: Mapping[str, Sequence[str]] = {
    "rule": ["kind=rule"],
    "rule_kl": ["kind=rule", f"{KL}={KL_CHOSEN}"],
    "static": ["kind=static"],
    "cooper": ["kind=cooper"],
}
"""Every arm is its kind with the kind's defaults, but for the KL term of `rule_kl`."""
FURTHER: Mapping[str, Sequence[str]] = {
    "rule_then_static": ["kind=static", "rewards=[{kind: rule_then_model}]"],
    "static_kl": ["kind=static"],
}
"""Two arms that the first plan lacks: see headline.md. The KL coefficient of `static_kl` is that of its own pilot."""
IMPLICIT_ENGINE, IMPLICIT_INPUT = "engine={kind: implicit}", "chat_with_reference"
"""What tells an arm that starts at its own copy of the policy, and what that copy was trained to read."""
IMPLICIT = (IMPLICIT_ENGINE, "rewards=[{kind: outcome}]", f"reward_model.input={IMPLICIT_INPUT}")
PRIME = (*IMPLICIT, "algorithm.advantages={kind: prime, form: verl}")
RIVALS: Mapping[str, Sequence[str]] = {
    "iterated_5": [
        *("kind=cooper", "cooptimization.before_policy=null"),
        "cooptimization.pairs=[{kind: on_policy}, {kind: iterated, every: 5, batch: 16}]",
    ],
    "prime": [
        *("kind=cooper_model", *PRIME),
        "cooptimization={pairs: [{kind: outcomes}], before_policy: 0, epochs: 1, replay: {pairs_per_step: 0}}",
    ],
    "prime_frozen": ["kind=static", "reward_model.learns=false", *PRIME],
}
"""Other ways to learn a reward beside the policy (docs/co-training.md), with the learning rates of all arms here."""
RULES = ("rule", "rule_kl")
BASES: Mapping[str, Sequence[str]] = {"smollm2": (), "qwen": ("reward_model.frozen_layers=12",)}
"""Base models of the reward models, and what a run with one sets. The policy's base is the first. Of the second, half
of the layers are trained, as when its head was made: with all, a run needs 14 GB."""


@dataclass(frozen=True)
class Unit:
    """What is drawn independently of the other units: warm-up rows and start policy, labelled rows and reward model,
    the split of the problems, the two operations that the rule judges, and the seed of all else."""

    seed: int
    base: str
    judged: tuple[str, str]

    @property
    def operations(self) -> list[str]:
        """As in the problems' files."""
        return [JUDGED[name] for name in self.judged]


UNITS = (
    Unit(20, "smollm2", ("additions", "products")),
    Unit(21, "qwen", ("subtractions", "quotients")),
    Unit(22, "smollm2", ("additions", "subtractions")),
    Unit(23, "qwen", ("products", "quotients")),
    Unit(24, "smollm2", ("subtractions", "products")),
    Unit(25, "qwen", ("additions", "quotients")),
)
PILOT = Unit(19, "smollm2", ("additions", "quotients"))
"""For trying the script and choosing `rule_kl`. It is not reported."""
DRAWS = (*UNITS, PILOT)
"""Each has its own part of the warm-up rows and of the labelled problems. The last labelled part tests all of them."""
TEST = 256
LONGEST = 200
"""Characters of the longest question of a problem in the runs."""
LABELLED = 700
"""Completions that a reward model learns from, as in decides.md: so few that it is right about seven in ten."""
LABELLED_TOKENS = 320
"""Most tokens of a labelled row."""
WARM_UP_EPOCHS = 1.7
"""Passes over a unit's warm-up rows: the 24 updates of decides.md."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="holds data/, models/ and runs/")
    parser.add_argument("--bases", nargs=2, type=Path, metavar=tuple(BASES), help="the folders of the base models")
    parser.add_argument("--problems", type=Path, help="the folder of MAWPS, SVAMP and ASDiv")
    parser.add_argument("--labelled", type=Path, help="labelled completions, for the reward models")
    parser.add_argument("--units", nargs="*", type=int, default=[unit.seed for unit in UNITS])
    parser.add_argument("--pilot", action="store_true", help="the KL coefficients with the rule alone, on another unit")
    parser.add_argument("--further", action="store_true", help="the two further arms, and the pilot of the second")
    parser.add_argument("--rivals", action="store_true", help="arms that learn a reward in other ways")
    parser.add_argument(
        "--save", type=Path, help="gold and alarm of the finished runs, beside those of units in this file"
    )
    given = parser.parse_args()
    if given.bases is not None:
        bases = dict(zip(BASES, given.bases, strict=True))
        make_data(given.out, given.problems, given.labelled, bases["smollm2"])
        if given.pilot:
            make_start(given.out, PILOT, bases)
            pilot(given.out, "pilot", "rule")
        else:
            arms = further_arms(given.out, bases) if given.further else RIVALS if given.rivals else ARMS
            for unit in (unit for unit in UNITS if unit.seed in given.units):
                make_start(given.out, unit, bases)
                make_judge(given.out, unit, bases)
                for arm, settings in arms.items():
                    train(given.out, arm, settings, unit)
    runs = [read_record(path) for path in sorted((given.out / "runs").glob("*-*"))]
    table(runs, GOLD)
    found = reported(results(runs, [*ARMS, *FURTHER, *RIVALS]))
    if given.save is not None:
        found = beside(found, given.save)
    compare(found)
    beside_cooper(found)
    if given.save is not None:
        write_text(given.save, "[\n" + ",\n".join(map(json.dumps, found)) + "\n]\n")


def pilot(out: Path, name: str, kind: str) -> None:
    """The pilot's runs of one kind, with each KL coefficient."""
    for coefficient in KL_TRIED:
        length = [f"steps={PILOT_STEPS}", f"evaluation.every={PILOT_STEPS}"]
        train(out, f"{name}_{coefficient}", [f"kind={kind}", f"{KL}={coefficient}", *length], PILOT)


def further_arms(out: Path, bases: Mapping[str, Path]) -> dict[str, list[str]]:
    """The further arms, with the coefficient of `static_kl` whose pilot ends with the highest gold."""
    make_start(out, PILOT, bases)
    make_judge(out, PILOT, bases)
    pilot(out, "pilot_static", "static")
    ends = {}
    for coefficient in KL_TRIED:
        record = read_record(out / "runs" / f"pilot_static_{coefficient}-{PILOT.seed}")
        ends[coefficient] = record.series("test/gold_avg")[-1][1]
    chosen = max(ends, key=lambda coefficient: ends[coefficient])
    print(f"static_kl: {chosen} of {ends}")
    return {name: [*settings] for name, settings in FURTHER.items()} | {"static_kl": ["kind=static", f"{KL}={chosen}"]}


def make_data(out: Path, problems: Path, labelled: Path, base: Path) -> None:
    """Each unit's files in `data`/SEED, unless they are there, and `data/labelled_test.jsonl`, whose problems no reward
    model learns from. No question is in a warm-up and in the problems of a run."""
    if (ready := out / "data/labelled_test.jsonl").exists():
        return
    taught, asked = one_operation(problems)
    fitting = fitting_rows(labelled, str(base), LABELLED_TOKENS)
    folds = problem_folds([row["question"] for row in fitting], len(DRAWS) + 1, 0)
    for place, unit in enumerate(DRAWS):
        folder = out / "data" / str(unit.seed)
        folder.mkdir(parents=True, exist_ok=True)
        random = Random(unit.seed)
        drawn = random.sample(asked, len(asked))
        inside = [row for row, fold in zip(fitting, folds, strict=True) if fold == place]
        write(folder / "warm_up.jsonl", taught[place :: len(DRAWS)])
        write(folder / "labelled.jsonl", draw_evenly(inside, LABELLED, random))
        write(folder / "test.jsonl", drawn[:TEST])
        write(folder / "train.jsonl", drawn[TEST:])
    write(ready, [row for row, fold in zip(fitting, folds, strict=True) if fold == len(DRAWS)])


def one_operation(problems: Path) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """Word problems that one operation on two numbers solves, no question twice: rows of the warm-up (MAWPS and SVAMP,
    with the equation), in an order that is drawn, and problems of the runs (ASDiv, with the operation). No question of
    MAWPS or SVAMP is among the latter: earlier experiments had them."""
    mawps = [
        {"question": row["input"], "answer": data.number(row["target"])} for row in data.rows(problems / "mawps.jsonl")
    ]
    svamp = json.loads((problems / "svamp.json").read_text(encoding="utf-8"))
    shown = [_equation(row) for row in mawps] + [_solved(row) for row in svamp]
    seen: set[str] = set()
    taught = [row for row in data.unseen(shown, seen) if row["completion"]]
    Random(0).shuffle(taught)
    asked = [row for row in map(_asked, data.rows(problems / "asdiv.jsonl")) if row and len(row["question"]) <= LONGEST]
    return taught, data.unseen(asked, seen)


def _asked(row: Mapping[str, str]) -> dict[str, str] | None:
    """A row of ASDiv as a problem, if its formula is one operation on two numbers and its answer the whole result."""
    formula = re.fullmatch(rf"\s*{data.NUMBER}\s*([-+*/])\s*{data.NUMBER}\s*=\s*(\d+)\s*", row["formula"])
    stated = re.match(r"(\d+)(?![\d.,/:])", row["answer"])
    if not formula or not stated or formula[2] != stated[1]:
        return None
    return {"question": f"{row['body']} {row['question']}", "answer": stated[1], "operation": formula[1]}


def _equation(row: dict[str, str]) -> dict[str, str]:
    """A row of MAWPS with its equation, the larger number first where the order matters. The completion is empty if one
    operation on the question's two numbers does not give the answer."""
    solved, numbers = "", re.findall(data.NUMBER, row["question"])
    if data.is_easy(row, data.LONGEST) and (operation := data.operation(row)) != "other":
        if operation in "-/":
            numbers.sort(key=float, reverse=True)
        solved = data.solved(f" {operation} ".join(numbers), row["answer"])
    return {"question": row["question"], "completion": solved}


def _solved(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of SVAMP with its equation. The completion is empty if that is not one operation on two numbers."""
    solved, answer = "", data.number(row["Answer"])
    equation = re.fullmatch(rf"\( ({data.NUMBER}) ([-+*/]) ({data.NUMBER}) \)", row["Equation"])
    if equation and answer.isdecimal():
        one, two = (data.number(float(equation[place])) for place in (1, 3))
        solved = data.solved(f"{one} {equation[2]} {two}", answer)
    return {"question": f"{row['Body'].rstrip(' .')}. {row['Question']}", "completion": solved}


def make_start(out: Path, unit: Unit, bases: Mapping[str, Path]) -> None:
    """The unit's start policy."""
    rows, policy = out / f"data/{unit.seed}/warm_up.jsonl", out / f"models/policy-{unit.seed}"
    make_policy(bases["smollm2"], rows, policy, WARM_UP_EPOCHS)


def make_judge(out: Path, unit: Unit, bases: Mapping[str, Path]) -> None:
    """The unit's reward model."""
    rows, model = out / f"data/{unit.seed}/labelled.jsonl", out / f"models/reward_model-{unit.seed}"
    make_reward_model(bases[unit.base], rows, model, unit.seed)


def train(out: Path, name: str, arm: Sequence[str], unit: Unit) -> None:
    """Start or continue one run. Of a finished one the models in `final` are kept, and no checkpoint."""
    judge, layers = out / f"models/reward_model-{unit.seed}", BASES[unit.base]
    if IMPLICIT_ENGINE in arm:  # its own copy of the policy, of which all layers learn
        judge, layers = out / f"models/implicit-{unit.seed}", ()
        if not judge.exists():
            given = [f"{out}/models/policy-{unit.seed}", f"{out}/data/{unit.seed}/labelled.jsonl", str(judge)]
            run("-m", "benchmarks.real_model.implicit", *given, str(unit.seed))
    models = [f"policy.model={out}/models/policy-{unit.seed}", f"reward_model.model={judge}"]
    judged = judging(out / "data" / str(unit.seed), unit.operations)
    train_once(out, f"{name}-{unit.seed}", CONFIG, [*arm, *judged, *models, *layers, f"seed={unit.seed}"])
    shutil.rmtree(out / "runs" / f"{name}-{unit.seed}" / "checkpoints", ignore_errors=True)


def reported(found: Sequence[Result]) -> list[Result]:
    """The runs of the planned units, with what each unit is."""
    units = {unit.seed: {"base": unit.base, "judged": list(unit.judged)} for unit in UNITS}
    return [one | units[one["unit"]] for one in found if one["unit"] in units]


def beside(found: Sequence[Result], path: Path) -> list[Result]:
    """The runs, and those of the file's other units, which another machine has finished."""
    saved = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    here = {one["unit"] for one in found}
    return sorted(
        [*found, *(one for one in saved if one["unit"] not in here)], key=lambda one: (one["unit"], one["arm"])
    )


def compare(found: Sequence[Result]) -> None:
    """Prints, over units with all arms, the statistics of headline.md: gold at the start and the end, and Cooper's gain
    over the start, over each arm and over the better rule, each with its 95 % interval by Student's t."""
    arms_of = {unit.seed: {one["arm"] for one in found if one["unit"] == unit.seed} for unit in UNITS}
    whole = [seed for seed, arms in arms_of.items() if arms >= set(ARMS)]
    if not whole:
        return
    rows = [one for one in found if one["unit"] in whole]
    first, last = golds_by_unit(rows, ARMS, 0), golds_by_unit(rows, ARMS)
    better = {seed: max(RULES, key=lambda arm: last[arm, "all"][seed]) for seed in whole}
    overall = max(RULES, key=lambda arm: mean(last[arm, "all"].values()))
    print(f"\n{len(whole)} whole units: {whole}; better rule: {overall}, by unit: {better}")
    for part in GOLD:
        ours = last["cooper", part]
        others = {"start": first["cooper", part]} | {arm: last[arm, part] for arm in ARMS if arm != "cooper"}
        others[f"better rule ({overall})"] = last[overall, part]
        others["better rule of each unit"] = {seed: last[better[seed], part][seed] for seed in whole}
        for name, golds in (*others.items(), ("cooper", ours)):
            _print(f"{name}, {part}", golds, whole)
        for name, golds in others.items():
            _print(f"cooper - {name}, {part}", {seed: ours[seed] - golds[seed] for seed in whole}, whole)


def beside_cooper(found: Sequence[Result]) -> None:
    """Prints gold at the end of each arm that the first plan lacks, and Cooper's less it, over the units that have
    both."""
    last = golds_by_unit(found, [*ARMS, *FURTHER, *RIVALS])
    for arm in (*FURTHER, *RIVALS):
        for part in GOLD:
            ours, theirs = last["cooper", part], last[arm, part]
            if both := sorted(ours.keys() & theirs.keys()):
                _print(f"{arm}, {part}", {seed: theirs[seed] for seed in both}, both)
                _print(f"cooper - {arm}, {part}", {seed: ours[seed] - theirs[seed] for seed in both}, both)


def _print(name: str, values: Mapping[int, float], whole: Collection[int]) -> None:
    """Values by unit with their interval, and the mean of each base model's units."""
    bases = {base: [values[unit.seed] for unit in UNITS if unit.seed in whole and unit.base == base] for base in BASES}
    by_base = ", ".join(f"{base} {mean(found):+.3f}" for base, found in bases.items() if found)
    print(f"{name}: {interval(list(values.values()))}; {by_base}")


if __name__ == "__main__":
    main()
