"""Damaged folders of runs: what reads them says what is wrong, shows the rest, and never waits for ever."""

import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from cooper_audit.report.live_page import FollowedReport
from cooper_audit.report.report import write_report
from cooper_audit.report.terminal import screen
from cooper_audit.run.run_record import find_runs, read_events, read_metrics, read_record, read_summary
from cooper_base.cli.main import commands
from cooper_base.config.strict_yaml import parse_yaml
from cooper_base.pace import duration
from cooper_rl import CooperTrainer, InputError, build_config, load_run
from cooper_rl.record.checkpoint import CheckpointConfig, CheckpointStore
from runs.recorded_run import completion, group, write_lines, write_run

Damage = Callable[[Path], object]
SECONDS = 20


@contextmanager
def within(seconds: int = SECONDS) -> Iterator[None]:
    """Fails what takes longer: a pipe that nobody writes to, or an alias that multiplies."""

    def too_long(*_: object) -> None:
        raise AssertionError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def metrics(steps: int) -> list[dict[str, Any]]:
    times = {"time/step": 2.0, "rollout/tokens": 60.0}
    evaluated = [{"step": 0, "test/gold_avg": 0.25, "time/evaluate": 1.0}]
    return evaluated + [{"step": i, "reward/mean": i / 10, "rule/accuracy": 0.5, **times} for i in range(1, steps + 1)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pair = {"problem_id": "p1", "question": "q", "answer": "4", "positive": "4", "negative": "5"}
    run = tmp_path / "runs" / "damaged"
    rows = [group("p1", completion("four", 0.9, True, "correct"), completion("five", 0.8, False))]
    write_run(run, metrics(4), lambda _: rows, lambda _: [pair])
    write_lines(run / "events.jsonl", [event(2)])
    write_lines(run / "sessions.jsonl", [{"started": "2026-01-01T00:00:00+0000", "command": ["cooper", "train"]}])
    write_lines(run / "evaluations.jsonl", [{"step": 0, "set": "", "problems": "0" * 16, "gold": [0.25]}])
    shutil.copytree(run, tmp_path / "runs" / "sound")
    return run


def event(step: int, **more: Any) -> dict[str, Any]:
    return {"step": step, "since": step, "metric": "m", "action": "warn", "values": [], "message": "fired", **more}


def append(name: str, *rows: Any) -> Damage:
    def damage(run: Path) -> None:
        with (run / name).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    return damage


def write(name: str, text: str) -> Damage:
    def damage(run: Path) -> None:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")

    return damage


def pipe(name: str) -> Damage:
    def damage(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return damage


def directory(name: str) -> Damage:
    def damage(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).mkdir()

    return damage


def device(name: str) -> Damage:
    def damage(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to("/dev/zero")

    return damage


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 8)}]}}\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
LINES = [None, 7, [], "text", {}, {"step": None}, {"step": "3"}, {"step": -1}, {"step": 10**30}, {"step": True}]
DEEP = "[" * 400 + "]" * 400
FILES = (
    "metrics.jsonl",
    "events.jsonl",
    "evaluations.jsonl",
    "sessions.jsonl",
    "rollouts/000002.jsonl",
    "pairs/000002.jsonl",
    "config.yaml",
)
LEFT_OUT: dict[str, Damage] = {
    **{
        f"{name} of other shapes": append(name, *LINES) for name in FILES if name.endswith("l") and name[-5:] == "jsonl"
    },
    "metrics that are no numbers": append("metrics.jsonl", {"step": 5, "time/step": "x", "reward/mean": [1]}),
    "metrics beyond a float": append("metrics.jsonl", {"step": 5, "time/step": 10**400, "reward/mean": -(10**400)}),
    "hours beyond the calendar": append("metrics.jsonl", {"step": 5, "time/step": 1e300, "rollout/tokens": 1e300}),
    "completions of other shapes": append(
        "rollouts/000002.jsonl",
        {**group("p2"), "completions": [None, 3, {}, {"text": 1, "reward": "x", "verdict": None}]},
        {"problem": ["p"], "question": "q", "completions": []},
        {**group("p3"), "completions": {"text": "x"}},
    ),
    "a start at no time": append("sessions.jsonl", {"started": "soon"}, {"started": 3}, {"command": 7}),
    "notes among the rollouts": write("rollouts/notes.jsonl", "{}\n"),
    "digits of another script": write("rollouts/00000²٣.jsonl", "{}\n"),
    "notes among the checkpoints": write("checkpoints/notes", "x"),
    "a pipe among the rollouts": pipe("rollouts/000007.jsonl"),
    "a folder among the pairs": directory("pairs/000007.jsonl"),
    "the lock is a pipe": pipe(".lock"),
    "settings of other types": write("config.yaml", "steps: [1]\npolicy: 3\nreward_models: x\nkind: {a: 1}\n"),
    "settings beyond a float": write("config.yaml", f"steps: {10**30}\nkind: 2001-01-01\n"),
}
"""Damage that costs nothing but itself: the run is shown."""
NAMED: dict[str, Damage] = {
    **{f"{name} is a pipe": pipe(name) for name in FILES if "/" not in name},
    **{f"{name} is a device": device(name) for name in FILES if "/" not in name},
    **{f"{name} is a folder": directory(name) for name in FILES if "/" not in name},
    "an alias bomb": write("config.yaml", BOMB),
    "a merge bomb": write("config.yaml", MERGES),
    "a long text under many aliases": write("config.yaml", f"a: &a {'x' * 10**5}\nb: [{', '.join(['*a'] * 5000)}]\n"),
    "deep settings": write("config.yaml", "- " * 10**5 + "a"),
    "no YAML": write("config.yaml", "a: [1\n"),
    "deep lines": write("metrics.jsonl", '{"step": 1, "x": ' + "[" * 10**5 + "]" * 10**5 + "}\n"),
    "lines as deep as a stack allows": write("events.jsonl", '{"step": 1, "x": ' + DEEP + "}\n"),
    "no JSON": write("metrics.jsonl", "{}{}\n"),
}
"""Damage to what the run is shown by: a message names the file."""


