"""Attacks rewards and graders that packages on the Python index ship, and writes what they accept.

    python benchmarks/public_rewards/attack_them.py --environments FOLDER [--only PACKAGE] [--problems 12]

Each package is installed into a folder of its own, without torch, and each reward is called in a process of its own
with a time limit for an answer. A package or a reward that cannot be had is listed with its error. Results go into
`benchmarks/results/public_rewards.json` after each reward, and the same command goes on there.
"""

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewards import REWARDS

from cooper_audit.attack.attack import AttackResult, attack
from cooper_audit.attack.questions import questions
from cooper_audit.attack.report import example_of
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_verify.grader import Asked, Grader, Opinion
from cooper_verify.graders.written import open_grader

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "public_rewards.json"
SECONDS = 10.0
"""Time limit for one answer."""
MATHS = ("math-verify[antlr4_13_2]", "pylatexenc", "numpy")
PACKAGES: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "reward-doctor": (["reward-doctor"], []),
    "lm-eval": (["lm-eval"], ["math-verify[antlr4_11_0]", "numpy", "scipy"]),
    "skyrl-gym": (["skyrl-gym"], []),
    "verl": (["verl", "mathruler"], [*MATHS, "tqdm"]),
    "opencompass": (["opencompass"], []),
    "mathruler": (["mathruler"], ["sympy", "pylatexenc", "tqdm"]),
    "inspect-ai": ([], ["inspect-ai", "sympy", "antlr4-python3-runtime==4.11.*"]),
    "tinker-cookbook": (["tinker-cookbook"], MATHS),
    "openrlhf": (["openrlhf"], MATHS),
    "eval-protocol": (["eval-protocol"], ["pydantic", "openai", "numpy"]),
    "trl": (["trl"], MATHS),
    "ms-swift": (["ms-swift"], ["math-verify[antlr4_11_0]"]),
    "math-verify": ([], MATHS),
    "atroposlib": (["atroposlib"], [*MATHS, "pyyaml"]),
    "evalscope": (["evalscope"], [*MATHS, "pydantic", "word2number"]),
    "reasoning-gym": ([], ["reasoning-gym"]),
}
"""What is installed for each package: without what it needs, and with it."""
NOT_TRIED = {
    "verl:math_verify": "its worker processes import verl, which needs torch",
    "verl:prime_math": "imports torch",
    "nemo-gym": "its verifiers are servers",
    "verifiers": "version 0.4 ships judges and no rubrics of its own",
    "lighteval": "its metrics import transformers' models, which need torch",
}
OURS = {
    "cooper:rule maths": ("rule", "box, sentence or only value"),
    "cooper:rule exact": ("rule:exact", "the same text"),
    "cooper:rule numeric": ("rule:numeric", "number with tolerance"),
}


def install(package: str, folder: Path) -> str | None:
    """The package in a folder; what pip said if it cannot be had."""
    alone, whole = PACKAGES[package]
    python = getattr(sys, "_base_executable", sys.executable)
    done = folder / ".installed"
    if done.exists():
        return None
    for names, options in ((whole, []), (alone, ["--no-deps"])):
        if names:
            command = [python, "-m", "pip", "install", "-q", "--no-compile", "--target", str(folder), *options, *names]
            finished = subprocess.run(command, capture_output=True, text=True, check=False)
            if finished.returncode:
                return finished.stderr.strip().splitlines()[-1][:300]
    done.touch()
    return None


def version_of(package: str, folder: Path) -> str:
    name = package.replace("-", "_")
    found = [*folder.glob(f"{name}-*.dist-info")] or [*folder.glob(f"{package}-*.dist-info")]
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else "?"


class Child:
    """A process that scores with one reward. It is started again after an answer that took too long."""

    def __init__(self, name: str, folder: Path, *arguments: str) -> None:
        self.command = [getattr(sys, "_base_executable", sys.executable), "-S", str(HERE / "rewards.py"), name]
        self.command += arguments
        self.environment = {"PYTHONPATH": str(folder), "PATH": os.environ["PATH"], "HOME": str(folder)}
        self.process: subprocess.Popen[str] | None = None
        self.errors = folder / "errors.txt"

    def ask(self, problem: Problem, completion: str) -> dict[str, Any]:
        if self.process is None:
            self._start()
        assert self.process is not None
        assert self.process.stdin is not None
        asked = {"question": problem.question, "answer": problem.answer, "completion": completion}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self._reply(SECONDS)

    def _start(self) -> None:
        with self.errors.open("w") as errors:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors, "text": True}
            self.process = subprocess.Popen(self.command, env=self.environment, **pipes)
        if "ready" not in self._reply(300.0):
            raise RuntimeError(f"does not start: {self.errors.read_text().strip().splitlines()[-1:]}")

    def _reply(self, seconds: float) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        if select.select([self.process.stdout], [], [], seconds)[0] and (line := self.process.stdout.readline()):
            return json.loads(line)
        self.close()
        return {"score": None, "hung": True}

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class PublicReward(Grader):
    """A reward in a process of its own, on a scale that nobody knows. What raises or hangs has no score."""

    reads_reference = False
    gives_verdicts = False

    def __init__(self, name: str, child: Child) -> None:
        self.name, self.child = name, child
        self.raised: dict[str, int] = {}
        self.hung: list[str] = []
        self.seconds = 0.0

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        start = time.process_time(), time.monotonic()
        opinions = [self._opinion(problem, text) for problem, text in answers]
        self.seconds += time.monotonic() - start[1]
        return opinions

    def _opinion(self, problem: Problem, text: str) -> Opinion:
        reply = self.child.ask(problem, text)
        if "raised" in reply:
            self.raised[reply["raised"]] = self.raised.get(reply["raised"], 0) + 1
        if "hung" in reply:
            self.hung.append(text[:200])
        return Opinion("silent", reply["score"])


