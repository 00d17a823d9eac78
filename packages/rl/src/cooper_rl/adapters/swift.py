"""ms-swift: a reward function and a callback, both called `cooper`; see docs/trainers.md."""

# pyright: reportMissingImports=false

from typing import Any, ClassVar

from swift.callbacks import TrainerCallback, callbacks_map
from swift.rewards import ORM, orms

from cooper_base.errors import InputError
from cooper_rl.adapters.rows import by_row, folder_in, joined
from cooper_rl.adapters.served import client, columns, single


class SwiftCallback(TrainerCallback):
    """Ends the service's step with ms-swift's, and saves and restores both together."""

    trainer_of_this_process: ClassVar[Any] = None

    def __init__(self, args: Any, trainer: Any) -> None:
        super().__init__(args, trainer)
        SwiftCallback.trainer_of_this_process = trainer

    def on_train_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.global_step and state.is_world_process_zero:
            client().load(folder_in(args, state))

    def on_step_end(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        """Train the reward model. All processes have scored by now, because the optimizer's step waits for them."""
        if state.is_world_process_zero and client().info()["open"] is not None:
            client().update(state.global_step)  # its own count, so that the server refuses a step that is another one

    def on_save(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.is_world_process_zero:
            client().save(folder_in(args, state))


class CooperORM(ORM):
    """The reward. Processes send their own completions, and parts of a group share a `prompt_id`."""

    def __call__(self, completions: list[Any], trainer_state: Any, **given: Any) -> list[float]:
        """One reward per completion. Raises InputError if a column or the callback is missing."""
        trainer = SwiftCallback.trainer_of_this_process
        if trainer is None:
            raise InputError("ms-swift has the reward cooper, but not its callback; add --callbacks cooper")
        columns().check(given.keys())
        groups = []
        for i, completion in enumerate(completions):
            row = {name: values[i] for name, values in given.items() if isinstance(values, list)}
            problem = columns().problem(row)
            verdict = columns().verdict_in({**row, **(row.get("rollout_infos") or {})})
            run, stopped = _run(row, completion), not row.get("is_truncated")
            group = f"{row['prompt_id']}-{problem.id}"
            groups.append(single(problem, run, stopped, group, str(row["request_id"]), verdict))
        train = trainer.model.training  # evaluation comes the same way
        step = trainer_state.global_step + 1 if train else None
        scored = client().score(joined(groups), step=step, train=train, partial=True)
        return by_row(groups, scored.for_all())


def _run(row: dict[str, Any], completion: Any) -> Any:
    """The completion or, after several turns, the messages from the first of them on."""
    turns = (row.get("rollout_infos") or {}).get("num_turns", 1)
    messages = row.get("messages") or []
    by_assistant = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    return messages[by_assistant[-turns] :] if 1 < turns <= len(by_assistant) else completion


orms["cooper"] = CooperORM
callbacks_map["cooper"] = SwiftCallback
