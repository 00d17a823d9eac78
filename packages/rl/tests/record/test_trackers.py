"""Weights & Biases, trackio and MLflow hold the whole run, also one that was killed and resumed, without a network."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_rl import CooperTrainer, InputError, MissingExtraError, build_config
from cooper_rl.record import Sink, SinkConfig, SinkRun, tolerant
from cooper_rl.record.tolerant import Tolerant
from cooper_rl.record.trackers import TrackerConfig, flat
from waiting import wait_for

PROGRAM = """
import json, sys, time
from cooper_rl import CooperTrainer, build_config
from cooper_rl.record import trackers
trackers.TABLES_EVERY = 2
settings, resume, killed_after = json.loads(sys.argv[1])
def on_step(step, metrics):
    if step == killed_after:
        time.sleep(600)  # until the test kills it
with CooperTrainer.from_config(build_config(settings), resume) as trainer:
    trainer.fit(on_step)
"""
STEPS_SENT = [0, 1, 2, 3, 3, 4]
"""A run of 4 steps, killed after step 3, that continues after the checkpoint of step 2."""


def _killed_and_resumed(settings, folder: Path, sink: dict[str, Any], has_step_3: Callable[[Path], bool]) -> Path:
    """The folder of a run with this sink, killed once the tracker has step 3: the libraries write in the background
    (docs/trackers.md says how much a kill loses)."""
    watch = [{"metric": "reward/mean", "above": -1}]
    settings = {**settings, "kind": "rule", "steps": 4, "sinks": [sink], "watch": watch}
    environment = {
        **os.environ,
        "TRACKIO_DIR": str(folder / "trackio"),
        "WANDB_SILENT": "true",
        "WANDB_MODE": "offline",
        "WANDB__SERVICE_WAIT": "300",  # its process reads 60 MB from a cold disk when it starts
    }
    environment.pop("WANDB_SERVICE", None)  # of another test: a service that outlives the kill holds the run's id
    for resume, killed_after in ((False, 3), (True, -1)):
        given = json.dumps([settings, resume, killed_after])
        command = [sys.executable, "-c", PROGRAM, given]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=folder, env=environment, **pipes) as program:
            if not resume:
                wait_for(lambda: program.poll() is not None or has_step_3(folder), 300)
                program.kill()
            printed, errors = program.communicate()
        assert program.returncode == (0 if resume else -signal.SIGKILL), errors
        assert printed.replace("* Run finished. Uploading logs to Trackio (please wait...)\n", "") == ""
        assert "the run goes on and tries again" not in errors
    return folder / "run"


def _run_has_step_3(folder: Path) -> bool:
    """Whether the run wrote step 3 more than 2.5 s ago."""
    metrics = folder / "run" / "metrics.jsonl"
    return (
        metrics.exists()
        and time.time() > metrics.stat().st_mtime + 2.5
        and read_metrics(metrics.parent)[-1]["step"] == 3
    )


def _wandb_has_step_3(folder: Path) -> bool:
    paths = (folder / "run" / "wandb").glob("offline-run-*/*.wandb")
    records = [record for path in paths for record in _wandb_records(path)]
    return any(_history(record)["step"] == 3 for record in records if record.HasField("history"))


@pytest.mark.slow
def test_mlflow_holds_a_run_that_was_killed_and_resumed(settings, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="MLflow (the extra `mlflow`) is not installed")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    folder = _killed_and_resumed(settings, tmp_path, {"kind": "mlflow", "project": "p"}, _run_has_step_3)
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("p")
    assert experiment is not None
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("run", "FINISHED")
    assert run.data.params["policy.learning_rate"] == "0.001"
    assert "reward/mean above -1" in run.data.tags["fault.reward/mean"]
    history = client.get_metric_history(run.info.run_id, "rollout/tokens")
    assert [point.step for point in history] == STEPS_SENT[1:]
    assert {p.step: p.value for p in history} == {r["step"]: r["rollout/tokens"] for r in read_metrics(folder)[1:]}
    table = client.load_table(experiment.experiment_id, "rollouts/000004.json", [run.info.run_id])
    assert list(table["text"]) == _texts(folder, 4)


@pytest.mark.slow
def test_trackio_holds_a_run_that_was_killed_and_resumed(settings, tmp_path):
    pytest.importorskip("trackio", reason="trackio (the extra `trackio`) is not installed")
    folder = _killed_and_resumed(settings, tmp_path, {"kind": "trackio", "project": "p"}, _run_has_step_3)
    reading = """
