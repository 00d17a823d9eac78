"""verifiers and prime-rl: a reward for any task whose data have question, answer and split; see docs/trainers.md."""

# pyright: reportMissingImports=false

from typing import Any

import verifiers.v1 as vf

from cooper_rl.adapters.served import async_client, read_row, single


class CooperTask:
    """A mixin for tasks: inherit it beside `vf.Task`. The data need the fields `question`, `answer` and `split`."""

    @vf.reward
    async def cooper(self, task: Any, trace: vf.Trace) -> float:
        """The service's reward of the last reply. Raises InputError if the data lack question, answer or split."""
        row = task.model_dump()
        problem, train = read_row(row, f"the data of task {task.name or task.idx}")
        stopped = not trace.is_truncated
        group = single(problem, trace.last_reply, stopped, id=trace.id)
        scored = await async_client().score([group], train=train, partial=True)
        trace.record_metric("cooper_version", float(scored.version))
        return scored.rewards[0][0]
