"""`cooper watch`, `cooper runs` and `load_run` read a run's folder, whatever its state and whatever models wrote."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from io import StringIO
from operator import methodcaller
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.console import Console

from cooper_audit.report.terminal import braille_chart, screen, sparkline
from cooper_audit.run.run_record import find_runs, read_metrics, read_record, status_of
from cooper_base.files.folder_lock import FolderLock, holder_of
from cooper_rl import CooperTrainer, InputError, MissingExtraError, build_config, load_run

COOPER = [sys.executable, "-c", "from cooper_base.cli.main import app; app()"]
HOLD = """
import sys
from pathlib import Path
from cooper_base.files.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
input()
"""


@pytest.fixture(scope="module")
def finished(tiny_models, tmp_path_factory) -> Path:
    """A finished run of three steps."""
    problems = {"source": "arithmetic", "limit": 24, "prompt": {"template": "{question}\n"}}
    problems |= {"gold": "cooper_lab.arithmetic.problems:gold"}
    corrupter = {"kind": "corrupter", "function": "cooper_lab.arithmetic.corruption:corrupt"}
    config = build_config(
        {
            "name": "first",
            "output_dir": str(tmp_path_factory.mktemp("runs")),
            "threads": 1,
            "steps": 3,
            "problems_per_step": 4,
            "policy": {"model": str(tiny_models / "policy")},
            "reward_model": {"model": str(tiny_models / "reward_model"), "max_input_tokens": 160},
            "problems": problems,
            "test_problems": {**problems, "split": "test", "limit": 4},
            "evaluation": {"every": 3, "k": 2},
            "rollout": {"n": 4, "max_tokens": 12},
            "cooptimization": {"assistant": corrupter},
            "checkpoint": {"every": 2, "keep": 5},
        }
    )
    with CooperTrainer.from_config(config) as trainer:
        trainer.fit()
    return trainer.directory


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy that a test may change."""
    return shutil.copytree(finished, tmp_path / "first")


def _cut(run: Path, lines: int) -> list[str]:
    """Leave the first lines of `metrics.jsonl`. Returns the others."""
    found = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(found[:lines]))
    return found[lines:]


