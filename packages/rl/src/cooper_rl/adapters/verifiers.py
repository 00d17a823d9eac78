"""verifiers and prime-rl: a reward for any task whose data have question, answer and split; see docs/trainers.md."""

# pyright: reportMissingImports=false

from typing import Any

import verifiers.v1 as vf

from cooper_rl.adapters.served import async_client, columns, read_row, single


class CooperTask:
    """A mixin for tasks: inherit it beside `vf.Task`. The data need the fields `question`, `answer` and `split`."""

    @vf.reward
    async def cooper(self, task: Any, trace: vf.Trace) -> float:
        """The service's reward of the last branch. Its rule reads the last reply.

        Raises InputError if the data lack question, answer or split.
        """
        row, where = task.model_dump(), f"the data of task {task.name or task.idx}"
        problem, train = read_row(row, where)
        nodes = trace.branches[-1].nodes if trace.branches else []
        first = next((i for i, node in enumerate(nodes) if node.sampled), len(nodes))
        run = [node.message for node in nodes[first:]]
        completion = run if len(run) > 1 else trace.last_reply
        stopped = not trace.is_truncated
        verdict = columns().verdict_in({**row, **trace.info}, where)
        group = single(problem, completion, stopped, id=trace.id, verdict=verdict)
        scored = await async_client().score([group], train=train, partial=True)
        trace.record_metric("cooper_version", float(scored.version))
        return scored.for_all()[0][0]
