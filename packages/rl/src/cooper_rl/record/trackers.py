"""Trackers: metrics, completions and alarms as a run of MLflow, trackio or Weights & Biases."""

import json
import math
import os
import re
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any, ClassVar, Literal

from cooper_audit.run.run_record import flat
from cooper_base.errors import InputError
from cooper_base.files.durable import read_fields, write_text
from cooper_rl.record import SINKS, Sink, SinkConfig, SinkRun, require

TABLE_ROWS = 64
"""Most completions in a table, which a tracker shows as a page."""
TABLES_EVERY = 20
"""Steps between tables. The rollout files in the run's folder hold every step."""
TRACKERS_FILE = "trackers.json"
"""The file in a run's folder with the identifier of the run in every tracker."""


class TrackerConfig(SinkConfig):
    """The settings that every tracker has."""

    may_fail: ClassVar[bool] = True

    project: str = "cooper"
    """Project of the tracker that the run appears in, under its `name`."""

    def takes_rollouts(self, step: int) -> bool:
        return step == 1 or step % TABLES_EVERY == 0

    def table(self, step: int, rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
        """Column names and cells of a step's first completions, without lists and mappings; None if not finite."""
        completions = [
            {"step": step, "problem": row["problem"], "prompt": row["prompt"], "answer": row["answer"], **completion}
            for row in rows
            for completion in row["completions"]
        ][:TABLE_ROWS]
        plain = (name for cells in completions for name, value in cells.items() if not isinstance(value, list | dict))
        names = [*dict.fromkeys(plain)]
        return names, [[_cell(completion.get(name)) for name in names] for completion in completions]

    def tracked_id(self, run: SinkRun) -> str | None:
        """The identifier of the run in this tracker; None for a new run."""
        return None if run.purge_step is None else _identifiers(run).get(self._place)

    def remember_id(self, run: SinkRun, identifier: str) -> None:
        identifiers = _identifiers(run) | {self._place: identifier}
        write_text(run.directory / TRACKERS_FILE, json.dumps(identifiers, indent=1) + "\n")

    @property
    def _place(self) -> str:
        return f"{getattr(self, 'kind')}/{self.project}"  # noqa: B009 - every tracker has a kind


def _cell(value: Any) -> Any:
    is_unfit = isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value))
    return None if is_unfit else value


def _identifiers(run: SinkRun) -> dict[str, str]:
    path = run.directory / TRACKERS_FILE
    return read_fields(path, {}, "delete it, and the resumed run is a new one in its trackers") if path.exists() else {}


class Tracker(Sink):
    """A sink for a tracker. A subclass sends a `table` of completions."""

    config: TrackerConfig

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        self.table(step, *self.config.table(step, rows))

    def table(self, step: int, columns: list[str], data: list[list[Any]]) -> None:
        raise NotImplementedError


PARAMS, METRICS = 100, 1000
"""The largest batches that a server of MLflow accepts."""
TABLES_TAG = "mlflow.loggedArtifacts"
"""The tag in which MLflow looks for the tables of a run."""
TABLES_LISTED = 20
"""Number of newest tables in that tag. Its length is limited."""


@SINKS.register
class MLflow(TrackerConfig):
    """A run of MLflow. `project` is its experiment. The library itself reads MLFLOW_TRACKING_URI: a server such as
    `http://host:5000`, or a database; without it, the file `mlflow.db` in the working folder."""

    kind: Literal["mlflow"] = "mlflow"

    def check(self) -> None:
        """A store on this machine is opened; a server is not asked."""
        packages = "mlflow-skinny sqlalchemy alembic"
        require("mlflow", "mlflow", "MLflow", packages)
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if uri is not None and uri.startswith(("http", "databricks")):
            return
        require("sqlalchemy", "mlflow", "SQLAlchemy, for a store on this machine,", packages)
        mlflow = import_module("mlflow")
        try:
            mlflow.MlflowClient()
        except mlflow.MlflowException as error:
            raise InputError(f"sinks: kind: mlflow: MLFLOW_TRACKING_URI {uri}: {error}") from error

    def open(self, run: SinkRun) -> Sink:
        return MLflowSink(self, run)