@contextmanager
def _held(run: Path):
    """Another process that holds the run's folder, as one that trains does."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, run], stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _shown(run: Path, width: int = 120) -> str:
    output = StringIO()
    console = Console(file=output, width=width, force_terminal=True, color_system=None)
    console.print(screen(read_record(run), width))
    return output.getvalue()


def test_the_state_follows_from_lock_record_and_events(run):
    assert status_of(read_record(run)).state == "finished"
    _cut(run, 3)
    status = status_of(read_record(run))
    assert (status.state, status.detail) == ("interrupted", "--resume goes on after step 3")
    shutil.rmtree(run / "checkpoints" / "000003")
    assert status_of(read_record(run)).detail == "--resume goes on after step 2"
    event = {"step": 2, "since": 1, "metric": "reward/mean", "values": [0.0], "message": "reward/mean below 1"}
    for action, back, state in [("stop", {}, "stopped"), ("rollback", {"back_to": 1}, "interrupted")]:
        (run / "events.jsonl").write_text(json.dumps({**event, "action": action, **back}) + "\n")
        assert status_of(read_record(run)).state == state
    with _held(run) as process:
        assert status_of(read_record(run)).state == "running"
        assert status_of(read_record(run)).detail.startswith(f"process {process.pid} on "), "a second look sees it too"
    assert status_of(read_record(run)).state == "interrupted", "the process was killed"


def test_a_process_that_asks_about_its_own_run_keeps_the_folder(run):
    lock = FolderLock(run)
    assert holder_of(run) == f"process {os.getpid()} on {os.uname().nodename}"
    taken = subprocess.run([sys.executable, "-c", HOLD, run], capture_output=True, text=True, input="\n")
    assert "a process is training in this folder already" in taken.stderr
    lock.close()
    assert holder_of(run) is None


def test_the_time_left_is_the_mean_pace_times_the_steps_left(run):
    _cut(run, 1)
    rows = [{"step": s, "time/step": 2.0, "time/evaluate": 1.0 * (s == 2), "rollout/tokens": 300.0} for s in (1, 2)]
    with (run / "metrics.jsonl").open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    (run / "config.yaml").write_text("steps: 12\n")
    assert status_of(read_record(run)).seconds_left is None, "nobody trains"
    with _held(run):
        status = status_of(read_record(run))
    assert (status.seconds_per_step, status.seconds_left, status.tokens_per_second) == (2.5, 25.0, 150.0)


def test_the_screen_shows_progress_figures_and_completions(run):
    shown = _shown(run)
    assert "step 3 of 3" in shown
    assert "finished" in shown
    assert not Path("/proc/self/status").exists() or re.search(r"[\d,]+ MiB at most", shown)
    assert re.search(r"RM/rule agreement +[▁-█]+ +\d", shown)
    best = max((row for row in read_record(run).rollouts([3])), key=lambda row: row["reward"])
    assert f"{best['reward']:.3f}" in shown
    assert re.search("[⠁-⣿]", shown), "curves"


def test_files_that_are_being_written_are_read_up_to_their_last_whole_line(run):
    before = _shown(run)
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 4, "reward/mean": 0.')
    (run / "rollouts" / "000004.jsonl").write_bytes('{"question": "wie groß'.encode()[:-1])
    assert read_record(run).step == 3
    assert "step 3 of 3" in _shown(run)
    (run / "rollouts" / "000004.jsonl").unlink()
    assert _shown(run) == before


def test_the_last_lines_are_read_without_the_others(run):
    rows = read_metrics(run)
    assert read_metrics(run, last=2) == rows[-2:]
    assert read_metrics(run, last=100) == rows
    path = run / "metrics.jsonl"
    path.write_bytes(b"not JSON\n" + path.read_bytes())
    assert read_metrics(run, last=1) == rows[-1:]
    with pytest.raises(InputError, match=r"metrics\.jsonl:1: not JSON"):
        read_metrics(run, last=len(rows) + 1)


def test_text_of_a_model_cannot_control_the_terminal(run):
    hostile = "\x1b]0;owned\x07\x1b[2J[bold red]loud[/]\r\u202egnirts\ud800\x9b31m\nnext"
    completion = {"text": hostile, "reward": 9.0, "verdict": hostile, "tokens": 3}
    row = {"problem": hostile, "question": hostile, "answer": "1", "prompt": "p", "completions": [completion]}
    (run / "rollouts" / "000003.jsonl").write_text(json.dumps(row) + "\n")
    event = {"step": 3, "since": 3, "metric": "m", "action": "warn", "values": [], "message": hostile}
    (run / "events.jsonl").write_text(json.dumps(event) + "\n")
    shown = _shown(run, width=300)
    assert [one for one in shown if not one.isprintable() and one != "\n"] == []
    assert "\\x1b]0;owned\\x07\\x1b[2J[bold red]loud[/]\\r\\u202egnirts\\ud800\\x9b31m⏎next" in shown


def test_watch_follows_a_run_to_its_end(run):
    """In a pseudo-terminal: another process holds the folder, then writes on, and ends."""
    rest = _cut(run, 2)
    with _held(run) as process, _terminal([*COOPER, "watch", str(run), "--every", "0.1"]) as (screens, ended):
        _until(lambda: "step 1 of 3" in screens())
        with (run / "metrics.jsonl").open("a") as file:
            file.write(rest[0] + rest[1][:20])
        _until(lambda: "step 2 of 3" in screens())
        _cut(run, 2)  # a resumed run repeats a step
        seen = len(screens())
        _until(lambda: "step 1 of 3" in screens()[seen:])
        with (run / "metrics.jsonl").open("a") as file:
            file.write("".join(rest))
        process.kill()
        _until(lambda: ended() is not None)
        assert ended() == 0
        assert "finished" in screens()[-4000:]


@contextmanager
def _terminal(command: list[str]):
    """A command in a pseudo-terminal: what it has shown so far, and its exit code or None."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.set_blocking(ours, False)
    shown: list[bytes] = []

    def screens() -> str:
        try:
            while part := os.read(ours, 65536):
                shown.append(part)
        except OSError:  # nothing to read now, or the terminal is closed
            pass
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(shown).decode(errors="replace"))

    def ended() -> int | None:
        screens()  # a full terminal would hold the process up
        return process.poll()

    try:
        yield screens, ended
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _cooper(*arguments: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "160"}
    return subprocess.run([*COOPER, *map(str, arguments)], capture_output=True, text=True, env=environment)


def test_watch_prints_one_screen_where_the_output_is_no_terminal(run):
    ended = _cooper("watch", run)
    assert (ended.returncode, ended.stdout.count("step 3 of 3")) == (0, 1)
    nothing = _cooper("watch", run / "rollouts", "--once")
    assert (nothing.returncode, "holds no run" in nothing.stderr) == (2, True)


