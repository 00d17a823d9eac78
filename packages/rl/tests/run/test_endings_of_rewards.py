"""How `cooper train` ends when the user's reward, which runs in its process, does more than return a number."""

import json
import os
import random
import sys
import threading
from pathlib import Path

import pytest
import torch
import yaml

from cooper_audit.run.run_record import read_metrics
from crash.process import start
from slow_members import first_fast


def prints(problem, completion):
    if not sys.stdout.closed:  # by another of these rewards
        print("a note", flush=True)  # noqa: T201
    os.write(1, b"past Python\n")
    return 0.5


def closes(problem, completion):
    sys.stdout.close()
    return 0.5


def moves(problem, completion):
    os.chdir("/")
    return 0.5


def seeds(problem, completion):
    random.seed(0)
    torch.manual_seed(0)
    return len(completion.text) % 5


def starts_threads(problem, completion):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return 0.5


def takes_away(problem, completion):
    problem.metadata.clear()
    return 0.5


def raises(problem, completion):
    raise ZeroDivisionError("mine")


def leaves(problem, completion):
    sys.exit(0)


def ends(problem, completion):
    os._exit(0)


def huge(problem, completion):
    return 10**400


def text(problem, completion):
    return "very good"


def several(problem, completion):
    return torch.ones(2)


def not_a_number(problem, completion):
    return float("nan")


GOES_ON = ["prints", "closes", "moves", "seeds", "starts_threads", "takes_away", "not_a_number"]
ENDS = [
    ("ends", 1, "in ends: called os._exit(0), which ends the whole command; raise an exception instead"),
    ("leaves", 1, "test_endings_of_rewards:leaves: called sys.exit(0), which ends no command"),
    ("raises", 1, "ZeroDivisionError: mine"),
    ("huge", 2, "test_endings_of_rewards:huge: returned 10000"),
    ("text", 2, "test_endings_of_rewards:text: returned 'very good' for problem"),
    ("several", 2, "test_endings_of_rewards:several: returned tensor([1., 1.]) for problem"),
]


def trained(settings, tmp_path: Path, *rewards: str) -> tuple[int | None, str]:
    """The exit code of a run of two steps that these rewards pay, and what it has printed."""
    functions = [{"kind": "function", "function": f"test_endings_of_rewards:{reward}"} for reward in rewards]
    few = {"steps": 2, "evaluation": {"every": 0}, "test_problems": None, "checkpoint": {"every": 1}}
    kept = {name: value for name, value in settings.items() if name not in ("reward_model", "cooptimization")}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**kept, **few, "kind": "function", "rewards": functions}))
    process = start(tmp_path / "run.yaml", tmp_path / "run", tmp_path / "run.log")
    process.join()
    return process.exitcode, " ".join((tmp_path / "run.log").read_text().split())


def test_the_run_goes_on_whatever_they_do_besides(settings, tmp_path):
    code, said = trained(settings, tmp_path, *GOES_ON)
    assert code == 0, said
    assert "Traceback" not in said
    rows = [row for row in read_metrics(tmp_path / "run") if row["step"]]
    assert [row["step"] for row in rows] == [1, 2]
    assert all(row[f"function/{name}"] == 0.5 for row in rows for name in GOES_ON if name not in ("seeds", GOES_ON[-1]))
    paths = [tmp_path / "run" / "rollouts" / f"00000{step}.jsonl" for step in (1, 2)]
    groups = [[json.loads(line)["completions"] for line in path.read_text().splitlines()] for path in paths]
    texts = [[completion["text"] for group in step for completion in group] for step in groups]
    assert texts[0] != texts[1], "seeds that a reward sets repeat no rollouts"


@pytest.mark.parametrize(("reward", "code", "message"), first_fast(ENDS))
def test_the_run_ends_and_says_why(settings, tmp_path, reward, code, message):
    ended, said = trained(settings, tmp_path, reward)
    assert (ended, message in said) == (code, True), said
