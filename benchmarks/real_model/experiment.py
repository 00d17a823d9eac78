"""An experiment with a small language model, all of it in one folder: start policy, reward model, arms.

What is finished is kept, and a run goes on after its newest checkpoint: the same command continues after an
interruption. Stages: `warm_up.jsonl`, `models/policy` (the start), `samples.jsonl` (its completions), `labelled.jsonl`
(with gold), `models/reward_model` or `models/yes_no`, then `runs/ARM-SEED`, each with the file `finished` at its end.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

import yaml
from benchmarks.real_model.arms import WINDOW, accuracy, ends, first_alarm

from cooper_audit.report.load_run import curves_figure
from cooper_audit.run.run_record import RunRecord, read_record
from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.arms import ARMS
from cooper_verify.problems.config import ProblemsConfig
from cooper_verify.problems.loading import read_problems

COOPER = ("-c", "from cooper_base.cli.main import app; app()")
COMPLETIONS = 4
"""Completions of a labelled problem. Equal ones count once."""
REWARD_MODEL = {
    "robustness": 0,
    "learning_rate": 1e-4,
    "epochs": 1,
    "batch_size": 16,
    "evaluate_every": 20,
    "frozen_layers": 12,
    "max_input_tokens": 256,
    "tokens_per_microbatch": 2048,
    "threads": 1,
}
YES_NO = "reward_model.kind=yes_no"
"""The setting of an arm whose reward model is asked for yes or no. It learns from the same labels as the other."""
NEAR_THE_START = 10
"""Steps of which `--rows` writes the completions."""
SETS = ("problems", "test_problems")
GOLD = {"": "all", "_heard": "heard", "_silent": "silent"}
"""Ends of a metric's name, for all test problems and for those that the rule judges or not."""