import json, trackio
from trackio.sqlite_storage import SQLiteStorage as Storage
print(json.dumps([
    [[run.name, run.config, run.alerts()] for run in trackio.Api().runs("p")],
    [Storage.get_logs("p", run["name"], run_id=run["id"]) for run in Storage.get_run_records("p")],
]))"""
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio")}
    read = subprocess.run([sys.executable, "-c", reading], env=environment, capture_output=True, text=True, check=True)
    ((name, config, alerts),), (logs,) = json.loads(read.stdout)
    assert name.startswith("run-")
    assert config["policy"]["learning_rate"] == 0.001
    assert any(alert["text"].startswith("reward/mean above -1") for alert in alerts)
    rows = [row for row in logs if "rollouts" not in row]
    assert [row["step"] for row in rows] == STEPS_SENT
    assert {r["step"]: r.get("rollout/tokens") for r in rows} == {
        r["step"]: r.get("rollout/tokens") for r in read_metrics(folder)
    }
    tables = {row["step"]: row["rollouts"]["_value"] for row in logs if "rollouts" in row}
    assert [row["text"] for row in tables[4]] == _texts(folder, 4)


TRACKIO_LOSES_ITS_FOLDER = """
import os, shutil, sys, time
from pathlib import Path
from cooper_rl.record import SinkRun, tolerant
from cooper_rl.record.trackers import Trackio
tolerant.PAUSE_S = 0.5
folder, databases = Path(sys.argv[1]), Path(os.environ["TRACKIO_DIR"])
sink = tolerant.Tolerant(Trackio(project="p"), SinkRun(folder, {"name": "run"}, None))
sink.metrics(1, {"a": 1.0})
while sink._sink is None or sink._waiting:
    time.sleep(0.1)
time.sleep(2)  # four times the pause between two writes
assert sink.failures == 0
shutil.rmtree(databases)
databases.write_text("a file where the folder was")
for step in (2, 3, 4, 5):
    sink.metrics(step, {"a": 1.0})
    time.sleep(3)
