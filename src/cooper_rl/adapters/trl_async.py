"""TRL's AsyncGRPOTrainer: the reward is sent to a process of its own, and the service's client goes with it.

reward = AsyncGRPOReward(RewardClient(url), commit="count:1024")
AsyncGRPOTrainer(reward_funcs=reward, callbacks=[reward.callback], …)
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from transformers import TrainerCallback

from cooper_rl.adapters.rows import Columns, completion_text
from cooper_rl.rollouts import Answer, AnswerGroup
from cooper_rl.service.client import RewardClient

FOLDER = "cooper_reward"


class AsyncGRPOReward:
    """Scores a whole group at a time, by the version of the moment: steps overlap, so the service counts its own.

    `commit` says after how many answers it trains. A group is scored by one version; those of one optimizer step may be
    of several.
    """

    __name__ = "cooper"

    def __init__(
        self, client: RewardClient, commit: str, end_tokens: Sequence[int] = (), columns: Columns | None = None
    ) -> None:
        """`end_tokens` end a completion that was not cut off; without them none counts as cut off."""
        self.client = client
        self.commit = commit
        self.end_tokens = tuple(end_tokens)
        self.columns = columns or Columns()

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Sequence[Any], **columns: Any
    ) -> list[float | None]:
        """One reward for every completion of the group. Raises InputError for columns that are missing."""
        row = {name: values[0] for name, values in columns.items() if isinstance(values, list)}
        answers = [
            Answer(completion_text(text), not self.end_tokens or ids[-1] in self.end_tokens, tokens=len(ids))
            for text, ids in zip(completions, completion_ids, strict=True)
        ]
        problem = self.columns.problem(row, "the data set")
        scored = self.client.score([AnswerGroup(uuid4().hex, problem, answers)], commit=self.commit)
        return [*scored.rewards[0]]

    @property
    def callback(self) -> TrainerCallback:
        """Saves the service's reward with TRL's checkpoints, and loads it where TRL resumes."""
        return _Checkpoints(self.client)


class _Checkpoints(TrainerCallback):
    def __init__(self, client: RewardClient) -> None:
        self.client = client

    def on_train_begin(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.global_step and state.is_world_process_zero:
            self.client.load(_folder(args, state))

    def on_save(self, args: Any, state: Any, control: Any, **unused: Any) -> None:
        if state.is_world_process_zero:
            self.client.save(_folder(args, state))


def _folder(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}" / FOLDER
