"""The user's code that a run calls between steps, and the settings that it may change."""

import copy
import fnmatch
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cooper_base.config.user_functions import load_object
from cooper_base.errors import InputError

if TYPE_CHECKING:
    from cooper_rl.engines.base import Metrics
    from cooper_rl.run.trainer import CooperTrainer

CHANGEABLE = (
    *("policy.learning_rate", "reward_model.learning_rate", "algorithm.*", "evaluation.every", "checkpoint.*"),
    *(f"rollout.{name}" for name in ("temperature", "top_p", "top_k", "max_tokens", "min_tokens", "stop")),
    *("rollout.n", "rollout.resample"),
)
"""Settings that `CooperTrainer.change` takes, with `*` for any end. Everything else is built into the run's parts."""


class Callback:
    """Override what you need. An exception ends the run. `trainer.change` changes settings, and
    `trainer.request_stop` ends the run after a checkpoint."""

    def before_step(self, trainer: "CooperTrainer", step: int) -> None:
        """Before step number `step`."""

    def after_step(self, trainer: "CooperTrainer", step: int, metrics: "Metrics") -> None:
        """After the step and its evaluation, with all their metrics, and before its checkpoint."""

    def on_evaluation(self, trainer: "CooperTrainer", step: int, metrics: "Metrics") -> None:
        """After every evaluation, also the one before the first step (`step` 0), with its metrics alone."""

    def on_save(self, trainer: "CooperTrainer", step: int, folder: Path) -> None:
        """After a checkpoint was written into `folder`. Settings cannot change here: it would lack the change."""

    def state(self) -> dict[str, Any]:
        """The state that a resumed run needs, as JSON values. Called before the run, each step and each checkpoint."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""


def load_callback(path: str) -> type[Callback]:
    """The class at `package.module:Class`. Raises InputError if there is none, or if it is no `Callback`."""
    loaded = load_object(path, "class")
    if not (isinstance(loaded, type) and issubclass(loaded, Callback)):
        raise InputError(f"callbacks: {path} is no subclass of cooper_rl.Callback")
    return loaded


class Callbacks:
    """The callbacks of a run: those `passed` to it in Python, then those that its settings name."""

    def __init__(self, passed: Sequence[Callback], paths: Sequence[str]) -> None:
        self._passed, self._paths = list(passed), paths
        self._states_before_run = _states(passed)
        self._callbacks = self._passed + [load_callback(path)() for path in paths]

    def __iter__(self) -> Iterator[Callback]:
        return iter(self._callbacks)

    def renew(self) -> None:
        """Return to the callbacks of before the run. Those that the settings name are built again; those that were
        passed in Python restore the state that they had."""
        self._callbacks = self._passed + [load_callback(path)() for path in self._paths]
        self.restore(self._states_before_run)

    def states(self) -> list[dict[str, Any]]:
        return _states(self._callbacks)

    def restore(self, states: Sequence[dict[str, Any]]) -> None:
        """Restore what `states` returned. If the settings name other callbacks by now, those without a state keep the
        one that they have."""
        for callback, state in zip(self._callbacks, copy.deepcopy(states), strict=False):
            callback.restore(state)


def _states(callbacks: Sequence[Callback]) -> list[dict[str, Any]]:
    # Copies: a callback may return an object that it goes on to change.
    return [copy.deepcopy(callback.state()) for callback in callbacks]


def check_changeable(name: str) -> None:
    """Raises InputError for a setting that cannot change while a run goes on."""
    if not any(fnmatch.fnmatchcase(name, pattern) for pattern in CHANGEABLE):
        raise InputError(f"{name} cannot change during a run; what can: {', '.join(CHANGEABLE)}")
