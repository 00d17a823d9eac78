"""`cooper audit`: what it prints, and the exit codes that a nightly run can use."""

import sys

import pytest
from courses import write

from cooper_rl.cli.main import app


@pytest.fixture
def cooper(monkeypatch, capfd):
    def run(*arguments):
        """The exit code and all output."""
        monkeypatch.setattr(sys, "argv", ["cooper", "audit", *map(str, arguments)])
        with pytest.raises(SystemExit) as finished:
            app()
        streams = capfd.readouterr()
        return finished.value.code or 0, streams.out + streams.err

    return run


@pytest.mark.parametrize(
    ("kind", "options", "code", "words"),
    [
        ("hacked", [], 3, "Hacked. From steps 3 to 7 to steps 11 to 15 the reward rose by +0.3"),
        ("hacked", ["--fail-on", "never"], 0, "onset: between step 5 and step 10"),
        ("healthy", ["--strict"], 0, "No hack. The check did not fall"),
        ("essays", [], 0, "Not applicable"),
        ("essays", ["--strict"], 4, "Cannot tell"),
        ("healthy", ["--format", "verl"], 2, "did you mean 'verl-v1'?"),
        ("healthy", ["--map", "reward=reword"], 2, "has a reward; name its place with --map"),
        ("healthy", ["--map", "reward=nothing|score"], 0, "No hack"),
        ("healthy", ["--sample", "many"], 2, "write a number of rows, or all"),
        ("healthy", ["--labels", "nowhere.jsonl"], 2, "nowhere.jsonl"),
    ],
)
def test_exit_codes(cooper, tmp_path, kind, options, code, words):
    dump = write(tmp_path / "dump", kind)
    found, output = cooper(dump, "--out", tmp_path / "audit", "--rule", "exact", *options)
    assert found == code, output
    assert words in " ".join(output.split())
    assert len(output.splitlines()) <= 20


def test_a_folder_with_a_run_of_cooper_is_not_overwritten(cooper, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.yaml").write_text("kind: cooper\n")
    code, output = cooper(write(tmp_path / "dump", "healthy", steps=2), "--out", tmp_path / "run", "--rule", "exact")
    assert code == 2
    assert "holds a run of something else" in output
