"""Metrics, completions and alarms as a run of MLflow."""

import json
import os
import re
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal

from cooper_rl.errors import InputError
from cooper_rl.observe.run_record import flat
from cooper_rl.observe.sinks import SINKS, Sink, SinkRun, TrackerConfig, require

PARAMS, METRICS = 100, 1000
"""The largest batches that a server accepts."""
TABLES_TAG = "mlflow.loggedArtifacts"
"""The tag in which MLflow looks for the tables of a run."""
TABLES_LISTED = 20
"""Number of newest tables in that tag. Its length is limited."""


@SINKS.register
class MLflow(TrackerConfig):
    """A run of MLflow. `project` is its experiment."""

    kind: Literal["mlflow"] = "mlflow"
    tracking_uri: str | None = None
    """A server such as `http://host:5000`, or a database such as `sqlite:///mlflow.db`. The default is
    MLFLOW_TRACKING_URI or, if that is not set, MLflow's own: the file `mlflow.db` in the working folder."""

    def check(self) -> None:
        """A store on this machine is opened; a server is not asked."""
        packages = "mlflow-skinny sqlalchemy alembic"
        require("mlflow", "mlflow", "MLflow", packages)
        uri = self.tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        if uri is not None and uri.startswith(("http", "databricks")):
            return
        require("sqlalchemy", "mlflow", "SQLAlchemy, for a store on this machine,", packages)
        mlflow = import_module("mlflow")
        try:
            mlflow.MlflowClient(tracking_uri=uri)
        except mlflow.MlflowException as error:
            raise InputError(f"sinks: kind: mlflow: tracking_uri {uri}: {error}") from error

    def open(self, run: SinkRun) -> Sink:
        return MLflowSink(self, run)


class MLflowSink(Sink):
    """Logs to a run through MLflow's client, which writes at once."""

    def __init__(self, config: MLflow, run: SinkRun):
        self._config = config
        self._mlflow = import_module("mlflow")
        self._client = self._mlflow.MlflowClient(tracking_uri=config.tracking_uri)
        self._steps, self._last_step = run.settings["steps"], 0
        if known := config.tracked_id(run):
            self._id = known
            self._client.update_run(known, status="RUNNING")
        else:
            self._id = self._client.create_run(self._experiment(), run_name=config.shown_name(run)).info.run_id
            params = [(_allowed(name), value) for name, value in flat(run.settings).items() if value != "{}"]
            self._log("params", [self._mlflow.entities.Param(*param) for param in params], PARAMS)
            config.remember_id(run, self._id)
        self._client.log_artifact(self._id, str(run.directory / "config.yaml"))

    def metrics(self, step: int, metrics: dict[str, float]) -> None:
        now = int(1000 * time.time())
        rows = [self._mlflow.entities.Metric(_allowed(name), value, now, step) for name, value in metrics.items()]
        self._log("metrics", rows, METRICS)
        self._last_step = step

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """Write the table as MLflow's `log_table` does, but replace the table of a step that is repeated."""
        if not self._config.wants_rollouts(step):
            return
        columns, data = self._config.table(step, rows)
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
        found = self._client.get_experiment_by_name(self._config.project)
        if found is None:
            try:
                return self._client.create_experiment(self._config.project)
            except self._mlflow.MlflowException:  # another process has made it since
                found = self._client.get_experiment_by_name(self._config.project)
                if found is None:
                    raise
        return found.experiment_id


def _allowed(name: str) -> str:
    """The name with the characters replaced that MLflow refuses."""
    return re.sub(r"[^\w\-. :/]", "_", name, flags=re.ASCII)
