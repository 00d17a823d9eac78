"""How `cooper train` ends when the user's reward, which runs in its process, does more than return a number."""

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


def prints(problem, completion):
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
    ("raises", 1, "ZeroDivisionError: mine"),
    ("leaves", 1, "test_endings_of_rewards:leaves: called sys.exit(0), which ends no command"),
    ("ends", 1, "in ends: called os._exit(0), which ends the whole command; raise an exception instead"),
    ("huge", 2, "test_endings_of_rewards:huge: returned 10000"),
    ("text", 2, "test_endings_of_rewards:text: returned 'very good' for problem"),
    ("several", 2, "test_endings_of_rewards:several: returned tensor([1., 1.]) for problem"),
]


def trained(settings, tmp_path: Path, reward: str) -> tuple[int | None, str]:
    """The exit code of a run of two steps that this reward pays, and what it has printed."""
    paid = {"kind": "function", "rewards": [{"kind": "function", "function": f"test_endings_of_rewards:{reward}"}]}
    few = {"steps": 2, "evaluation": {"every": 0}, "test_problems": None, "checkpoint": {"every": 1}}
    kept = {name: value for name, value in settings.items() if name not in ("reward_model", "cooptimization")}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**kept, **few, **paid}))
    process = start(tmp_path / "run.yaml", tmp_path / "run", tmp_path / "run.log")
    process.join()
    return process.exitcode, " ".join((tmp_path / "run.log").read_text().split())


@pytest.mark.parametrize("reward", GOES_ON)
def test_the_run_goes_on(settings, tmp_path, reward):
    code, said = trained(settings, tmp_path, reward)
    assert code == 0, said
    assert [row["step"] for row in read_metrics(tmp_path / "run")] == [1, 2]
    assert "Traceback" not in said


@pytest.mark.parametrize(("reward", "code", "message"), ENDS)
def test_the_run_ends_and_says_why(settings, tmp_path, reward, code, message):
    ended, said = trained(settings, tmp_path, reward)
    assert (ended, message in said) == (code, True), said


def test_seeds_that_a_reward_sets_repeat_no_rollouts(settings, tmp_path):
    trained(settings, tmp_path, "seeds")
    first, second = ((tmp_path / "run" / "rollouts" / f"00000{step}.jsonl").read_text() for step in (1, 2))
    assert first.split('"completions"')[1:] != second.split('"completions"')[1:]
