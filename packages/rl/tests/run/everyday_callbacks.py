"""Callbacks of the tests, which a run loads by name."""

from pathlib import Path
from typing import Any

from cooper_rl import Callback, CooperTrainer


class Calls(Callback):
    """Writes down what it is called with, and changes a setting at every second step that it has seen."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []
        self.count = 0

    def before_step(self, trainer: CooperTrainer, step: int) -> None:
        self.seen.append(("before", step, trainer.config.rollout.temperature))

    def after_step(self, trainer: CooperTrainer, step: int, metrics: dict[str, float]) -> None:
        self.seen.append(("after", step, "reward/mean" in metrics))
        self.count += 1
        if self.count % 2 == 0:
            rate = trainer.config.policy.learning_rate / 2
            trainer.change({"rollout.temperature": 1 - self.count / 10, "policy.learning_rate": rate})

    def on_evaluation(self, trainer: CooperTrainer, step: int, metrics: dict[str, float]) -> None:
        self.seen.append(("evaluation", step, "test/rule_avg" in metrics))

    def on_save(self, trainer: CooperTrainer, step: int, folder: Path) -> None:
        self.seen.append(("save", step, folder.name))

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


class Stops(Callback):
    """Ends the run after its second step."""

    def after_step(self, trainer: CooperTrainer, step: int, metrics: dict[str, float]) -> None:
        if step == 2:
            trainer.request_stop()


class ChangesOnSave(Callback):
    """Changes a setting where that is refused."""

    def on_save(self, trainer: CooperTrainer, step: int, folder: Path) -> None:
        trainer.change({"rollout.temperature": 0.5})