@dataclass(frozen=True)
class Experiment:
    """What one experiment is. Its arms differ in the settings that they add to `config`."""

    config: Path
    arms: Mapping[str, Sequence[str]]
    gold: Callable[[Problem, str], bool]
    part: Callable[[str], str]
    """The name under which the labels of a problem, given by its id, are counted."""
    warm_up: int
    """Problems of the warm-up. Those of the labelled completions follow them, and then the runs' own (`skip`)."""
    labelled: int
    shown: Callable[[Problem], str | None] = lambda problem: problem.solution
    """What the warm-up shows after the question."""
    unlabelled: Sequence[str] = ()
    """Parts of which the reward model's training has no label."""
    data: Mapping[str, Callable[[], Sequence[Mapping[str, Any]]]] = field(default_factory=dict)
    """Rows of the files that `config` has as sources. They are written into the experiment's folder."""

    def settings(self, out: Path) -> dict[str, Any]:
        """Those of `config`, with the sources that are in the folder."""
        settings = yaml.safe_load(self.config.read_text(encoding="utf-8"))
        for name in SETS:
            if settings[name]["source"] in self.data:
                settings[name]["source"] = str(out / settings[name]["source"])
        return settings

    def drawn(self, out: Path, skip: int, limit: int) -> list[Problem]:
        """Training problems `skip` to `skip + limit`, of which the runs have later ones."""
        settings = self.settings(out)["problems"] | {"skip": skip, "limit": limit}
        return read_problems(ProblemsConfig.model_validate(settings)).problems

    def prepare(self, out: Path, model: Path, arms: Sequence[str]) -> None:
        """The start policy, and the arms' reward models from its labelled completions."""
        rows, policy, samples = out / "warm_up.jsonl", out / "models/policy", out / "samples.jsonl"
        labelled = out / "labelled.jsonl"
        for name, make in self.data.items():
            if not (out / name).exists():
                write(out / name, make())
        if not rows.exists():
            problems = self.drawn(out, 0, self.warm_up)
            write(rows, [{"question": one.question, "completion": f" {self.shown(one)}"} for one in problems])
        if not policy.exists():
            half = policy.with_name("policy.partial")
            run("-m", "benchmarks.real_model.warm_up", str(model), str(rows), str(half))
            half.rename(policy)
        if not samples.exists():
            run(*COOPER, "verifyrm", "collect", str(self._collection(out, policy, samples)))
        if not labelled.exists():
            write(labelled, self._labels(out, samples))
        for name in sorted({self.reward_model(arm) for arm in arms}):
            if not (folder := out / "models" / name).exists():
                given = REWARD_MODEL | ({"kind": "yes_no"} if name == "yes_no" else {})
                settings = [f"{key}={value}" for key, value in given.items()]
                base = ["--model", str(model), "--out", str(folder)]
                run(*COOPER, "verifyrm", "train", str(labelled), *base, *settings)

    def reward_model(self, arm: str) -> str:
        """The folder of the arm's reward model, below `models`."""
        return "yes_no" if YES_NO in self.arms[arm] else "reward_model"

    def train(self, out: Path, arm: str, seed: int) -> None:
        """Start or continue one run."""
        settings = self.settings(out)
        folders = {"policy": "policy", "reward_model": self.reward_model(arm)}
        models = [f"{role}.model={out / 'models' / folder}" for role, folder in folders.items()]
        sources = [f"{name}.source={settings[name]['source']}" for name in SETS]
        train_once(out, f"{arm}-{seed}", self.config, [*self.arms[arm], *models, *sources, f"seed={seed}"])

    def table(self, out: Path, runs: Sequence[RunRecord]) -> None:
        """Gold on test problems: first, best, last with its 95 % interval; and what the run itself saw."""
        tested = self._test_problems(out)
        print(f"\n| run | steps | {' | '.join(f'gold, {GOLD[part]}' for part in tested)} |", end="")
        print(" reward | agreement where heard | alarm | s a step |")
        print("|---" * (6 + len(tested)) + "|")
        for one in runs:
            gold = [accuracy(one, f"test/gold_avg{part}", number) for part, number in tested.items()]
            means = [ends(one, name, WINDOW) for name in ("reward/mean", "reward_model/rule_agreement")]
            seconds = mean(value for _, value in one.series("time/step")) if one.step else 0.0
            cells = [one.directory.name, str(one.step), *gold, *means, first_alarm(one), f"{seconds:.0f}"]
            print(f"| {' | '.join(cells)} |")

    def _collection(self, out: Path, policy: Path, samples: Path) -> Path:
        """The settings of `cooper verifyrm collect`: the start policy's completions, drawn as in a run."""
        given = self.settings(out)
        sampling = {"temperature": 1.0, "top_p": 1.0, "max_tokens": given["rollout"]["max_tokens"]}
        model = {"name": "start", "kind": "local", "model": str(policy), "sampling": sampling}
        problems = given["problems"] | {"name": "tasks", "skip": self.warm_up, "limit": self.labelled}
        path = out / "collect.yaml"
        settings = {"output": str(samples), "n": COMPLETIONS, "threads": 1, "rule": given["rule"]}
        settings |= {"models": [model], "datasets": [problems]}
        path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")  # the order decides the problems
        return path

    def _labels(self, out: Path, samples: Path) -> list[dict[str, Any]]:
        """The completions of all parts but the unlabelled ones, with gold as the label. Prints how many of each."""
        problems = {one.question: one for one in self.drawn(out, self.warm_up, self.labelled)}
        rows, right = [], defaultdict(list)
        for line in samples.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            problem = problems[row["question"]]
            right[part := self.part(problem.id)].append(label := self.gold(problem, row["completion"]))
            if part not in self.unlabelled:
                rows.append(row | {"label": int(label)})
        for part, found in right.items():
            note = ", not in the reward model's training" if part in self.unlabelled else ""
            print(f"{part}: {sum(found)} of {len(found)} different completions of the start are right{note}")
        return rows

    def _test_problems(self, out: Path) -> dict[str, int]:
        """How many test problems there are, by the end of a metric's name."""
        given = self.settings(out)
        found = read_problems(ProblemsConfig.model_validate(given["test_problems"])).problems
        if "only" not in given["rule"]:
            return {"": len(found)}
        ((name, heard),) = given["rule"]["only"].items()
        judged = sum(problem.metadata[name] in heard for problem in found)
        return {"": len(found), "_heard": judged, "_silent": len(found) - judged}


