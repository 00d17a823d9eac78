"""Compares graders of final answers that people use today with ours, on cases with labels. Writes the package's table.

    python benchmarks/verdicts/graders.py --peers FOLDER --data SHARED_DATA --open-instruct CHECKOUT
    python benchmarks/verdicts/graders.py --peers FOLDER --data SHARED_DATA --only ours
    python benchmarks/verdicts/graders.py --table

The first makes `FOLDER`: an environment for each peer, whose files come from PyPI with `pip`. Open Instruct is no
package, so it is a folder with `open_instruct/ground_truth_utils.py`. `SHARED_DATA` holds the labelled files that
`_cases` names. With `--only`, the other graders' results stay as they are. `--table` prints that of the saved results.
Every grader runs in a process of its own (`grader_child.py`). A case that takes more than 16 CPU seconds there, or 600
of wall time, hangs: it counts as refused, and a new process goes on with the next.
"""

import argparse
import json
import platform
import random
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "graders.json"
CHILD = "benchmarks.verdicts.grader_child"
CPU_S, WALL_S = 16.0, 600.0
"""TRL stops reading an answer after 10 seconds, and comparing after 5 more."""
LABELLED_ROWS = 1000
HOSTILE_STEP = 3
"""Every third of the hostile answers: a peer may hang at each."""


@dataclass(frozen=True)
class Peer:
    """A grader, the environment that it runs in, and what `pip` installs there: with and without dependencies."""

    title: str
    environment: str = ""
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()


_COMMON = (
    ("math-verify==0.9.0", "latex2sympy2_extended==1.11.0", "antlr4-python3-runtime==4.13.2", "pylatexenc==2.11"),
    ("trl==1.16.0", "verl==0.9.1", "reward-doctor==0.2.0"),
)
PEERS = {
    "ours": Peer("cooper-verify"),
    "trl": Peer("Math-Verify as TRL calls it", "common", *_COMMON),
    "verl_math_verify": Peer("Math-Verify as verl calls it", "common", *_COMMON),
    "lighteval": Peer(
        "lighteval's form of Math-Verify",
        "lighteval",
        ("latex2sympy2_extended==1.0.6", "antlr4-python3-runtime==4.13.2", "numpy", "packaging"),
        ("lighteval==0.13.0",),
    ),
    "verl_math_dapo": Peer("verl's `math_dapo`", "common", *_COMMON),
    "verl_prime_math": Peer("verl's `prime_math`", "common", *_COMMON),
    "reward_doctor": Peer("reward-doctor's `robust_match`", "common", *_COMMON),
    "open_instruct": Peer(
        "Open Instruct's `MathVerifier`",
        "open_instruct",
        ("sympy==1.14.0", "antlr4-python3-runtime==4.11.0", "numpy"),
    ),
}
SETS = {
    "hardverify": "HardVerify-Math",
    "verifybench": "VerifyBench's sample",
    "labelled": "labelled rows",
    "doctor": "reward-doctor's cases",
}
"""The sets whose cases have labels."""
HOSTILE = "hostile"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="folder of the peers' environments, made where it lacks them")
    parser.add_argument("--data", type=Path, help="folder with labelled/real_completions.parquet and others")
    parser.add_argument("--open-instruct", type=Path)
    parser.add_argument("--only", action="append", choices=[*PEERS])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        if options.peers is None or options.data is None:
            parser.error("--peers and --data are needed, except with --table")
        _run(options)
    print(table(json.loads(options.results.read_text(encoding="utf-8"))))