print(f"failures: {sink.failures}")
"""


@pytest.mark.slow
def test_a_failure_in_the_background_of_trackio_is_counted(tmp_path):
    """The library only warns of it, once; the next batch that it loses counts too."""
    pytest.importorskip("trackio", reason="trackio (the extra `trackio`) is not installed")
    environment = {**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio")}
    command = [sys.executable, "-c", TRACKIO_LOSES_ITS_FOLDER, str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "failures: 2" in ended.stdout
    assert "trackio failed, but the run goes on" in ended.stderr
    assert "failed in the background" in ended.stderr


@pytest.mark.slow
def test_wandb_holds_a_run_that_was_killed_and_resumed(settings, tmp_path):
    pytest.importorskip("wandb.proto", reason="Weights & Biases (the extra `wandb`) is not installed")
    folder = _killed_and_resumed(settings, tmp_path, {"kind": "wandb", "project": "p"}, _wandb_has_step_3)
    sessions = sorted((folder / "wandb").glob("offline-run-*/*.wandb"))
    assert len(sessions) == 2
    records = [record for path in sessions for record in _wandb_records(path)]
    runs = [record.run for record in records if record.HasField("run")]
    assert len({run.run_id for run in runs}) == 1, "both sessions belong to one run"
    assert {(run.project, run.display_name) for run in runs} == {("p", "run")}
    config = {item.key: json.loads(item.value_json) for run in runs for item in run.config.update}
    assert config["policy"]["learning_rate"] == 0.001
    rows = [_history(record) for record in records if record.HasField("history")]
    assert [row["step"] for row in rows] == STEPS_SENT
    assert {r["step"]: r.get("rollout/tokens") for r in rows} == {
        r["step"]: r.get("rollout/tokens") for r in read_metrics(folder)
    }
    table = json.loads((sessions[1].parent / "files" / rows[-1]["rollouts.path"]).read_text())
    assert [row[table["columns"].index("text")] for row in table["data"]] == _texts(folder, 4)
    alerts = [record.alert.text for record in records if record.HasField("alert")]
    assert any(text.startswith("reward/mean above -1") for text in alerts)


def _wandb_records(path: Path) -> list[Any]:
    """The records of an offline run: protocol buffers in the log format of LevelDB, after a header of 7 bytes.

    https://github.com/google/leveldb/blob/main/doc/log_format.md
    """
    messages = import_module("wandb.proto.wandb_internal_pb2")
    data, at, whole, found = path.read_bytes(), 7, b"", []
    while at + 7 <= len(data):
        left_in_block = 32768 - at % 32768
        if left_in_block < 7:
            at += left_in_block
            continue
        _, length, part = struct.unpack("<IHB", data[at : at + 7])
        if at + 7 + length > len(data):  # the library is writing it
            break
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if part in (1, 4):  # a full record, or the last part of one
            found.append(messages.Record.FromString(whole))
            whole = b""
    return found


def _history(record: Any) -> dict[str, Any]:
    """The values of a step; those of a table by their dotted names."""
    return {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}


def _texts(folder: Path, step: int) -> list[str]:
    rows = [json.loads(line) for line in (folder / "rollouts" / f"{step:06d}.jsonl").read_text().splitlines()]
    return [completion["text"] for row in rows for completion in row["completions"]][:64]


class Flaky(SinkConfig):
    """A sink that fails while its file `down` exists, as a server does that cannot be reached."""

    may_fail = True

    def open(self, run: SinkRun) -> Sink:
        return FlakySink(run.directory)


class FlakySink(Sink):
    def __init__(self, folder: Path):
        self.down, self.got = folder / "down", folder / "got.jsonl"
        self.check()

    def check(self) -> None:
        if self.down.exists():
            raise ConnectionError("no route to host")

    def metrics(self, step, metrics):
        self.check()
        with self.got.open("a") as file:
            file.write(json.dumps([step, metrics]) + "\n")


def _got(folder: Path) -> list[int]:
    return [json.loads(line)[0] for line in (folder / "got.jsonl").read_text().splitlines()]


def _idle(sink: Tolerant) -> bool:
    return not sink._waiting


def test_a_tracker_that_fails_is_counted_and_gets_what_it_missed_later(tmp_path, caplog, monkeypatch):
    sink = Tolerant(Flaky(), SinkRun(tmp_path, {}, None))
    sink.metrics(1, {"a": 1.0})
    assert wait_for(lambda: _idle(sink), 20)
    (tmp_path / "down").touch()
    sink.metrics(2, {"a": 2.0})
    sink.metrics(3, {"a": 3.0})
    assert wait_for(lambda: sink.failures, 20)
    time.sleep(0.2)
    assert (sink.failures, _got(tmp_path)) == (1, [1]), "no second attempt during the pause"
    assert [record.getMessage().count("no route to host") for record in caplog.records] == [1], "warned once"
    (tmp_path / "down").unlink()
    sink.metrics(4, {"a": 4.0})
    sink.close()
    assert _got(tmp_path) == [1, 2, 3, 4]


def test_it_is_tried_again_after_the_pause(tmp_path, monkeypatch):
    monkeypatch.setattr(tolerant, "PAUSE_S", 0.1)
    (tmp_path / "down").touch()
    sink = Tolerant(Flaky(), SinkRun(tmp_path, {}, None))
    sink.metrics(1, {})
    sink.event({"metric": "a"})
    assert wait_for(lambda: sink.failures > 2, 20)
    (tmp_path / "down").unlink()
    assert wait_for(lambda: _idle(sink), 20)
    assert _got(tmp_path) == [1]
    sink.close()


def test_steps_that_a_tracker_never_got_are_named_at_the_end(tmp_path, caplog):
    (tmp_path / "down").touch()
    sink = Tolerant(Flaky(), SinkRun(tmp_path, {}, None))
    sink.metrics(1, {})
    sink.metrics(2, {})
    sink.close()
    assert "did not get steps 1 to 2" in caplog.records[-1].getMessage()


class Hanging(SinkConfig):
    """A sink that does not answer."""

    may_fail = True

    def open(self, run: SinkRun) -> Sink:
        time.sleep(600)
        raise AssertionError


class Exiting(SinkConfig):
    may_fail = True

    def open(self, run: SinkRun) -> Sink:
        raise SystemExit(0)


def test_a_tracker_that_does_not_answer_holds_nothing_up_and_what_waits_for_it_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(tolerant, "END_S", 0.5)
    start = time.monotonic()
    sink = Tolerant(Hanging(), SinkRun(tmp_path, {}, None))
    for step in range(1500):
        sink.metrics(step, {"a": 1.0})
        sink.rollouts(step, [])
        sink.event({"metric": "a"})
        sink.flush()
    waiting = Counter(method for method, _ in sink._waiting)
    assert waiting == tolerant.MOST_WAITING
    assert sink.dropped == 3 * 1500 - 1000 - 8 - 100
    sink.close()
    assert time.monotonic() - start < 30


TIMED = """
import json, sys, time
from cooper_rl import CooperTrainer, build_config
settings = json.loads(sys.argv[1])
begun = time.monotonic()
with CooperTrainer.from_config(build_config(settings)) as trainer:
    trainer.fit()
    fitted = time.monotonic()
