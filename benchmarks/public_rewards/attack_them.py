"""Attacks rewards and graders that packages on the Python index ship, and writes what they accept.

    python benchmarks/public_rewards/attack_them.py [--environments FOLDER] [--only PACKAGE] [--problems 12]

Each package is installed into a folder of its own, without torch, and each reward is called in a process of its own
with a time limit for an answer. A package or a reward that cannot be had is listed with its error. Results go into
`benchmarks/results/public_rewards.json` after each reward, and the same command goes on there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cooper_audit.attack.attack import AttackResult, attack, with_patterns
from cooper_audit.attack.questions import questions
from cooper_audit.attack.report import example_of
from cooper_audit.attack.search import search
from cooper_audit.attack.wrappers import stated
from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_verify.grader import Asked, Grader
from cooper_verify.graders.written import open_grader
from environments import NOT_TRIED, PACKAGES, install, version_of
from public_reward import Child, PublicReward, listed

RESULTS = Path(__file__).parents[1] / "results" / "public_rewards.json"
GYM = "reasoning-gym"
HANG_S = 2.0
"""CPU seconds of one answer above which a reward is said to hang; of our rules, which work in other processes, of
wall time."""
ROUNDS = 5
"""Rounds of the search in rewards that no pattern games: every edit in two forms."""
HOSTILE = {
    "nested boxes": r"\boxed{" * 3000,
    "open brackets": "(" * 3000,
    "a long number": "9" * 20000,
    "a tower of powers": "9^{9^{9^{9^{9}}}}",
    "powers in Python": "9**9**9**9",
    "a factorial": "99999999!",
    "a long sum": "1+" * 5000 + "1",
    "spaces": "1" + " " * 50000 + "x",
    "open tags": "<think>" * 3000 + "<answer>" * 3000,
    "commas": "1," * 20000,
}
"""Answers that readers of answers may not come back from, by what they are."""
PLAIN_OF = {
    "areal:clevr_count_70k": "The answer is [{answer}].",
    "gem-llm:answer_tag_reward_fn": "<think>\nWe go through it step by step.\n</think> <answer>\n{answer}\n</answer>",
}
"""The form of right answers of rewards that read none of the attack's own."""
OURS = {
    "cooper:rule maths": ("rule", "box, sentence or only value"),
    "cooper:rule exact": ("rule:exact", "the same text"),
    "cooper:rule numeric": ("rule:numeric", "number with tolerance"),
}


def measured(grader: Grader, problems: Sequence[Problem], count: int, plain: str | None = None) -> dict[str, Any]:
    """The row of one reward; for `plain`, see `attack`."""
    try:
        result = attack(grader, problems, count, plain=plain)
        row = accepted(result)
        if row["verdict"] != "gameable":
            row["search"] = searched(grader, problems, result)
    except InputError as error:
        result = attack(grader, problems, count, accept_above=np.inf, plain=plain)
        row = {"verdict": "pays right answers like empty ones", "error": str(error)}
    return row | above_right(result) | {"hangs": hangs(grader, problems[0], result.plain)}


def accepted(result: AttackResult) -> dict[str, Any]:
    """What is accepted and refused, with the exploit of the worst pattern."""
    wrong = [pattern for pattern in result.patterns if not pattern.right]
    worst, right = result.worst, result.right_accepted
    row = {
        "verdict": result.verdict(0.05),
        "problems": result.problems,
        "worst": [worst.name, worst.accepted.mean, worst.accepted.low, worst.accepted.high],
        "wrong": [result.wrong_accepted.mean, result.wrong_accepted.low, result.wrong_accepted.high],
        "refused": [1 - right.mean, 1 - right.high, 1 - right.low],
        "above 5 %": sorted(pattern.name for pattern in wrong if pattern.accepted.mean > 0.05),
        "threshold": f"{result.accepts_above:.3g}, {result.threshold}",
        "reads": [form.name for form in result.forms if form.read],
    }
    if worst.accepted.mean > 0:
        answer = example_of(result, worst.name)
        row["exploit"] = {
            "question": answer.problem.question,
            "answer": answer.problem.answer,
            "completion": answer.text,
            "paid": answer.score,
            "a right answer in this form": answer.right_score,
        }
    return row


