"""The reward-hacking alarm on what any trainer logs: it is set on the method with which the trainer logs a step."""

import inspect
import logging
from collections.abc import Mapping
from functools import wraps
from typing import Any

from cooper_audit.run.hacking_alarm import HACKING, HackingAlarm
from cooper_base.errors import InputError

logger = logging.getLogger(__name__)

_LOGS = ("data", "metrics", "logs", "logs_dict")
_STEP = ("step", "global_step")
"""What loggers call the metrics of a step, and its number."""


class LogAlarm(HackingAlarm):
    """The alarm, with the names under which a trainer logs what it reads."""

    def __init__(self, reward: str, accuracy: str, cut_off: str | None = None) -> None:
        """`reward` is the mean of what the policy is paid, `accuracy` that of a measure that does not pay it, and
        `cut_off` the share of completions that reach the length limit."""
        super().__init__()
        self.signs: list[str] = []
        """The signs at the last step that had both."""
        self._names = {"reward/mean": reward, "rule/accuracy": accuracy}
        if cut_off is not None:
            self._names["rollout/cut_off_rate"] = cut_off

    def read(self, step: int, logs: Mapping[str, Any]) -> dict[str, float]:
        """The number of signs by its name in the log; empty unless the row has reward and accuracy. Warns of the first
        step with signs."""
        found = {name: float(logs[theirs]) for name, theirs in self._names.items() if _is_number(logs.get(theirs))}
        if not {"reward/mean", "rule/accuracy"} <= found.keys():
            return {}
        before, self.signs = self.signs, self.observe(step, found)
        if self.signs and not before:
            logger.warning("step %d: signs of reward hacking: %s", step, "; ".join(self.signs))
        return {HACKING: float(len(self.signs))}


def watch_logs(owner: Any, method: str, reward: str, accuracy: str, cut_off: str | None = None) -> LogAlarm:
    """Set the alarm on `owner.method`, a function with which a trainer logs the metrics of a step: each row that has
    both gets `watch/reward_hacking`, the number of signs.

    The method takes the metrics as `data`, `metrics`, `logs` or `logs_dict`, and the step as `step` or `global_step`.
    For the other arguments see `LogAlarm`. Raises InputError for a method that takes neither.
    """
    alarm, original = LogAlarm(reward, accuracy, cut_off), getattr(owner, method)
    signature = inspect.signature(original)
    logs, step = (next((name for name in names if name in signature.parameters), None) for names in (_LOGS, _STEP))
    if logs is None or step is None:
        raise InputError(f"{method}{signature}: no metrics ({', '.join(_LOGS)}) with a step ({', '.join(_STEP)})")

    @wraps(original)
    def watched(*args: Any, **kwargs: Any) -> Any:
        call = signature.bind(*args, **kwargs)
        given = call.arguments.get(logs)
        if isinstance(given, Mapping) and call.arguments.get(step) is not None:
            call.arguments[logs] = {**given, **alarm.read(int(call.arguments[step]), given)}
        return original(*call.args, **call.kwargs)

    setattr(owner, method, watched)
    return alarm


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