def shown(run: Path) -> str:
    terminal = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    terminal.print(screen(read_record(run), 120))
    return terminal.export_text()


def readers(run: Path) -> Iterator[Callable[[], object]]:
    """Everything that reads a run's folder."""
    yield lambda: shown(run)
    yield lambda: read_summary(run)
    yield lambda: write_report(run, run.parent / "page.html")
    yield lambda: (page := FollowedReport([run])).data() and page.groups(0, 2)
    yield lambda: (loaded := load_run(run)) and (len(loaded.rollouts), len(loaded.pairs), loaded.gallery())


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_the_recorder_did_not_write_is_left_out(folder, name):
    LEFT_OUT[name](folder)
    with within():
        for read in readers(folder):
            read()
    assert [row["step"] for row in read_metrics(folder)][:5] == [0, 1, 2, 3, 4]


def test_what_is_left_out_is_counted(folder, caplog):
    append("metrics.jsonl", *LINES)(folder)
    read_metrics(folder)
    assert f"{folder}/metrics.jsonl: {len(LINES)} of {len(LINES) + 5} lines are left out" in caplog.text


@pytest.mark.parametrize("name", NAMED)
def test_what_hides_a_run_is_named_and_hides_no_other(folder, name):
    NAMED[name](folder)
    with within():
        for read in readers(folder):
            with suppress(InputError):
                read()
        listed = CliRunner().invoke(commands, ["runs", str(folder.parent), "--json"])
    assert listed.exception is None
    rows = json.loads(listed.stdout[listed.stdout.index("[") :])
    assert "sound" in [row["run"] for row in rows]
    if not any(row["run"] == "damaged" for row in rows):
        with pytest.raises(InputError, match=rf"{folder}"):
            read_summary(folder)[0].started  # noqa: B018


