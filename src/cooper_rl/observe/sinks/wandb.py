"""Metrics, completions and alarms as a run of Weights & Biases."""

import os
import secrets
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal

from cooper_rl.errors import InputError
from cooper_rl.observe.sinks import SINKS, Sink, SinkRun, TrackerConfig, require

FLUSH_S = 1.0
"""Seconds after which the file of an offline run is written. With the default of 15, a kill loses as much."""


@SINKS.register
class Wandb(TrackerConfig):
    """A run of Weights & Biases. Its local files are in the folder `wandb` of the run."""

    kind: Literal["wandb"] = "wandb"
    entity: str | None = None
    """User or team that owns the project. The default is that of your account."""
    group: str | None = None
    """Group of runs that this run belongs to, such as the seeds of one experiment."""
    tags: tuple[str, ...] = ()
    """Tags of the run."""
    mode: Literal["online", "offline"] | None = None
    """`offline` writes files only, for `wandb sync`. The default is WANDB_MODE or, if that is not set, `online`."""

    def check(self) -> None:
        """Asks for an API key on a terminal if there is none."""
        require("wandb", "wandb", "Weights & Biases", "wandb")
        if (self.mode or os.environ.get("WANDB_MODE") or "online") != "online":
            return
        wandb = import_module("wandb")
        try:
            wandb.login(verify=False)
        except wandb.errors.UsageError as error:
            raise InputError(
                "sinks: kind: wandb: no API key; run `wandb login`, set WANDB_API_KEY, or set mode: offline"
            ) from error

    def open(self, run: SinkRun) -> Sink:
        return WandbSink(self, run)


class WandbSink(Sink):
    """Logs to an open run.

    The step is a metric of its own and the x axis of all others, because the library's own counter cannot go back to
    the steps that a resumed run repeats.
    """

    def __init__(self, config: Wandb, run: SinkRun):
        wandb = import_module("wandb")
        self._config = config
        self._table = wandb.Table
        identifier = config.tracked_id(run) or secrets.token_hex(4)
        options: dict[str, Any] = {"mode": config.mode} if config.mode else {}
        if "x_transaction_log_flush_interval" in wandb.Settings.model_fields:
            options["settings"] = wandb.Settings(x_transaction_log_flush_interval=FLUSH_S)
        self._run = wandb.init(
            entity=config.entity,
            project=config.project,
            group=config.group,
            tags=config.tags or None,
            id=identifier,
            name=config.shown_name(run),
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

    def rollouts(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        if self._config.wants_rollouts(step):
            columns, data = self._config.table(step, rows)
            self._run.log({"step": step, "rollouts": self._table(columns=columns, data=data)}, commit=False)

    def event(self, event: dict[str, Any]) -> None:
        level = "WARN" if event["action"] == "warn" else "ERROR"
        self._run.alert(f"step {event['step']}: {event['metric']}"[:63], event["message"], level=level)

    def close(self) -> None:
        self._run.finish()
