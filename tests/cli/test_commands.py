"""The command line: bad input ends with exit code 2 and a message that helps; good input does the work."""

import json
import sys

import pytest
import yaml

from cooper_rl.cli.main import app
from cooper_rl.runs.recorder import read_metrics


def _cooper(monkeypatch, capfd, *arguments):
    """Exit code and everything printed."""
    monkeypatch.setattr(sys, "argv", ["cooper", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as finished:
        app()
    streams = capfd.readouterr()
    return finished.value.code or 0, streams.out + streams.err


@pytest.fixture
def config_file(settings, tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(yaml.safe_dump({**settings, "steps": 2}))
    return path


def test_train_runs_and_says_where_the_report_is(monkeypatch, capfd, config_file, settings, tmp_path):
    code, output = _cooper(monkeypatch, capfd, "train", config_file, "kind=rule", "name=other")
    assert code == 0, output
    assert [row["step"] for row in read_metrics(tmp_path / "other")] == [0, 1, 2]
    assert "report.html" in output
    assert "<svg" in (tmp_path / "other" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["steps=0"], "steps"),
        (["rollout.temprature=1"], "did you mean 'temperature'?"),
        (["problems.source=nowhere.jsonl"], "no such file"),
        (["policy.model=./nowhere"], "no such model folder"),
        (["problems.prompt.max_prompt_tokens=3"], "longer than 3 tokens"),
        (["problems.prompt.chat=true"], "no chat template"),
        (["problems_per_step=400"], "problems"),
        (["--resume"], "no checkpoint to resume from"),
    ],
)
def test_bad_input_exits_with_2_before_training(monkeypatch, capfd, config_file, tmp_path, arguments, words):
    code, output = _cooper(monkeypatch, capfd, "train", config_file, *arguments)
    assert code == 2, output
    assert words in " ".join(output.split())
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_eval_prints_intervals_and_writes_completions(monkeypatch, capfd, tiny_models, tmp_path):
    out = tmp_path / "completions.jsonl"
    code, output = _cooper(
        monkeypatch, capfd, "eval", tiny_models / "policy", "--problems", "arithmetic", "--limit", 4,
        "--k", 2, "--max-tokens", 8, "--out", out, "--setting", "gold=cooper_rl.problems.arithmetic:gold",
    )  # fmt: skip
    assert code == 0, output
    assert "avg@2" in output
    assert "pass@2" in output
    assert "gold" in output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 2 * 4 * 2
