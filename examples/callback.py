"""A callback that cools the sampling down while a run goes on, and ends the run once it is good enough."""

from typing import Any

from cooper_rl import Callback, CooperTrainer


class Cooling(Callback):
    """Samples less at random after every step, and stops at `enough` accuracy."""

    enough = 0.99

    def before_step(self, trainer: CooperTrainer, step: int) -> None:
        trainer.change({"rollout.temperature": max(0.7, 1.0 - 0.1 * step)})

    def after_step(self, trainer: CooperTrainer, step: int, metrics: dict[str, Any]) -> None:
        print(f"own callback: step {step} sampled at {trainer.config.rollout.temperature:.1f}")
        if metrics["rule/accuracy"] >= self.enough:
            trainer.request_stop()


if __name__ == "__main__":
    from tiny_run import train

    train(callbacks=["callback:Cooling"], steps=2)
