"""SkyRL: the end of the service's steps, and checkpoints: `RayPPOTrainer(…, callbacks=[CooperCallback()])`."""

# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any

from skyrl.train.utils.callbacks import TrainingCallback

from cooper_rl.adapters.rows import FOLDER
from cooper_rl.adapters.served import client, end_step


class CooperCallback(TrainingCallback):
    """The fully asynchronous trainer takes no callback: start the service with `serve.commit=count:N` there."""

    def on_train_start(self, trainer: Any, callback_input: Any, control: Any) -> None:
        if callback_input.global_step:
            settings = trainer.cfg.trainer
            last = Path(settings.ckpt_path) / f"global_step_{callback_input.global_step}"
            resumed = Path(settings.resume_path) if settings.resume_mode == "from_path" else last
            client().load(resumed / FOLDER)

    def on_step_end(self, trainer: Any, callback_input: Any, control: Any) -> None:
        end_step()

    def on_save(self, trainer: Any, callback_input: Any, control: Any) -> None:
        client().save(Path(callback_input.ckpt_path) / FOLDER)