class MLflowSink(Tracker):
    """Logs to a run through MLflow's client, which writes at once."""

    def __init__(self, config: MLflow, run: SinkRun):
        self.config = config
        self._mlflow = import_module("mlflow")
        self._client = self._mlflow.MlflowClient()
        self._steps, self._last_step = run.settings["steps"], 0
        if tracked := config.tracked_id(run):
            self._id = tracked
            self._client.update_run(tracked, status="RUNNING")
        else:
            self._id = self._client.create_run(self._experiment(), run_name=run.settings["name"]).info.run_id
            params = [(_allowed(name), value) for name, value in flat(run.settings).items() if value != "{}"]
            self._log("params", [self._mlflow.entities.Param(*param) for param in params], PARAMS)
            config.remember_id(run, self._id)
        self._client.log_artifact(self._id, str(run.directory / "config.yaml"))

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        now = max(int(1000 * time.time()), 0)  # MLflow takes no time before 1970
        rows = [self._mlflow.entities.Metric(_allowed(name), value, now, step) for name, value in metrics.items()]
        self._log("metrics", rows, METRICS)
        self._last_step = step

    def table(self, step: int, columns: list[str], data: list[list[Any]]) -> None:
        """Like MLflow's `log_table`, but replaces the table of a step that is repeated."""
        path = f"rollouts/{step:06d}.json"
        self._client.log_dict(self._id, {"columns": columns, "data": data}, path)
        tables = json.loads(self._client.get_run(self._id).data.tags.get(TABLES_TAG, "[]"))
        tables = [table for table in tables if table["path"] != path] + [{"path": path, "type": "table"}]
        self._client.set_tag(self._id, TABLES_TAG, json.dumps(tables[-TABLES_LISTED:]))

    def event(self, event: dict[str, Any]) -> None:
        """The newest message on a metric is a tag of the run."""
        said = f"step {event['step']}: {event['message']}"
        self._client.set_tag(self._id, _allowed(f"fault.{event['metric']}"), said)

    def close(self) -> None:
        self._client.set_terminated(self._id, "FINISHED" if self._last_step == self._steps else "KILLED")

    def _log(self, kind: str, rows: Sequence[Any], most: int) -> None:
        for first in range(0, len(rows), most):
            self._client.log_batch(self._id, **{kind: rows[first : first + most]})

    def _experiment(self) -> str:
        experiment = self._client.get_experiment_by_name(self.config.project)
        if experiment is None:
            try:
                return self._client.create_experiment(self.config.project)
            except self._mlflow.MlflowException:  # another process has created it in the meantime
                experiment = self._client.get_experiment_by_name(self.config.project)
                if experiment is None:
                    raise
        return experiment.experiment_id


def _allowed(name: str) -> str:
    return re.sub(r"[^\w\-. :/]", "_", name, flags=re.ASCII)


class TrackioError(Exception):
    """Trackio failed to write something in the background."""


@SINKS.register
class Trackio(TrackerConfig):
    """A run of trackio on this machine. TRACKIO_DIR names the local folder."""

    kind: Literal["trackio"] = "trackio"

    def check(self) -> None:
        require("trackio", "trackio", "trackio", "trackio")

    def open(self, run: SinkRun) -> Sink:
        return TrackioSink(self, run)


