"""SkyRL: the end of the service's steps, and checkpoints: `RayPPOTrainer(…, callbacks=[CooperCallback()])`.

The fully asynchronous trainer takes no callback: start the service with `serve.commit=count:N` there, N the answers of
a step.
"""

# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any

from skyrl.train.utils.callbacks import TrainingCallback

from cooper_rl.adapters.served import client

FOLDER = "cooper_reward"


class CooperCallback(TrainingCallback):
    """Ends the service's step with SkyRL's, and saves and restores both together."""

    def on_train_start(self, trainer: Any, callback_input: Any, control: Any) -> None:
        """Where SkyRL has resumed, take the service back to that checkpoint."""
        if callback_input.global_step:
            settings = trainer.cfg.trainer
            last = Path(settings.ckpt_path) / f"global_step_{callback_input.global_step}"
            resumed = Path(settings.resume_path) if settings.resume_mode == "from_path" else last
            client().load(resumed / FOLDER)

    def on_step_end(self, trainer: Any, callback_input: Any, control: Any) -> None:
        """Train the reward model on the step's answers."""
        opened = client().info()["open"]
        if opened is not None:
            client().update(opened["step"])

    def on_save(self, trainer: Any, callback_input: Any, control: Any) -> None:
        """Save the service's reward beside what SkyRL has saved."""
        client().save(Path(callback_input.ckpt_path) / FOLDER)