def measured(grader: Grader, problems: Sequence[Problem], count: int) -> dict[str, Any]:
    """The row of one reward."""
    try:
        result = attack(grader, problems, count)
    except InputError as error:
        return {"verdict": "pays right answers like empty ones", "error": str(error)}
    return row(result)


def row(result: AttackResult) -> dict[str, Any]:
    wrong = [pattern for pattern in result.patterns if not pattern.right]
    worst, right = result.worst, result.right_accepted
    in_form = {answer.form for answer in result.answers if not answer.right}
    kept = {
        "verdict": result.verdict(0.05),
        "problems": result.problems,
        "worst": [worst.name, worst.accepted.mean, worst.accepted.low, worst.accepted.high],
        "wrong": [result.wrong_accepted.mean, result.wrong_accepted.low, result.wrong_accepted.high],
        "refused": [1 - right.mean, 1 - right.high, 1 - right.low],
        "above 5 %": sorted(pattern.name for pattern in wrong if pattern.accepted.mean > 0.05),
        "threshold": f"{result.accepts_above:.3g}, {result.threshold}",
        "reads": [form.name for form in result.forms if form.read],
        "forms": len(in_form),
    }
    if worst.accepted.mean > 0:
        answer = example_of(result, worst.name)
        kept["exploit"] = {
            "question": answer.problem.question,
            "answer": answer.problem.answer,
            "completion": answer.text,
            "paid": answer.score,
            "a right answer in this form": answer.right_score,
        }
    return kept


def tried(package: str, folder: Path, count: int) -> list[tuple[str, str]]:
    """The rewards of a package by name, with what each is for."""
    if package != "reasoning-gym":
        return [(name, what) for name, (what, _) in REWARDS.items() if name.startswith(f"{package}:")]
    return [(f"{package}:{name}", "its own task") for name in _listed(folder, "--names")]


def _listed(folder: Path, *arguments: str) -> Any:
    command = [getattr(sys, "_base_executable", sys.executable), "-S", str(HERE / "rewards.py"), *arguments]
    environment = {"PYTHONPATH": str(folder), "PATH": os.environ["PATH"], "HOME": str(folder)}
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--only")
    parser.add_argument("--problems", type=int, default=12)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = (
        json.loads(options.results.read_text())
        if options.results.exists()
        else {"rewards": {}, "missing": dict(NOT_TRIED)}
    )
    rows, own = results["rewards"], questions(200)

    def keep() -> None:
        options.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")

    for name, (written, what) in OURS.items():
        if name not in rows and options.only in (None, "cooper"):
            rows[name] = {"what": what, "version": "this"} | measured(open_grader(written), own, options.problems)
            keep()
    for package in [name for name in PACKAGES if options.only in (None, name)]:
        folder = options.environments / package
        if fault := install(package, folder):
            results["missing"][package] = fault
            continue
        for name, what in tried(package, folder, options.problems):
            if name in rows:
                continue
            of_gym = package == "reasoning-gym"
            count = options.problems
            print(name, flush=True)
            try:
                problems = own
                if of_gym:
                    listed = _listed(folder, "--problems", name, str(count))
                    problems = [Problem(f"{n}", row["question"], row["answer"]) for n, row in enumerate(listed)]
                child = Child(name, folder, *([str(count)] if of_gym else []))
                grader = PublicReward(name, child)
                rows[name] = {"what": what, "version": version_of(package, folder)}
                rows[name] |= measured(grader, problems, count)
                rows[name] |= {"seconds": round(grader.seconds, 1), "raised": grader.raised, "hung": grader.hung[:3]}
                child.close()
                results["missing"].pop(name, None)
            except (RuntimeError, subprocess.CalledProcessError, BrokenPipeError) as error:
                rows.pop(name, None)
                results["missing"][name] = str(error)[:300]
            keep()
    keep()


if __name__ == "__main__":
    main()
