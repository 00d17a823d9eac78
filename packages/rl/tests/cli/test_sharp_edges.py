"""What stopped somebody on a first day with the command line."""

import os
import subprocess
import sys
import time
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cooper_audit.cli import runs
from cooper_base.cli import console
from cooper_base.cli.main import commands
from cooper_base.config.checking import check_settings, read_settings
from cooper_base.errors import InputError
from cooper_rl import build_config
from cooper_rl.run.inputs import read_inputs
from cooper_rl.run_config import RunConfig
from runs.recorded_run import write_run
from slow_members import first_fast


def _terminal(width=80):
    return console.SafeConsole(file=StringIO(), force_terminal=True, width=width, color_system=None)


def _printed(terminal: Console) -> str:
    assert isinstance(terminal.file, StringIO)
    return terminal.file.getvalue()


@pytest.mark.parametrize("name", ["my_rewardz:ok:", "[bold]x[/bold]", "[/]"])
def test_names_are_printed_as_they_are(monkeypatch, name):
    terminal = _terminal()
    monkeypatch.setattr(console, "console", terminal)
    console.show_table(["name"], [[name]], terminal)
    with console.progress(name, 2) as advance:
        advance(1)
    text = _printed(terminal)
    assert text.count(name) >= 2


def test_a_value_of_the_command_line_is_blamed_on_the_command_line(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("steps: 3\npolicy: {model: m}\nproblems: {source: p.jsonl}\nrollout: {n: 4}\nkind: rule\n")
    for override, message in {
        "steps=x": "command line, steps=x: steps: Input should be a valid integer",
        "rollout={m: 3}": "command line, rollout={m: 3}: unknown key 'rollout.m'",
        "rollout.m=3": "command line, rollout.m=3: unknown key 'rollout.m'",
        "rolout.max_tokens=3": "command line, rolout.max_tokens=3: unknown key 'rolout'; did you mean 'rollout'?",
        "policy.lroa.rank=3": "command line, policy.lroa.rank=3: unknown key 'policy.lroa'; did you mean 'lora'?",
        "max_tokens=5": "command line, max_tokens=5: unknown key 'max_tokens'; did you mean rollout.max_tokens?",
        "min_spread=5": "command line, min_spread=5: unknown key 'min_spread'; did you mean algorithm.min_spread?",
        "algorithm.coefficient=1": "command line, algorithm.coefficient=1: unknown key 'algorithm.coefficient'; did "
        "you mean algorithm.kl.coefficient?",
        "weight=5": "command line, weight=5: unknown key 'weight'; did you mean problems.weight or ",
    }.items():
        with pytest.raises(InputError) as error:
            check_settings(RunConfig, read_settings(file, [override]))
        assert str(error.value).startswith(message)
    file.write_text(file.read_text().replace("n: 4", "n: x"))
    with pytest.raises(InputError, match=r"run\.yaml:4: rollout\.n: "):
        check_settings(RunConfig, read_settings(file, ["steps=4"]))


def test_a_missing_chat_template_is_told_before_training(settings, caplog):
    caplog.set_level("INFO")
    read_inputs(build_config({**settings, "kind": "rule"}))
    assert "policy has no chat template, so it reads prompts as plain text" in caplog.text
    problems = {**settings["problems"], "prompt": {"chat": True}}
    with pytest.raises(
        InputError, match=r"^problems\.prompt\.chat: true, but the tokenizer of .* has no chat template"
    ):
        read_inputs(build_config({**settings, "kind": "rule", "problems": problems}))


def test_a_run_stays_on_one_line_of_80_columns(tmp_path, monkeypatch, capfd):
    metrics = [{"step": n, "reward/mean": 0.5, "policy/reference_kl": 0.01, "test/rule_avg": 0.4} for n in range(13)]
    for name in ("first", "a-name-of-thirty-characters-00"):
        write_run(tmp_path / name, metrics, settings={"steps": 12, "name": name})
    terminal = _terminal()
    monkeypatch.setattr(runs, "stdout", lambda **_: terminal)
    runs.runs(tmp_path)
    lines = _printed(terminal).splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert {"run", "state", "step", "accuracy", "reward"} <= set(lines[0].split())
    assert "left out for lack of room: measured by" in capfd.readouterr().err


@pytest.mark.parametrize("option", ["--out", "--output-dir"])
@pytest.mark.parametrize("command", first_fast(["demo", "arena"]))
def test_one_word_names_where_results_go_and_the_old_one_still_does(command, option, tmp_path):
    result = CliRunner().invoke(commands, [command, option, str(tmp_path / "file"), "--help"])
    assert result.exit_code == 0
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(commands, [command, option, str(tmp_path / "file"), "--steps", "1"])
    assert isinstance(result.exception, InputError)
    assert "cannot be written" in str(result.exception)


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_said_once_and_soon(tmp_path):
    pytest.importorskip("datasets")
    (tmp_path / "run.yaml").write_text(
        "kind: rule\npolicy: {model: MODEL}\nproblems: {source: nobody/nothing}\n".replace("MODEL", str(tmp_path))
    )
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    environment = {**os.environ, "HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    program = "from cooper_base.cli.main import app; app()"
    begun = time.monotonic()
    command = [sys.executable, "-c", program, "train", "run.yaml"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "the hub cannot be reached" in ended.stderr
    assert "Retry" not in ended.stderr  # 1 + 2 + 4 + 8 + 8 s
    assert time.monotonic() - begun < 60
