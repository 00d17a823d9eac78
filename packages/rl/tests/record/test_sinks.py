"""Metrics, completions and events of a run reach every sink in its configuration, including a user's own."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from cooper_audit.run.run_record import read_events, read_metrics
from cooper_rl import CooperTrainer, MissingExtraError, build_config
from cooper_rl.record import TensorBoard

OWN_SINK = """
import json
from cooper_rl.record import Sink, SinkConfig

class Lines(SinkConfig):
    file: str = "lines.jsonl"
    def open(self, run):
        return LinesSink(run, run.directory / self.file)

class LinesSink(Sink):
    def __init__(self, run, path):
        self.file = path.open("a")
        self.write("open", run.purge_step, run.settings["seed"])
    def write(self, *row):
        self.file.write(json.dumps(row) + "\\n")
    def metrics(self, step, metrics):
        self.write("metrics", step, metrics)
    def rollouts(self, step, rows):
        self.write("rollouts", step, [row["problem"] for row in rows])
    def event(self, event):
        self.write("event", event["step"], event)
    def flush(self):
        self.file.flush()
        self.write("flush", None, None)
    def close(self):
        self.file.close()
"""


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    module = f"my_sink_{uuid4().hex}"
    (tmp_path / f"{module}.py").write_text(OWN_SINK)
    monkeypatch.syspath_prepend(str(tmp_path))
    return f"{module}:Lines"


def run(settings, resume=False):
    with CooperTrainer.from_config(build_config(settings), resume) as trainer:
        trainer.fit()
    return trainer.directory


def lines(folder):
    return [json.loads(line) for line in (folder / "lines.jsonl").read_text().splitlines()]


def test_a_users_sink_receives_everything_that_is_recorded(settings, sink):
    rule = {"metric": "reward/mean", "above": -1, "action": "warn"}
    folder = run({**settings, "kind": "rule", "steps": 2, "sinks": [{"kind": sink}], "watch": [rule]})
    rows = lines(folder)
    assert rows[0] == ["open", None, settings.get("seed", 0)]
    recorded = [[row["step"], {k: v for k, v in row.items() if k != "step"}] for row in read_metrics(folder)]
    assert [row[1:] for row in rows if row[0] == "metrics"] == recorded
    completions = (folder / "rollouts" / "000001.jsonl").read_text().splitlines()
    assert ["rollouts", 1, [json.loads(line)["problem"] for line in completions]] in rows
    assert [row[2] for row in rows if row[0] == "event"] == read_events(folder)
    assert read_events(folder) != []
    assert rows[-1][0] == "flush", "the last checkpoint stands only where the record of its steps does"
    assert (folder / "tensorboard").is_dir(), "on by itself beside the others"


def test_a_resumed_run_tells_its_sinks_which_steps_are_repeated(settings, sink):
    rule_run = {**settings, "kind": "rule", "sinks": [{"kind": sink, "file": "lines.jsonl"}]}
    run({**rule_run, "steps": 1})
    rows = lines(run({**rule_run, "steps": 2}, resume=True))
    assert [row[1] for row in rows if row[0] == "open"] == [None, 2]


def test_a_missing_tensorboard_is_reported_before_models_are_loaded(settings, monkeypatch):
    monkeypatch.setattr("cooper_rl.record.find_spec", lambda name: None)
    config = build_config({**settings, "kind": "rule", "sinks": [{"kind": "tensorboard"}]})
    assert config.sinks == (TensorBoard(),)
    with pytest.raises(MissingExtraError, match="pip install tensorboard"):
        CooperTrainer.from_config(config)
