"""NeMo-RL: an environment that asks the service. docs/trainers.md says how to name it and what the rows need."""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from typing import Any

import ray
import torch
from nemo_rl.environments.interfaces import EnvironmentInterface, EnvironmentReturn

from cooper_rl.adapters.rows import by_row, completion_text, joined
from cooper_rl.adapters.served import client, read_row, single
from cooper_rl.errors import InputError


class ServedEnvironment(EnvironmentInterface[Any]):
    """An environment of one turn. NeMo-RL does not say what was cut off, so every answer counts as complete."""

    def __init__(self, cfg: Any = None) -> None:
        self.cfg = cfg

    def step(self, message_log_batch: Sequence[Sequence[Any]], metadata: Sequence[Any]) -> EnvironmentReturn[Any]:
        """Rewards [B]. Raises InputError if `extra_env_info` lacks question, answer or split."""
        rows = [read_row(row or {}, "extra_env_info") for row in metadata]
        if len({train for _, train in rows}) > 1:
            raise InputError("a batch has training and test rows; validate on a data set of its own")
        texts = map(completion_text, message_log_batch)
        groups = [single(problem, text, stopped=True) for (problem, _), text in zip(rows, texts, strict=True)]
        scored = client().score(joined(groups), train=rows[0][1], partial=True)
        rewards = torch.tensor(by_row(groups, scored.rewards))
        return EnvironmentReturn(
            observations=[{"role": "environment", "content": one} for one in by_row(groups, scored.verdicts)],
            metadata=list(metadata),
            next_stop_strings=[None] * len(groups),
            rewards=rewards,
            terminateds=torch.ones_like(rewards),
            answers=[problem.answer for problem, _ in rows],
        )

    def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
        return batch, {"cooper/reward": batch["rewards"].float().mean().item()}


CooperEnvironment = ray.remote(ServedEnvironment)
"""What NeMo-RL starts."""
