"""TRL's AsyncGRPOTrainer: it sends the reward, with the service's client, to a process of its own."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from transformers import TrainerCallback

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_rl.adapters.rows import Columns, folder_in, or_none
from cooper_rl.service.client import RewardClient


class AsyncGRPOReward:
    """Scores one whole group per call with the current version of the reward model.

    Steps overlap in this trainer, so the service counts its own; `commit` says after how many answers it trains. Groups
    of one optimizer step may be scored by different versions.
    """

    __name__ = "cooper"

    def __init__(
        self, client: RewardClient, commit: str, end_tokens: Sequence[int] = (), columns: Columns | None = None
    ) -> None:
        """A completion that does not end in one of `end_tokens` was cut off; without them, none counts as cut off."""
        self.client, self.commit = client, commit
        self.end_tokens, self.columns = tuple(end_tokens), columns or Columns()

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        """One reward per completion of the group, None without an opinion. Raises InputError if a column is missing."""
        row = {name: values[0] for name, values in columns.items() if isinstance(values, list)}
        environments = columns.get("environments") or [None] * len(completions)
        verdicts = [getattr(environment, "verdict", None) for environment in environments]
        answers = [
            Answer.of(text, not self.end_tokens or ids[-1] in self.end_tokens, tokens=len(ids), verdict=verdict)
            for text, ids, verdict in zip(completions, completion_ids, verdicts, strict=True)
        ]
        problem = self.columns.problem(row, "the data set")
        scored = self.client.score([AnswerGroup(uuid4().hex, problem, answers)], commit=self.commit)
        return or_none(scored.rewards[0])

    @property
    def callback(self) -> TrainerCallback:
        """Saves the service's reward with TRL's checkpoints, and loads it if TRL resumes."""
        return _Checkpoints(self.client)


class _Checkpoints(TrainerCallback):
    def __init__(self, client: RewardClient) -> None:
        self.client = client

    def on_train_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.global_step and state.is_world_process_zero:
            self.client.load(folder_in(args, state))

    def on_save(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.is_world_process_zero:
            self.client.save(folder_in(args, state))