def test_a_list_of_runs_shows_what_all_lines_say(folder):
    """It reads a few lines of the metrics, and no less is true of them."""
    rows = [*metrics(4), {"step": 5, "reward/mean": float("nan"), "time/step": None, "test/rule_avg": 0.5}]
    write_lines(folder / "metrics.jsonl", [*rows, {"step": 6, 'a "time/step": 9, ': 1.0, "time/evaluate": 4}])
    summary, seconds = read_summary(folder)
    whole = read_record(folder)
    assert (summary.step, summary.accuracy) == (whole.step, whole.accuracy) == (6, ("test/gold_avg", 0.25))
    assert [summary.last(name) for name in ("reward/mean", "policy/reference_kl")] == [0.4, None]
    assert seconds == sum(whole.seconds) == 13


def test_a_list_of_runs_reads_a_few_lines_of_each(folder):
    """A list of 200 runs of 1,500 steps took 12.7 seconds, 63 ms a run, when all lines were parsed."""
    row = {f"policy/part_{number}": number / 7 for number in range(40)} | {"time/step": 1.0, "reward/mean": 0.5}
    write_lines(folder / "metrics.jsonl", [{"step": step, **row} for step in range(1, 1501)])

    def cpu_s(read: Callable[[Path], object]) -> float:
        begun = time.process_time()
        for _ in range(5):
            read(folder)
        return time.process_time() - begun

    assert cpu_s(lambda run: read_summary(run)[1]) < cpu_s(read_record) / 3


def test_runs_are_found_at_any_depth_but_not_in_a_runs_own_folders(folder):
    shutil.copytree(folder.parent / "sound", folder / "deeper" / "still")
    shutil.copytree(folder.parent / "sound", folder / "rollouts" / "copy")
    found = [str(path.relative_to(folder.parent)) for path in find_runs(folder.parent)]
    assert found == ["damaged", "damaged/deeper/still", "sound"]


NAMES = ["step", "metric", "action", "message", "back_to", "time/step", "reward/mean", "completions", "reward", "text"]
NAMES += ["verdict", "problem", "question", "started", "command", "test_problems", "gold", "negative", "problem_id"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.slow
@hypothesis_settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FILES), st.lists(JSON, max_size=4), st.integers(0, 4))
def test_no_line_of_json_is_more_than_bad_input(folder, name, rows, place):
    path = folder / name
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    damaged = lines[:place] + [json.dumps(row) + "\n" for row in rows] + lines[place:]
    try:
        path.write_text("".join(damaged), encoding="utf-8")
        with within():
            for read in readers(folder):
                with suppress(InputError):
                    read()
    finally:
        path.write_text("".join(lines), encoding="utf-8")


def saved(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path / "run" / "checkpoints", CheckpointConfig(keep=3), holds="value")
    for step in (1, 2):

        def write_models(aside: Path, step: int = step) -> dict[str, Any]:
            (aside / "weights").write_text(str(step))
            return {"value": step}

        store.save(step, write_models)
    return store


MANIFESTS: list[Any] = [
    [],
    "text",
    {},
    {"best": [], "files": []},
    {"best": {}, "files": {"state.json": 3}},
    {"best": {"m": "high"}, "files": {}},
    {"best": {}, "files": {"../000001/weights": {}}},
    {"best": {}, "files": {"/dev/zero": {}}},
    {"best": {}, "files": {}},
]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=str)
def test_a_manifest_of_another_shape_is_damage_and_the_checkpoint_before_serves(tmp_path, manifest):
    store = saved(tmp_path)
    (store.directory / "000002" / "manifest.json").write_text(json.dumps(manifest))
    (store.directory / "000002" / "state.json").write_text("[]")
    with within():
        state = store.newest_state()
        latest = store.latest()
    assert state == {"value": 1, "step": 1}
    assert latest is not None
    assert latest[0].name == "000001"


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "weights"])
@pytest.mark.parametrize("damage", [pipe, device, directory], ids=["pipe", "device", "folder"])
def test_a_pipe_in_a_checkpoint_is_damage(tmp_path, name, damage):
    store = saved(tmp_path)
    damage(name)(store.directory / "000002")
    with within():
        assert store.newest_state() is not None
        latest = store.latest()
    assert latest is not None
    assert latest[0].name == "000001"


