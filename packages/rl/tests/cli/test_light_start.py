"""Bad input is reported before torch and transformers are imported, because that takes longest."""

import json
import subprocess
import sys

import pytest
import yaml

from slow_members import first_fast

HEAVY = ["torch", "transformers", "matplotlib", "datasets"]
PROGRAM = f"""
import json, sys
import cooper_rl
from cooper_base.cli.main import app
code = 0
try:
    app()
except SystemExit as end:
    code = end.code
print(json.dumps([code or 0, [name for name in {HEAVY} if name in sys.modules]]))
"""


def _cooper(folder, *arguments):
    """The exit code, the heavy libraries that were imported, and the output."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    code, imported = json.loads(finished.stdout.splitlines()[-1])
    return code, imported, finished.stdout + finished.stderr


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
            (["kind=cooper", "cooptimization.assistant=null"], "assistant is missing"),
            (["test_problems={source: nowhere.jsonl}"], "no such file"),
        ],
        fast=5,
    ),
)
def test_bad_input_is_reported_without_torch(settings, tmp_path, overrides, words):
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**settings, "kind": "rule"}))
    overrides = [override.replace("POLICY", settings["policy"]["model"]) for override in overrides]
    (tmp_path / "bad.jsonl").write_text('{"question": "1+1"\n')
    code, imported, output = _cooper(tmp_path, "train", "run.yaml", *overrides)
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
def test_bad_input_of_the_reward_model_commands_is_reported_without_torch(tmp_path, arguments, words):
    (tmp_path / "x.jsonl").write_text('{"question": "1+1", "reference_answer": "2", "completion": "2", "label": 1}\n')
    code, imported, output = _cooper(tmp_path, "verifyrm", *arguments)
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
        (["cooptimization.assistant=null"], "assistant is missing"),
        (["serve.host=192.0.2.1", "serve.token_env=PATH"], "cannot listen on 192.0.2.1:8765"),
    ],
)
def test_bad_input_of_a_server_is_told_without_torch(settings, tmp_path, overrides, words):
    wanted = {key: settings[key] for key in ("reward_model", "cooptimization", "threads")}
    (tmp_path / "serve.yaml").write_text(yaml.safe_dump(wanted))
    code, imported, output = _cooper(tmp_path, "serve", "serve.yaml", *overrides)
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
def test_bad_input_of_the_arena_is_reported_without_torch(tmp_path, arguments, words):
    code, imported, output = _cooper(tmp_path, "arena", *arguments)
    assert code == 2, output
    assert words in " ".join(output.split())
    assert imported == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["config"], ["runs", "."]])
def test_commands_that_need_no_model_do_not_import_torch(tmp_path, arguments):
    code, imported, output = _cooper(tmp_path, *arguments)
    assert (code, imported) == (0, []), output