def test_runs_lists_the_runs_of_a_folder_in_order(run, tmp_path):
    second = shutil.copytree(run, tmp_path / "sweep" / "second")
    _cut(second, 3)
    shutil.copytree(run, tmp_path / "damaged")
    (tmp_path / "damaged" / "metrics.jsonl").write_text("{}{}\n")
    assert [path.name for path in find_runs(tmp_path)] == ["damaged", "first", "second"]
    ended = _cooper("runs", tmp_path, "--json", "--sort", "name")
    rows = json.loads(ended.stdout)
    assert [(row["run"], row["state"], row["step"]) for row in rows] == [
        ("first", "finished", 3),
        ("sweep/second", "interrupted", 2),
    ]
    last = read_metrics(run)[-1]
    assert rows[0]["reward"] == last["reward/mean"]
    assert (rows[0]["accuracy_metric"], rows[0]["accuracy"]) == ("test/gold_avg", last["test/gold_avg"])
    assert f"left out: {tmp_path}/damaged/metrics.jsonl:1: not JSON" in ended.stderr
    table = _cooper("runs", tmp_path).stdout
    assert re.search(r"sweep/second +interrupted +2/3 ", table)


def test_load_run_gives_frames_of_everything_recorded(finished):
    run = load_run(finished)
    assert (run.state, run.config["steps"]) == ("finished", 3)
    assert str(run) == f"<run {str(finished)!r}: finished, 3 of 3 steps>"
    assert run.metrics["reward/mean"].dropna().to_dict() == dict(run.record.series("reward/mean"))
    assert list(run.metrics.index) == [0, 1, 2, 3]
    assert list(run.evaluations.index) == [0, 3]
    assert all(name.startswith("test/") for name in run.evaluations.columns)
    assert len(run.rollouts) == 3 * 4 * 4
    assert {"step", "problem", "question", "text", "reward", "verdict", "advantage", "gold"} <= set(run.rollouts)
    assert run.rollouts_of(2).equals(run.rollouts[run.rollouts["step"] == 2].reset_index(drop=True))
    assert len(run.pairs) == sum(row.get("pairs/count", 0) for row in read_metrics(finished)) > 0
    gallery = run.gallery(5)
    wrong = run.rollouts[~run.rollouts["gold"]]
    assert list(gallery["reward"]) == sorted(wrong["reward"], reverse=True)[:5]


def test_load_run_draws_figures(finished, run):
    loaded = load_run(finished)
    curves = loaded.plot_curves(load_run(run))
    assert [len(axes.get_lines()) for axes in curves.axes] == [2, 2]
    assert [axes.get_title() for axes in curves.axes] == ["test/gold_avg", "reward/mean"]
    assert methodcaller("_repr_png_")(curves).startswith(b"\x89PNG")  # what a notebook shows without pyplot
    assert isinstance(loaded.plot_agreement(), Figure)
    bars = loaded.plot_calibration(steps=[1, 2]).axes[1].patches
    assert sum(bar.get_height() for bar in bars if isinstance(bar, Rectangle)) == 2 * 4 * 4
    with pytest.raises(InputError, match="no completion has a reward model's score"):
        loaded.plot_calibration(steps=[9])


def test_load_run_says_what_is_missing(run, monkeypatch):
    with pytest.raises(InputError, match="holds no run"):
        load_run(run / "pairs")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="the extra `notebook`"):
        load_run(run)


def test_a_chart_puts_values_where_they_belong():
    rising = [(0.0, 0.0), (1.0, 1.0)]
    low = [(0.0, 0.0), (1.0, 0.0)]
    assert braille_chart([low], 2, 1, (0, 1), (0, 1)) == [[("⣀", 0), ("⣀", 0)]]
    assert ["".join(char for char, _ in row) for row in braille_chart([rising], 2, 2, (0, 1), (0, 1))] == [" ⡜", "⡜ "]
    crossed = braille_chart([rising, low], 2, 1, (0, 1), (0, 1))
    assert {number for _, number in crossed[0]} == {1}, "the later line is on top"
    assert braille_chart([[(0.5, 7.0)]], 1, 2, (0, 1), (0, 1))[0][0][0] != " ", "a value outside is at the edge"


def test_a_sparkline_goes_from_the_lowest_to_the_highest():
    assert sparkline([0, 1, 2, 3], 8) == "▁▃▆█"
    assert sparkline([1, 1, 5, 5], 2) == "▁█"
    assert sparkline([], 5) == ""


def test_a_constant_zero_is_no_half():
    assert sparkline([0, 0.0, 0], 8) == "▁▁▁"
    assert sparkline([0.5, 0.5], 8) == "▄▄"
