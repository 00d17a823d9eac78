"""`cooper report`: the page, where it is, and what is said of a folder without a run."""

import sys

import pytest

from cooper_base.cli.main import app
from runs.recorded_run import completion, data_of, group, write_run


def _report(monkeypatch, capfd, *arguments):
    """The exit code and all output."""
    monkeypatch.setattr(sys, "argv", ["cooper", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as finished:
        app()
    streams = capfd.readouterr()
    return finished.value.code or 0, " ".join((streams.out + streams.err).split())


@pytest.fixture
def runs(tmp_path):
    metrics = [{"step": step, "reward/mean": 0.5, "rule/accuracy": 0.5} for step in range(1, 6)]
    for name in ("one", "two"):
        write_run(tmp_path / name, metrics, lambda step: [group("p", completion("a", 0.9))], settings={"name": name})
    return tmp_path


def test_one_run_gets_a_page_in_its_folder_that_says_how_to_open_it(monkeypatch, capfd, runs):
    code, output = _report(monkeypatch, capfd, runs / "one")
    assert code == 0, output
    assert f"open it in a browser: {(runs / 'one' / 'report.html').as_uri()}" in output


def test_a_folder_of_runs_stands_for_its_runs(monkeypatch, capfd, runs):
    code, output = _report(monkeypatch, capfd, runs, "--out", runs / "both.html", "--title", "Both")
    assert code == 0, output
    assert [run["label"] for run in data_of(runs / "both.html")["runs"]] == ["one", "two"]
    assert "<title>Both · Cooper report</title>" in (runs / "both.html").read_text(encoding="utf-8")


def test_several_runs_are_written_where_the_command_is_given(monkeypatch, capfd, runs):
    monkeypatch.chdir(runs)
    code, output = _report(monkeypatch, capfd, runs / "two", runs / "one")
    assert code == 0, output
    assert [run["label"] for run in data_of(runs / "report.html")["runs"]] == ["two", "one"]
    assert f"<h1>2 runs of {runs.name}</h1>" in (runs / "report.html").read_text(encoding="utf-8")


def test_a_folder_without_a_run_is_bad_input(monkeypatch, capfd, tmp_path):
    code, output = _report(monkeypatch, capfd, tmp_path)
    assert code == 2
    assert f"{tmp_path}: neither a run (config.yaml, metrics.jsonl) nor a folder of runs" in output
