"""What other libraries' own writers leave on disk, where they are installed. `test_reading_files.py` has
their layouts."""

import os
import subprocess
import sys

import pytest

from cooper_audit.rollouts.formats import chosen_format
from cooper_audit.rollouts.reading import Source, read_steps

TRACKIO = """
import sys, pandas, trackio
trackio.init(project="audit", name="run-1")
for step in (1, 2):
    table = {"step": [step] * 2, "prompt": ["What is 2 + 3?"] * 2, "completion": [f"It is {step}", "It is 5"]}
    table |= {"right": [float("nan"), 1.0], "short": [0.5, 0.25], "advantage": [-1.0, 1.0]}
    trackio.log({"reward": 0.5})
    trackio.log({"completions": trackio.Table(dataframe=pandas.DataFrame(table))})
    pandas.DataFrame(table).to_parquet(f"completions_{step:05d}.parquet")
trackio.finish()
"""
INSPECT = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate, system_message
for said, cut in (("It is 3", "stop"), ("It is 5", "max_tokens")):
    output = ModelOutput.from_content("mockllm/model", said, stop_reason=cut)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=[output] * 2)
    samples = [Sample(id="a", input="What is 2 + 3?", target=["5", "five"])]
    task = Task(dataset=samples, solver=[system_message("Be short."), generate()], scorer=[match(), includes()])
    eval(task, model=model, epochs=2, log_dir="logs", log_format=sys.argv[1], display="none")
"""
VERIFIERS = """
import sys
from pathlib import Path
from verifiers.v1.configs.agent import WireAgentConfig
from verifiers.v1.episode import EnvInfo, Episode
from verifiers.v1.graph import MessageNode
from verifiers.v1.task import WireTaskData
from verifiers.v1.trace import AgentInfo, ModelCall, Reward, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, SystemMessage, UserMessage
from verifiers.v1.utils.trace_store import write_episode
data = WireTaskData.model_validate({"idx": 1, "prompt": "What is 2 + 3?", "answer": "5"})
for step, said, cut in ((1, "It is 3", "stop"), (2, "It is 5", "length")):
    folder = Path(f"rollouts/step_{step}/train/all")
    folder.mkdir(parents=True)
    for _ in range(2):
        texts = (SystemMessage, "Be short."), (UserMessage, "What is 2 + 3?"), (AssistantMessage, said)
        nodes = [MessageNode(message=kind(content=text)) for kind, text in texts]
        nodes[1].parent, nodes[2].parent, nodes[2].sampled = 0, 1, True
        task = TraceTask(type="Task", data=data, key="a")
        rewards = {"right": Reward(score=4.0 * (step - 1), weight=0.5), "unknown": None}
        trace = Trace(
            task=task, agent=AgentInfo(config=WireAgentConfig()), nodes=nodes, ok=True,
            calls=[ModelCall(node=2, finish_reason=cut)], rewards=rewards, is_completed=True,
        )
        write_episode(folder, Episode(env=EnvInfo(id="e"), task=task, traces=[trace], ok=True))
"""
VERIFIERS_BEFORE_V1 = """
from pathlib import Path
from verifiers.types import State
from verifiers.utils.save_utils import save_outputs, state_to_output
asked = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What is 2 + 3?"}]
for step, said, cut in ((1, "It is 3", False), (2, "It is 5", True)):
    state = State()
    state.update(example_id=3, prompt=asked, completion=[{"role": "assistant", "content": said}], answer="5")
    state.update(reward=2.0 * (step - 1), is_truncated=cut, is_completed=True, metrics={"right": 1.0}, trajectory=[])
    state.update(timing={"generation_ms": 1.0, "scoring_ms": 1.0, "total_ms": 2.0, "start_time": 0.0})
    save_outputs([state_to_output(state)] * 2, Path(f"results/step_{step}"))
"""


def written(program, folder, *arguments):
    """The folder in which a library's own code has written. Skips where the library, or this version, is missing."""
    environment = os.environ | {"TRACKIO_DIR": str(folder / "trackio"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    error = ended.stderr.strip().rpartition("\n")[2]
    if error.startswith(("ModuleNotFoundError", "AttributeError")):  # a package says so of parts that it has not
        pytest.skip(error)
    assert ended.returncode == 0, ended.stderr
    return folder


def read(path, *given):
    source = Source()
    return source, dict(read_steps([path], source, chosen_format(None, given)))


def test_trackio_holds_what_the_parquet_holds(tmp_path):
    folder = written(TRACKIO, tmp_path)
    (tmp_path / "parquet").mkdir()
    for path in folder.glob("*.parquet"):
        path.rename(tmp_path / "parquet" / path.name)
    sources, steps = zip(*(read(tmp_path / name) for name in ("trackio", "parquet")), strict=True)
    values = [
        {
            step: [(row.question, row.answer, row.reward, row.advantage) for row in rows]
            for step, rows in read_rows.items()
        }
        for read_rows in steps
    ]
    assert values[0] == values[1]
    assert [row.reward for row in steps[0][2]] == [0.5, 1.25]
    assert {*sources[0].rewards} == {*sources[1].rewards} == {"right", "short"}


@pytest.mark.parametrize(
    ("program", "arguments", "path", "name"),
    [
        (INSPECT, ["eval"], "logs", "inspect"),
        (INSPECT, ["json"], "logs", "inspect"),
        (VERIFIERS, [], "rollouts", "prime-rl"),
        (VERIFIERS_BEFORE_V1, [], "results", "verifiers"),
    ],
)
def test_rows_of_two_steps(tmp_path, program, arguments, path, name):
    given = ["step=$file"] if name == "inspect" else []
    source, steps = read(written(program, tmp_path, *arguments) / path, *given)
    assert source.format is not None
    assert (source.format.name, source.rows, source.left_out) == (name, 4, {})
    rows = [row for step in (1, 2) for row in steps[step]]
    assert {row.question for row in rows} == {"What is 2 + 3?"}
    assert {row.prompt for row in rows} == {"Be short.\n\nWhat is 2 + 3?"}
    assert len({row.group for row in rows}) == 1
    assert {row.references[0] for row in rows} == {"5"}
    assert [row.answer.text for row in rows] == ["It is 3", "It is 3", "It is 5", "It is 5"]
    assert [row.answer.stopped for row in rows] == [True, True, False, False]
    assert [row.reward for row in rows] == [0.0, 0.0, 2.0, 2.0]