class TrackioSink(Tracker):
    """The library continues a run by its name, so each new name ends in random digits.

    It writes in the background, twice a second, and reports a failure there as a Python warning only; `flush` makes it
    known to the run at the next step.
    """

    def __init__(self, config: Trackio, run: SinkRun):
        self.config = config
        self._trackio = import_module("trackio")
        new_name = f"{run.settings['name'].replace('/', '-')}-{secrets.token_hex(2)}"
        name = config.tracked_id(run) or new_name
        with redirect_stdout(sys.stderr):  # the library prints; standard output is for results
            self._run = self._trackio.init(
                project=config.project,
                name=name,
                config=run.settings,
                resume="allow",
                embed=False,
            )
        config.remember_id(run, name)

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        self.flush()
        self._run.log(dict(metrics), step=step)

    def table(self, step: int, columns: list[str], data: list[list[Any]]) -> None:
        self._run.log({"rollouts": self._trackio.Table(columns=columns, data=data)}, step=step)

    def event(self, event: dict[str, Any]) -> None:
        levels = self._trackio.AlertLevel
        level = levels.WARN if event["action"] == "warn" else levels.ERROR
        with redirect_stdout(sys.stderr):
            self._run.alert(event["metric"], event["message"], level=level, step=event["step"])

    def flush(self) -> None:
        """Raises TrackioError if writing has failed in the background since the last call."""
        # Private, but the only place where the library keeps this: the names of the failures it has warned of. It
        # warns of each once; emptied, the set lets it warn again.
        if failures := getattr(self._run, "_warned_failures", None):
            names = ", ".join(sorted(failures))
            failures.clear()
            raise TrackioError(f"failed in the background, and a batch may be lost ({names}); see its Python warning")

    def close(self) -> None:
        with redirect_stdout(sys.stderr):
            self._run.finish()
        self.flush()


FLUSH_S = 1.0
"""Seconds after which an offline run is written to its file. A kill loses as much as this; the library's default is
15."""


@SINKS.register
class Wandb(TrackerConfig):
    """A run of Weights & Biases. Its local files are in the folder `wandb` of the run. The library itself reads
    WANDB_ENTITY (the user or team that owns the project), WANDB_RUN_GROUP, WANDB_TAGS and WANDB_MODE: `offline` writes
    files only, for `wandb sync`."""

    kind: Literal["wandb"] = "wandb"

    def check(self) -> None:
        """Asks for an API key on a terminal if there is none."""
        require("wandb", "wandb", "Weights & Biases", "wandb")
        if (os.environ.get("WANDB_MODE") or "online") != "online":
            return
        wandb = import_module("wandb")
        try:
            wandb.login(verify=False)
        except wandb.errors.UsageError as error:
            raise InputError(
                "sinks: kind: wandb: no API key; run `wandb login`, set WANDB_API_KEY, or WANDB_MODE=offline"
            ) from error

    def open(self, run: SinkRun) -> Sink:
        return WandbSink(self, run)


class WandbSink(Tracker):
    """The step is a metric, and the x axis: the library's own counter cannot go back as a resumed run does."""

    def __init__(self, config: Wandb, run: SinkRun):
        wandb = import_module("wandb")
        self.config = config
        self._table = wandb.Table
        identifier = config.tracked_id(run) or secrets.token_hex(4)
        options: dict[str, Any] = {}
        if "x_transaction_log_flush_interval" in wandb.Settings.model_fields:
            options["settings"] = wandb.Settings(x_transaction_log_flush_interval=FLUSH_S)
        self._run = wandb.init(
            project=config.project,
            id=identifier,
            name=run.settings["name"],
            dir=run.directory,
            config=run.settings,
            allow_val_change=True,
            resume="allow",
            reinit="create_new",
            **options,
        )
        config.remember_id(run, identifier)
        self._run.define_metric("step", hidden=True)
        self._run.define_metric("*", step_metric="step")

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        self._run.log({"step": step, **metrics})

    def table(self, step: int, columns: list[str], data: list[list[Any]]) -> None:
        self._run.log({"step": step, "rollouts": self._table(columns=columns, data=data)}, commit=False)

    def event(self, event: dict[str, Any]) -> None:
        level = "WARN" if event["action"] == "warn" else "ERROR"
        self._run.alert(f"step {event['step']}: {event['metric']}"[:63], event["message"], level=level)

    def close(self) -> None:
        self._run.finish()
