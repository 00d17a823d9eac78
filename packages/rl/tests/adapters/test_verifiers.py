"""A verifiers task with our reward, scored by verifiers."""

# pyright: reportMissingImports=false, reportCallIssue=false

import asyncio

import pytest
from rows import row_of, texts_of

vf = pytest.importorskip("verifiers.v1", reason="verifiers is not installed")


def task_of(row):
    from cooper_rl.adapters.verifiers import CooperTask

    class Data(vf.TaskData):
        question: str | None = None
        answer: str | None = None
        solution: str | None = None
        metadata: str = "{}"
        split: str | None = None

    class Task(CooperTask, vf.Task[Data]):
        pass

    return Task(Data(idx=0, prompt=row["question"], **row))


def trace_of(task, text: str):
    from verifiers.v1.trace import AgentInfo, TraceTask

    trace = vf.Trace(task=TraceTask(type="Task", data=task.data), agent=AgentInfo.model_construct())
    trace.root_reply = text
    return trace


def test_verifiers_scores_a_trace_through_the_service(service, problems):
    async def run():
        traces = []
        for problem in problems:
            task = task_of(row_of(problem))
            for text in texts_of(problem):
                traces.append(trace_of(task, text))
                await task.score(traces[-1])
        test = task_of(row_of(problems[0], "test"))
        await test.score(trace_of(test, "so 4"))
        return traces

    traces = asyncio.run(run())
    assert all(0 < trace.reward < 1 for trace in traces)
    assert traces[0].metrics["cooper_version"] == 0
    assert service.info()["open"] == {"step": 1, "groups": 8, "answers": 32}


def test_data_without_a_split_are_told(service, problems):
    task = task_of(row_of(problems[0]))
    task.data = vf.TaskData(idx=3, prompt="x")
    with pytest.raises(Exception, match="the data of task 3 has no column 'question'"):
        asyncio.run(task.score(trace_of(task, "so 4")))
