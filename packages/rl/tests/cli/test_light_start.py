"""Bad input is reported before torch and transformers are imported, because that takes longest."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from slow_members import first_fast

ASSISTANT_PAIRS = "cooptimization.pairs=[{kind: assistant}]"
HEAVY = ["torch", "transformers", "matplotlib", "datasets"]
PROGRAM = f"""
import json, os, sys
import cooper_lab.arena.designs, cooper_rl, cooper_rl.run.inputs, cooper_rl.service.config
from cooper_base.cli.main import app

for line in sys.stdin:
    folder, arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        said = os.open("said", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.argv = ["cooper", *arguments]
        code = 0
        try:
            app()
        except SystemExit as end:
            code = end.code
        sys.stdout.flush()
        sys.stderr.flush()
        with open("ended.json", "w") as file:
            json.dump([code or 0, [name for name in {HEAVY} if name in sys.modules]], file)
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""
"""Runs each command in a fork: what reads their input is imported once, and counts for all of them."""


@pytest.fixture(scope="module")
def cooper() -> Iterator[Callable[..., tuple[int, list[str], str]]]:
    """Runs a command in a folder: the exit code, the heavy libraries that were imported, and the output."""
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=-1, stdout=-1, text=True)

    def run(folder: Path, *arguments: str) -> tuple[int, list[str], str]:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(json.dumps([str(folder), arguments]) + "\n")
        program.stdin.flush()
        ended = program.stdout.readline()
        said = (folder / "said").read_text(encoding="utf-8")
        assert ended == "0\n", said
        code, imported = json.loads((folder / "ended.json").read_text())
        return code, imported, said

    yield run
    program.communicate()


@pytest.mark.parametrize(
    ("overrides", "words"),
    first_fast(
        [
            (["polcy=1"], "did you mean 'policy'?"),
            (["problems.source=nowhere.jsonl"], "no such file"),
            (["problems.source=bad.jsonl"], "bad.jsonl:1"),
            (["output_dir=bad.jsonl/runs"], "bad.jsonl is a file"),
            (["problems.gold=nowhere:gold"], "No module named 'nowhere'"),
            (["steps=0"], "steps"),
            (["policy.model=./nowhere"], "no such model folder"),
            (["kind=static", "reward_model.model=./nowhere"], "no such model folder"),
            (["kind=static", "reward_model.model=POLICY"], "has no reward head"),
            (["rewards=[{kind: function, function: nowhere:reward}]"], "No module named 'nowhere'"),
            (["kind=cooper", "cooptimization.replay.labelled=nowhere.jsonl"], "no such file"),
            (["kind=static", "monitor.labelled=nowhere.jsonl"], "no such file"),
            (["kind=cooper", "cooptimization.assistant=null", ASSISTANT_PAIRS], "assistant is missing"),
            (["test_problems={source: nowhere.jsonl}"], "no such file"),
        ],
        fast=5,
    ),
)
def test_bad_input_is_reported_without_torch(cooper, settings, tmp_path, overrides, words):
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**settings, "kind": "rule"}))
    overrides = [override.replace("POLICY", settings["policy"]["model"]) for override in overrides]
    (tmp_path / "bad.jsonl").write_text('{"question": "1+1"\n')
    code, imported, output = cooper(tmp_path, "train", "run.yaml", *overrides)
    assert code == 2, output
    assert words in " ".join(output.split())
    assert imported == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    first_fast(
        [
            (["collect", "missing.yaml"], "no such configuration file"),
            (["train", "missing.jsonl", "--model", "owner/name", "--out", "rm"], "no such file"),
            (["train", "x.jsonl", "--model", "./missing", "--out", "rm"], "no such model folder"),
            (["train", "x.jsonl", "--model", "m", "--out", "rm", "epoch=1"], "did you mean 'epochs'?"),
        ]
    ),
)
def test_bad_input_of_the_reward_model_commands_is_reported_without_torch(cooper, tmp_path, arguments, words):
    (tmp_path / "x.jsonl").write_text('{"question": "1+1", "reference_answer": "2", "completion": "2", "label": 1}\n')
    code, imported, output = cooper(tmp_path, "verifyrm", *arguments)
    assert code == 2, output
    assert words in " ".join(output.split())
    assert imported == []


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["serv.port=1"], "did you mean 'serve'?"),
        (["serve.commit=often"], "write count:1024"),
        (["serve.host=0.0.0.0"], "is open to other machines and serve.token_env is not set"),
        (["serve.token_env=COOPER_NOT_SET"], "environment variable COOPER_NOT_SET is not set"),
        (["reward_model.schedule=cosine"], "set serve.planned_steps"),
        (["reward_model.model=./nowhere"], "no such model folder"),
        (["cooptimization.assistant=null", ASSISTANT_PAIRS], "assistant is missing"),
        (["serve.host=192.0.2.1", "serve.token_env=PATH"], "cannot listen on 192.0.2.1:8765"),
    ],
)
def test_bad_input_of_a_server_is_told_without_torch(cooper, settings, tmp_path, overrides, words):
    wanted = {key: settings[key] for key in ("reward_model", "cooptimization", "threads")}
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump(wanted))
    code, imported, output = cooper(tmp_path, "serve", "serve.yaml", *overrides)
    assert code == 2, output
    assert words in " ".join(output.split())
    assert imported == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    first_fast(
        [
            (["--design", "statik"], "no design 'statik'; there are rule"),
            (["--hole", "openers"], "no hole 'openers'"),
            (["--designs", "missing.yaml"], "no such configuration file"),
            (["rollout.m=1"], "unknown key 'rollout.m'"),
        ]
    ),
)
def test_bad_input_of_the_arena_is_reported_without_torch(cooper, tmp_path, arguments, words):
    code, imported, output = cooper(tmp_path, "arena", *arguments)
    assert code == 2, output
    assert words in " ".join(output.split())
    assert imported == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["config"], ["runs", "."]])
def test_commands_that_need_no_model_do_not_import_torch(cooper, tmp_path, arguments):
    code, imported, output = cooper(tmp_path, *arguments)
    assert (code, imported) == (0, []), output