def test_files_of_others_among_the_checkpoints_stay_and_disturb_nobody(tmp_path):
    store = saved(tmp_path)
    for name in (".DS_Store.x", ".notes.txt", "notes", "000009", "²", ".000003.partial"):
        (store.directory / name).write_text("x")
    assert store.latest() is not None
    store.save(3, lambda aside: {})
    assert [path.name for path in store.list()] == ["000001", "000002", "000003"]
    assert (store.directory / ".notes.txt").read_text() == "x"


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        MERGES,
        "x: !!int " + ":".join(["1"] * 10**5),
        "x: " + ":".join(["1"] * 400) + ".5",
        "- " * 50_000,
        "{" * 50_000,
        "? " * 50_000,
        "x: " + "1" * 10**6,
        "a: &a [*a]",
        "&k " + "k" * 999_000 + ": 1",
    ],
    ids=lambda text: text[:12],
)
def test_hostile_yaml_is_bad_input_within_seconds(text):
    with within(), suppress(ValueError):
        parse_yaml(text)


@pytest.mark.slow
def test_a_resumed_run_keeps_its_rollbacks_and_leaves_the_rest_out(settings, tmp_path):
    quick = {**settings, "kind": "rule", "evaluation": {"every": 0}, "checkpoint": {"every": 1}, "steps": 2}

    def fit(resume: bool = False, **changes: Any) -> Path:
        with CooperTrainer.from_config(build_config({**quick, **changes}), resume=resume) as trainer:
            trainer.fit(lambda *_: None)
        return trainer.directory

    run = fit()
    append("events.jsonl", 3, event(1, back_to=1), {"step": 1, "back_to": "x"})(run)
    append("metrics.jsonl", 3, {"reward/mean": 1})(run)
    write("rollouts/notes.jsonl", "{}\n")(run)
    write("checkpoints/.DS_Store.x", "x")(run)
    fit(resume=True, steps=3)
    assert [row["step"] for row in read_metrics(run)] == [1, 2, 3]
    assert [row["back_to"] for row in read_events(run) if "back_to" in row] == [1]


def test_a_pipe_where_the_run_writes_is_named(settings):
    quick = {**settings, "kind": "rule", "evaluation": {"every": 0}, "steps": 2}
    with within(60), CooperTrainer.from_config(build_config(quick)) as trainer:
        os.mkfifo(trainer.directory / "rollouts" / "000002.jsonl")
        with pytest.raises(InputError, match=r"rollouts/000002\.jsonl: is a pipe or a device"):
            trainer.fit(lambda *_: None)


def test_a_full_disk_ends_a_command_with_the_name_of_the_file(folder, tmp_path):
    """The system refuses to write more than a kilobyte into any file, as a full disk does."""
    code = "from cooper_base.cli.main import app; app()"
    page = tmp_path / "page.html"
    ended = subprocess.run(
        [sys.executable, "-c", code, "report", str(folder), "--out", str(page)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert f"error: {page}: cannot be written (File too large); make room on its disk" in ended.stderr
    assert "Traceback" not in ended.stderr


DATES = ["0001-01-01", "9999-12-31T23:59:59-14:00", "1947-09-06T20:16:23+0000"]


@pytest.mark.parametrize("mtime", [-2_000_000_000, 10**11])
@pytest.mark.parametrize("started", DATES)
def test_a_clock_that_is_wrong_by_ages_ends_no_command(folder, started, mtime):
    write_lines(folder / "sessions.jsonl", [{"started": started, "command": []}])
    for path in folder.rglob("*.jsonl"):
        os.utime(path, (mtime, mtime))
    for command in (["runs", str(folder.parent)], ["report", str(folder)]):
        assert CliRunner().invoke(commands, command).exit_code == 0
    (folder / "sessions.jsonl").unlink()
    assert CliRunner().invoke(commands, ["runs", str(folder.parent)]).exit_code == 0
    Console(file=io.StringIO()).print(screen(read_record(folder), 120))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0:00:00"), (62.4, "0:01:02"), (1e300, "999999999 days, 23:59:59"), (float("nan"), "0:00:00")],
)
def test_a_time_that_no_calendar_has_is_shown_as_the_nearest(seconds, shown):
    assert duration(seconds) == shown
