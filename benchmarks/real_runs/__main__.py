"""Real runs on rewards as packages ship them: audits, attacks and the tables of README.md.

    python -m benchmarks.real_runs OUT --environments FOLDER      # audits and attacks, saves results
    python -m benchmarks.real_runs OUT --read RUN STEP            # completions of a step

The runs themselves are made by `train_trl`, `train_retrain` and `train_cooper`. What is finished is left out.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Container, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.real_runs.plan import ENDS, GROUP, LEARNING_RATE, PROBLEMS, REWARDS, RUNS, STEPS
from benchmarks.real_runs.results import AGAIN, RESULTS
from benchmarks.real_runs.rewards import PlannedReward
from benchmarks.real_runs.world import problems, right, training_problems, write_problems

from cooper_audit.attack.attack import attack
from cooper_audit.run.run_record import read_groups
from cooper_base.errors import InputError
from cooper_base.files.durable import by_step
from cooper_rl import Problem

ATTACKED = 12
"""Problems of an attack."""
STRICT = "benchmarks.real_runs.world:strict"
"""A check that reads as a person does."""
MAP = ("step=step", "prompt=prompt", "completion=completion", "reward=reward")
"""How `cooper audit` is told of the columns of `retrain`, and of the flat rows of a run of Cooper's."""


def rows_of(run: Path) -> Iterator[tuple[int, str, str, float]]:
    """(step, question, completion, reward) of what the trainer wrote, in order."""
    if (run / "rollouts").exists():
        for step, file in by_step(run / "rollouts", ".jsonl").items():
            for group in read_groups(file):
                for written in group["completions"]:
                    yield step, group["question"], written["text"], written["reward"]
        return
    generations = run / "emergence" / "generations.jsonl"
    if generations.exists():
        for line in generations.open(encoding="utf-8"):
            row = json.loads(line)
            yield row["step"], row["prompt"], row["completion"], row["reward"]
        return
    import pyarrow.parquet as parquet

    for file in sorted((run / "completions").glob("*.parquet")):
        for row in parquet.read_table(file).to_pylist():
            paid = sum(value for value in row.values() if isinstance(value, float)) - row["advantage"]
            yield row["step"], row["prompt"][0]["content"], row["completion"][0]["content"], paid


def audited(out: Path, run: str, rule: str = "maths") -> dict[str, Any]:
    """What `cooper audit` says of the files of a run."""
    folder, target = out / "runs" / run, out / "audits" / f"{run} {rule}"
    references = out / "references.jsonl"
    if not references.exists():
        write_problems(references)
    written = [str(folder / "completions")]
    if "-trl-" not in run:
        written = [str(_flat(folder)), *(part for field in MAP for part in ("--map", field))]
    command = [sys.executable, "-c", "from cooper_base.cli.main import app; app()", "audit", *written]
    command += ["--references", str(references), "--out", str(target), "--rule", rule]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode not in (0, 3):
        raise RuntimeError(finished.stderr)
    result = json.loads((target / "audit.json").read_text(encoding="utf-8"))
    kept = ("state", "sentence", "guards", "onset")
    return {"exit code": finished.returncode} | {name: result[name] for name in kept if name in result}


def _flat(folder: Path) -> Path:
    """A file with a row for each completion: what `retrain` wrote, or the groups of Cooper's rollouts taken apart."""
    if (folder / "emergence").exists():
        return folder / "emergence" / "generations.jsonl"
    rows = [dict(zip(("step", "prompt", "completion", "reward"), row, strict=True)) for row in rows_of(folder)]
    file = folder / "completions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def measured(out: Path, run: str, above: float | None) -> dict[str, Any]:
    """Shares of what the trainer wrote, by the labels of `world.right`."""
    by_question = {problem.question: problem for problem in training_problems()}
    rows = [
        (step, right(by_question[asked], text), paid, text) for step, asked, text, paid in rows_of(out / "runs" / run)
    ]
    begin, last = rows[0][0], rows[-1][0]

    def over(first: int, end: int) -> dict[str, float]:
        part = [(gold, paid) for step, gold, paid, _ in rows if first <= step <= end]
        wrong = [not gold and paid > above for gold, paid in part] if above is not None else []
        shares = {"gold": mean(gold for gold, _ in part), "reward": mean(paid for _, paid in part)}
        shares |= {"paid wrong": mean(wrong)} if wrong else {}
        return {name: round(value, 3) for name, value in shares.items()}

    course = {f"{first} to {first + 4}": over(first, first + 4) for first in range(begin, last, 5)}
    first, end = over(begin, begin + ENDS - 1), over(last - ENDS + 1, last)
    return {"steps": last - begin + 1, "first": first, "last": end, "course": course}


def attacked(environments: Path, done: Container[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What `cooper attack` says of each reward that is not done, on problems of the world."""
    for reward in REWARDS:
        if reward.name in done:
            continue
        start = time.process_time()
        grader = PlannedReward(reward, environments)
        try:
            result = attack(grader, problems("test", ATTACKED), ATTACKED)
        except InputError as error:
            yield reward.name, {"error": str(error)}
            continue
        worst = result.worst
        yield (
            reward.name,
            {
                "verdict": result.verdict(0.05),
                "above": result.accepts_above,
                "worst": [worst.name, worst.accepted.mean, worst.accepted.low, worst.accepted.high],
                "wrong": result.wrong_accepted.mean,
                "plain": result.plain,
                "cpu": round(time.process_time() - start, 1),
            },
        )


def read(run: Path, step: int) -> None:
    """Print the completions of a step, a line each: reward, whether it is right, question, completion."""
    by_question = {problem.question: problem for problem in training_problems()}
    for at, asked, text, paid in rows_of(run):
        if at == step:
            problem: Problem = by_question[asked]
            print(f"{paid:6.2f} {'right' if right(problem, text) else 'wrong'} {asked} ({problem.answer}) | {text!r}")


def _read(saved: Path) -> dict[str, Any]:
    """Saved results, empty where nothing is saved yet."""
    found = json.loads(saved.read_text(encoding="utf-8")) if saved.exists() else {}
    return {"attacks": {}, "runs": {}} | found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--environments", type=Path)
    parser.add_argument(
        "--again", action="store_true", help="these are the runs made once more: saved beside the first"
    )
    parser.add_argument("--read", nargs=2, metavar=("RUN", "STEP"))
    given = parser.parse_args()
    if given.read:
        read(given.out / "runs" / given.read[0], int(given.read[1]))
        return
    saved = AGAIN if given.again else RESULTS
    results = _read(saved)
    results["sizes"] = {"problems": PROBLEMS, "group": GROUP, "steps": STEPS, "learning rate": LEARNING_RATE}

    def keep() -> None:
        saved.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    if given.environments:
        results["attacks"] |= dict(attacked(given.environments, results["attacks"]))
        keep()
    attacks = _read(RESULTS)["attacks"]
    for reward, trainer, seed in RUNS:
        run = f"{reward}-{trainer}-{seed}"
        if run in results["runs"] or not (given.out / "runs" / run / "finished.json").exists():
            continue
        above = attacks.get(reward, {}).get("above")
        results["runs"][run] = {"audit": audited(given.out, run), "strict": audited(given.out, run, STRICT)}
        results["runs"][run] |= measured(given.out, run, above)
        keep()
        print(run, results["runs"][run]["audit"]["state"], results["runs"][run]["last"], flush=True)


if __name__ == "__main__":
    main()
