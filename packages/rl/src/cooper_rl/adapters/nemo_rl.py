"""NeMo-RL: an environment that asks the service. docs/trainers.md says how to name it and what the rows need."""

# pyright: reportMissingImports=false

from collections.abc import Sequence
from typing import Any

import ray
import torch
from nemo_rl.environments.interfaces import EnvironmentInterface, EnvironmentReturn

from cooper_base.errors import InputError
from cooper_rl.adapters.rows import by_row, joined
from cooper_rl.adapters.served import client, columns, read_row, single


class ServedEnvironment(EnvironmentInterface[Any]):
    """One turn; for tools, override `respond` and name your class in `ray.remote`.

    NeMo-RL does not say what was cut off, so every answer counts as complete.
    """

    def __init__(self, cfg: Any = None) -> None:
        self.cfg = cfg

    def respond(self, messages: Sequence[dict[str, Any]], row: dict[str, Any]) -> str | None:
        """What the environment says to the last of these messages; None ends the run. It may leave a verdict in the
        `row` of metadata."""
        return None

    def step(self, message_log_batch: Sequence[Sequence[Any]], metadata: Sequence[Any]) -> EnvironmentReturn[Any]:
        """Rewards [B], 0 for a run that goes on. Raises InputError if `extra_env_info` lacks a field."""
        rows = [read_row(row or {}, "extra_env_info") for row in metadata]
        if len({train for _, train in rows}) > 1:
            raise InputError("a batch has training and test rows; validate on a data set of its own")
        runs = [_run(log) for log in message_log_batch]
        said = [self.respond(run, row) for run, row in zip(runs, metadata, strict=True)]
        ended = [i for i, text in enumerate(said) if text is None]
        groups = [
            single(rows[i][0], runs[i], stopped=True, verdict=columns().verdict_in(metadata[i], "extra_env_info"))
            for i in ended
        ]
        rewards = torch.zeros(len(rows))
        if groups:
            scored = client().score(joined(groups), train=rows[0][1], partial=True)
            rewards[ended] = torch.tensor(by_row(groups, scored.for_all()))
            for i, verdict in zip(ended, by_row(groups, scored.verdicts), strict=True):
                said[i] = verdict
        terminateds = torch.zeros(len(rows))
        terminateds[ended] = 1
        return EnvironmentReturn(
            observations=[{"role": "environment", "content": text or ""} for text in said],
            metadata=list(metadata),
            next_stop_strings=[None] * len(rows),
            rewards=rewards,
            terminateds=terminateds,
            answers=[problem.answer for problem, _ in rows],
        )

    def global_post_process_and_metrics(self, batch: Any) -> tuple[Any, dict[str, float]]:
        return batch, {"cooper/reward": batch["rewards"].float().mean().item()}


def _run(log: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a log after its prompt: the last one, or all from before this environment's first word."""
    said = [i for i, message in enumerate(log) if message["role"] == "environment"]
    return list(log[max(0, said[0] - 1) if said else -1 :])


CooperEnvironment = ray.remote(ServedEnvironment)
"""What NeMo-RL starts."""