def _run(options: argparse.Namespace) -> None:
    saved = json.loads(options.results.read_text(encoding="utf-8")) if options.results.exists() else {}
    results = {"graders": {}, "not_run": {}, **saved}
    cases = _cases(options)
    for name in options.only or PEERS:
        if name == "open_instruct" and options.open_instruct is None:
            results["not_run"][name] = "no --open-instruct"
            continue
        try:
            python = _python(options.peers, PEERS[name])
            results["graders"][name] = _measured(name, python, cases, options)
            results["not_run"].pop(name, None)
        except subprocess.CalledProcessError as error:
            results["not_run"][name] = (error.stderr or str(error)).strip().splitlines()[-1]
        results |= {"limit_cpu_s": CPU_S, "limit_wall_s": WALL_S, "machine": platform.processor() or platform.machine()}
        options.results.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _python(folder: Path, peer: Peer) -> str:
    """The interpreter of a peer's environment, which is made if it does not exist."""
    if not peer.environment:
        return sys.executable
    environment = folder / peer.environment
    python = environment / "bin" / "python"
    if not python.exists():
        _output([sys.executable, "-m", "venv", str(environment)])
        _output([str(python), "-m", "pip", "install", *peer.packages])
        if peer.alone:
            _output([str(python), "-m", "pip", "install", "--no-deps", *peer.alone])
    return str(python)


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def _cases(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every case: its set, reference, completion and whether it is right (None if nobody says)."""
    from cooper_base.data.readers import read_file
    from hostile_answers import hostile

    labelled = options.data / "labelled"
    cases = [
        {
            "set": "hardverify",
            "reference": row["answer"],
            "completion": f"Answer: \\boxed{{{row[side]}}}",
            "right": right,
        }
        for row in _json_lines(labelled / "hardverify_math_half.jsonl")
        for side, right in (("right", True), ("wrong", False))
    ]
    cases += [
        {
            "set": "verifybench",
            "reference": row["answer"],
            "completion": row["completion"],
            "right": row["gold_correct"],
        }
        for row in _json_lines(labelled / "verifybench_format_sample.jsonl")
    ]
    rows = [row.fields for row in read_file(labelled / "real_completions.parquet")]
    cases += [
        {
            "set": "labelled",
            "reference": row["reference_answer"],
            "completion": row["completion"],
            "right": bool(row["label"]),
        }
        for row in random.Random(0).sample(rows, LABELLED_ROWS)
    ]
    python = _python(options.peers, PEERS["reward_doctor"])
    cases += [{"set": "doctor", **case} for case in json.loads(_output([python, "-m", CHILD, "corpus"]))]
    for reference, completion in list(hostile().values())[::HOSTILE_STEP]:
        cases.append({"set": HOSTILE, "reference": reference, "completion": completion, "right": None})
    return cases


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _measured(name: str, python: str, cases: list[dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    checkout = ["--open-instruct", str(options.open_instruct.resolve())] if options.open_instruct else []
    arguments = ["--grader", name, *checkout]
    cost = json.loads(_output([python, "-m", CHILD, "import", *arguments]))
    replies = _replies([python, "-m", CHILD, "grade", *arguments, "--cpu-s", str(CPU_S)], cases)
    timed = [
        reply["cpu_s"] for case, reply in zip(cases, replies, strict=True) if case["set"] != HOSTILE and reply["cpu_s"]
    ]
    return {
        **cost,
        "sets": {part: _counts(part, cases, replies) for part in (*SETS, HOSTILE)},
        "verdicts_per_cpu_s": len(timed) / sum(timed),
    }


def _replies(command: list[str], cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One reply for each case; a case that ends its process has the verdict `hang`."""
    replies: list[dict[str, Any]] = []
    while len(replies) < len(cases):
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        if not process.stdout.readline():
            raise subprocess.CalledProcessError(process.wait(), command)
        alive = True
        while alive and len(replies) < len(cases):
            case = cases[len(replies)]
            timer = threading.Timer(WALL_S, process.kill)
            timer.start()
            try:
                process.stdin.write(json.dumps(case) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            finally:
                timer.cancel()
            alive = line.endswith("\n")
            replies.append(json.loads(line) if alive else {"verdict": "hang", "cpu_s": None})
        process.stdin.close()
        process.kill()
        process.wait()
    return replies


def _counts(part: str, cases: list[dict[str, Any]], replies: list[dict[str, Any]]) -> dict[str, int]:
    """A grader without verdicts calls wrong whatever it does not accept; None is no opinion."""
    of_part = [(case["right"], reply) for case, reply in zip(cases, replies, strict=True) if case["set"] == part]
    accepted = [right for right, reply in of_part if reply["verdict"] in (True, "correct")]
    wrong = [right for right, reply in of_part if reply["verdict"] in (False, "wrong", "hang")]
    return {
        "right": sum(right is True for right, _ in of_part),
        "wrong": sum(right is False for right, _ in of_part),
        "right_accepted": accepted.count(True),
        "wrong_accepted": accepted.count(False),
        "right_called_wrong": wrong.count(True),
        "cases": len(of_part),
        "hangs": sum(reply["verdict"] == "hang" for _, reply in of_part),
        "raised": sum("raised" in reply for _, reply in of_part),
    }


def table(results: dict[str, Any]) -> str:
    """The results in Markdown, ours first: right accepted, wrong accepted, right called wrong for each set."""
    graders = results["graders"]
    first = next(iter(graders.values()))["sets"]
    heads = [f"{title} ({first[part]['right']} right, {first[part]['wrong']} wrong)" for part, title in SETS.items()]
    heads += [f"hangs (of {first[HOSTILE]['cases']} hostile)", "verdicts a CPU s", "import: modules, CPU s", "MB"]
    lines = ["| grader | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for name, peer in PEERS.items():
        if name not in graders:
            continue
        found = graders[name]
        sets = found["sets"]
        cells = ["{right_accepted}, {wrong_accepted}, {right_called_wrong}".format(**sets[part]) for part in SETS]
        hangs = sum(sets[part]["hangs"] for part in SETS)
        cells += [f"{sets[HOSTILE]['hangs']}" + (f" and {hangs} elsewhere" if hangs else "")]
        cells += [f"{found['verdicts_per_cpu_s']:.0f}", f"{found['modules']}, {found['import_cpu_s']:.1f}"]
        cells += [f"{found['mib'] * 2**20 / 1e6:.0f}"]
        lines.append(f"| {peer.title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