def command(experiment: Experiment, description: str | None, panels: Mapping[str, str]) -> list[RunRecord]:
    """The experiment's command line: stages and arms, the table, the picture. Returns the runs in the folder."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", type=Path, help="a small instruct model, the base of the policy and of its judge")
    parser.add_argument("--arms", nargs="*", choices=experiment.arms, default=[])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--picture", type=Path, help="draw the runs' curves into this file")
    parser.add_argument("--rows", type=Path, help="write labelled completions of near the start, to compare verifiers")
    given = parser.parse_args()
    if given.arms:
        if given.model is None:
            parser.error("--model: name the folder of the model")
        given.out.mkdir(parents=True, exist_ok=True)
        experiment.prepare(given.out, given.model.resolve(), given.arms)
        for seed in given.seeds:
            for arm in given.arms:
                experiment.train(given.out, arm, seed)
    runs = [read_record(path) for path in sorted((given.out / "runs").glob("*-*"))]
    experiment.table(given.out, runs)
    if given.picture is not None:
        draw(runs, panels, given.picture)
    if given.rows is not None:
        write(given.rows, near_the_start(experiment, runs))
    return runs


def draw(runs: Sequence[RunRecord], panels: Mapping[str, str], path: Path) -> None:
    """A panel a metric, a line a run, a colour an arm, which stands once in the legend."""
    arms = [run.directory.name.rsplit("-", 1)[0] for run in runs]
    labels = ["_" if arm in arms[:i] else arm for i, arm in enumerate(arms)]  # Matplotlib leaves "_" out
    labelled = [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]
    of_demo = {name: arm.colour for name, arm in ARMS.items()}
    spare = ["#9c36b5", of_demo["paper"], "#7f7f7f", "#d4a017"]  # as many as an experiment has other arms
    others = dict(zip(sorted(set(arms) - set(of_demo)), spare, strict=False))
    figure = curves_figure(labelled, list(panels), [(of_demo | others)[arm] for arm in arms])
    for axes, title in zip(figure.axes, panels.values(), strict=True):
        axes.set_title(title, fontsize=11, loc="left")
    figure.savefig(path, dpi=150)


def near_the_start(experiment: Experiment, runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The different completions of the first steps of the arm `rule`, labelled by gold, for `verifyrm bench`. Their
    problems are not those of the reward model's training."""
    found = {}
    for one in (one for one in runs if one.directory.name.startswith("rule-")):
        for row in one.rollouts(range(1, NEAR_THE_START + 1)):
            found[row["question"], row["text"]] = {
                "question": row["question"],
                "reference_answer": row["answer"],
                "completion": row["text"],
                "label": int(row["gold"]),
                "category": experiment.part(row["problem"]),
            }
    return list(found.values())


def first_and_last_steps(one: RunRecord) -> tuple[range, range]:
    return range(1, WINDOW + 1), range(max(1, one.step - WINDOW + 1), one.step + 1)


def train_once(out: Path, name: str, config: Path, settings: Sequence[str]) -> None:
    """Start or continue one run in `out`/runs, unless it is finished."""
    folder = out / "runs" / name
    if (folder / "finished").exists():
        return
    places = [f"name={name}", f"output_dir={folder.parent}", "threads=1"]
    resume = ["--resume"] if (folder / "metrics.jsonl").exists() else []
    run(*COOPER, "train", str(config), *settings, *places, *resume)
    (folder / "finished").touch()


def run(*arguments: str) -> None:
    """Run this Python with these arguments. Raises CalledProcessError if it fails."""
    print("$ python", *arguments, flush=True)
    subprocess.run([sys.executable, *arguments], check=True)


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """JSON Lines that are there whole or not at all."""
    half = path.with_suffix(".partial")
    half.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    half.rename(path)