print(json.dumps([fitted - begun, time.monotonic() - fitted]), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("listens", [True, False], ids=["accepts and never replies", "closed port"])
def test_an_mlflow_that_cannot_be_reached_holds_no_run_up(settings, tmp_path, listens):
    pytest.importorskip("mlflow", reason="MLflow (the extra `mlflow`) is not installed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        if not listens:
            server.close()
        run = {**settings, "kind": "rule", "steps": 1, "sinks": [{"kind": "mlflow"}]}
        begun = time.monotonic()
        command = [sys.executable, "-c", TIMED, json.dumps(run)]
        environment = {**os.environ, "MLFLOW_TRACKING_URI": uri}
        ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=400, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert "mlflow did not get steps 0 to 1" in ended.stderr
    fit_s, close_s = json.loads(ended.stdout)
    assert close_s < tolerant.END_S + 10
    assert time.monotonic() - begun - fit_s - close_s < 120, "nothing waits behind the end either"


def test_a_sink_that_exits_is_a_failure(tmp_path):
    sink = Tolerant(Exiting(), SinkRun(tmp_path, {}, None))
    assert wait_for(lambda: sink.failures == 1, 20)
    sink.close()


def test_a_run_goes_on_without_its_tracker_and_records_the_failures(settings, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "down").touch()
    config = build_config({**settings, "kind": "rule", "steps": 1, "evaluation": {"every": 0}, "sinks": [Flaky()]})
    with CooperTrainer.from_config(config) as trainer:
        trainer.fit()
    rows = read_metrics(trainer.directory)
    assert [(row["sinks/failures"], row["sinks/dropped"]) for row in rows] == [(1.0, 0.0)]


@pytest.mark.parametrize("kind", ["wandb", "trackio", "mlflow"])
def test_a_missing_tracker_is_reported_before_models_are_loaded(settings, kind, tmp_path, monkeypatch):
    """The folder `wandb` that Weights & Biases writes is no installed library."""
    (tmp_path / kind).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "PathFinder" in str(finder)])
    monkeypatch.delitem(sys.modules, kind, raising=False)
    config = build_config({**settings, "kind": "rule", "sinks": [{"kind": kind}]})
    with pytest.raises(MissingExtraError, match=f"extra `{kind}`.*pip install {kind}"):
        config.sinks[0].check()


def test_wandb_without_an_api_key_is_reported_before_models_are_loaded(settings, monkeypatch):
    pytest.importorskip("wandb.proto", reason="Weights & Biases (the extra `wandb`) is not installed")
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", "/nowhere")
    with pytest.raises(InputError, match="or WANDB_MODE=offline"):
        CooperTrainer.from_config(build_config({**settings, "kind": "rule", "sinks": [{"kind": "wandb"}]}))


def test_mlflow_gets_every_setting_under_its_dotted_name():
    settings = {"seed": 0, "policy": {"lora": None}, "rewards": [{"kind": "rule"}], "betas": [0.9, 0.99]}
    assert dict(flat(settings)) == {
        "seed": "0",
        "policy.lora": "null",
        "rewards.0.kind": "rule",
        "betas": "[0.9, 0.99]",
    }


def test_a_table_of_completions_is_short_and_has_one_type_a_column():
    rows = [
        {"problem": "p", "prompt": "q", "answer": "1", "completions": [{"text": "a", "reward": float("nan")}] * 2},
        {"problem": "r", "prompt": "s", "answer": "2", "completions": [{"text": "b", "reward": 1.0, "gold": True}] * 2},
    ]
    columns, cells = TrackerConfig().table(7, [*rows, *rows * 40])
    assert columns == ["step", "problem", "prompt", "answer", "text", "reward", "gold"]
    assert cells[:3] == [[7, "p", "q", "1", "a", None, None]] * 2 + [[7, "r", "s", "2", "b", 1.0, True]]
    assert len(cells) == 64