def searched(grader: Grader, problems: Sequence[Problem], result: AttackResult) -> dict[str, Any]:
    """What a search finds in a reward that no pattern games, counted on the problems that it did not use."""
    search_result = search(grader, problems, result, ROUNDS)
    row: dict[str, Any] = {"calls": search_result.calls, "found": {}}
    if search_result.patterns:
        patterns = search_result.patterns
        counted = with_patterns(grader, result, problems, patterns, skip=search_result.problems)
        for pattern in counted.patterns:
            if pattern.name in {each.name for each in patterns} and pattern.accepted.mean > 0:
                answer = example_of(counted, pattern.name)
                example = [answer.problem.answer, answer.text[-200:], answer.score, answer.right_score]
                row["found"][pattern.name] = [pattern.accepted.mean, pattern.problems, *example]
    return row


def above_right(result: AttackResult) -> dict[str, Any]:
    """The shares of problems in which a wrong answer is paid more than the plain right one, and than most right ones
    in the forms that are read: the measure of partial credit and of bonuses."""
    read = {form.template for form in result.forms if form.read}
    by_problem: dict[str, list[Any]] = {}
    for answer in result.answers:
        if answer.score is not None:
            by_problem.setdefault(answer.problem.id, []).append(answer)
    plain, most = [], []
    for answers in by_problem.values():
        right = [answer.score for answer in answers if answer.right and answer.form in read]
        best = max((answer.score for answer in answers if not answer.right), default=-np.inf)
        plain += [best > answer.score for answer in answers if answer.right and answer.form == result.plain]
        most += [best > np.median(right)] if right else []
    return {
        "above a plain right one": float(np.mean(plain or [0])),
        "above most right ones": float(np.mean(most or [0])),
    }


def hangs(grader: Grader, problem: Problem, form: str) -> list[str]:
    """The hostile answers that are not scored in `HANG_S`, as they are and in the reward's form."""
    found = []
    if isinstance(grader, PublicReward):
        grader.seconds_for_one = HANG_S
    for name, text in HOSTILE.items():
        for given in (text, stated(form, text)):
            start = time.monotonic()
            grader.grade([Asked(problem, given)])
            over = grader.last_hung if isinstance(grader, PublicReward) else time.monotonic() - start > HANG_S
            if over and name not in found:
                found.append(name)
    return found


def rewards_in(package: str, folder: Path, count: int) -> dict[str, tuple[str, Any]]:
    """The rewards of a package by name, with what each is for and its questions, if it has its own."""
    if package != GYM:
        names = listed(folder, "--names", package)
        return {name: (what, None) for name, what in names.items()}
    return {
        f"{GYM}:{name}": ("its own task", rows) for name, rows in listed(folder, "--gym-problems", f"{count}").items()
    }


def public_row(name: str, folder: Path, problems: Sequence[Problem], count: int) -> dict[str, Any]:
    """The row of a public reward. Raises RuntimeError if it cannot be made."""
    child = Child(name, folder, *([str(count)] if name.startswith(GYM) else []))
    grader = PublicReward(name, child)
    try:
        row = measured(grader, problems, count, PLAIN_OF.get(name))
    finally:
        child.close()
    return row | {"seconds": round(grader.seconds, 1), "raised": grader.raised, "unscored": grader.unscored[:3]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir()) / "public_rewards")
    parser.add_argument("--only")
    parser.add_argument("--problems", type=int, default=12)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    kept = options.results.read_text(encoding="utf-8") if options.results.exists() else None
    results = json.loads(kept) if kept else {"rewards": {}, "missing": dict(NOT_TRIED)}
    rows, own, count = results["rewards"], questions(200), options.problems

    def keep() -> None:
        options.results.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    for name, (written, what) in OURS.items():
        if name not in rows and options.only in (None, "cooper"):
            start = time.monotonic()
            rows[name] = {"what": what, "version": "this"} | measured(open_grader(written), own, count)
            rows[name]["seconds"] = round(time.monotonic() - start, 1)
            keep()
    for package in [name for name in PACKAGES if options.only in (None, name)]:
        folder = options.environments / package
        if fault := install(package, folder):
            results["missing"][package] = fault
            continue
        for name, (what, given) in rewards_in(package, folder, count).items():
            if name in rows or name in NOT_TRIED:
                continue
            print(name, file=sys.stderr, flush=True)
            if isinstance(given, str):
                results["missing"][name] = given
                continue
            problems = own if given is None else [Problem(f"{n}", **row) for n, row in enumerate(given)]
            try:
                row = public_row(name, folder, problems, count)
                rows[name] = {"what": what, "version": version_of(package, folder)} | row
                results["missing"].pop(name, None)
            except (RuntimeError, InputError, subprocess.CalledProcessError, BrokenPipeError) as error:
                results["missing"][name] = " ".join(str(error).split())[:300]
            keep()
    keep()


if __name__ == "__main__":
    main()
