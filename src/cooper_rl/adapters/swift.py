"""ms-swift: a reward function and a callback, both called `cooper`.

    echo "import cooper_rl.adapters.swift" > plugin.py
    swift rlhf --rlhf_type grpo --external_plugins plugin.py --reward_funcs cooper --callbacks cooper …

ms-swift puts the folder of a plugin in front of every import, so let it be a file of your own. The data set needs the
columns `question` and `answer`; ms-swift hands every column on.
"""

# pyright: reportMissingImports=false

from pathlib import Path
from typing import Any, ClassVar

from swift.callbacks import TrainerCallback, callbacks_map
from swift.rewards import ORM, orms

from cooper_rl.adapters.rows import by_row, completion_text, joined
from cooper_rl.adapters.served import client, columns
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Answer, AnswerGroup

FOLDER = "cooper_reward"


class CooperCallback(TrainerCallback):
    """Ends the service's step with ms-swift's, and saves and restores both together."""

    trainer_of_this_process: ClassVar[Any] = None

    def __init__(self, args: Any, trainer: Any) -> None:
        super().__init__(args, trainer)
        CooperCallback.trainer_of_this_process = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """Where ms-swift resumes, take the service back to the checkpoint."""
        if state.global_step and state.is_world_process_zero:
            client().load(_folder(args, state))

    def on_step_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """All processes have scored by now, for the optimizer's step waits for them."""
        if state.is_world_process_zero and client().info()["open"] is not None:
            client().update(state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """Save the service's reward beside what ms-swift has saved."""
        if state.is_world_process_zero:
            client().save(_folder(args, state))


class CooperORM(ORM):
    """Every process sends its own completions; `prompt_id` is the same in all of them, so groups may be split."""

    def __call__(self, completions: list[Any], trainer_state: Any, **given: Any) -> list[float]:
        """One reward for every completion. Raises InputError for missing columns and a missing callback."""
        trainer = CooperCallback.trainer_of_this_process
        if trainer is None:
            raise InputError("ms-swift has the reward cooper, but not its callback; add --callbacks cooper")
        columns().check(given.keys())
        groups = []
        for i, completion in enumerate(completions):
            row = {name: values[i] for name, values in given.items() if isinstance(values, list)}
            problem = columns().problem(row)
            answer = Answer(completion_text(completion), not row.get("is_truncated"), id=str(row["request_id"]))
            groups.append(AnswerGroup(f"{row['prompt_id']}-{problem.id}", problem, [answer]))
        train = trainer.model.training  # evaluation comes the same way
        step = trainer_state.global_step + 1 if train else None
        scored = client().score(joined(groups), step=step, train=train, partial=True)
        return by_row(groups, scored.rewards)


def _folder(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}" / FOLDER


orms["cooper"] = CooperORM
callbacks_map["cooper"] = CooperCallback
