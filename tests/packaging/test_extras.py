"""Each extra of each package alone: installed in an empty environment, what it is for runs.

`pytest -m slow -n 0 tests/packaging/test_extras.py` has those without torch, `-m long` all.
"""

import re
import tomllib

import pytest

from bare_environment import Environment
from repository import PACKAGES, ROOT

PARQUET = """
from pathlib import Path
import pyarrow, pyarrow.parquet as parquet
from cooper_base.data.readers import read_file
parquet.write_table(pyarrow.table({"question": ["1+1?"], "answer": ["2"]}), "rows.parquet")
print([row.fields for row in read_file(Path("rows.parquet"))])
"""
JUDGE = """
from cooper_verify.clients.chat import ChatClient, ChatConfig
print(ChatClient(ChatConfig(base_url="http://127.0.0.1:9/v1", model="m", api_key_env=None)).config.model)
"""
TASKS = """
from cooper_verify.problems.reasoning_gym import reasoning_gym_problems
print(reasoning_gym_problems({"basic_arithmetic": {}}, "train", 2))
"""
RUN = """
import json
from pathlib import Path
from cooper_audit import load_run
run = Path("run")
(run / "rollouts").mkdir(parents=True)
(run / "config.yaml").write_text("name: run\\n")
(run / "metrics.jsonl").write_text(json.dumps({"step": 1, "reward/mean": 0.5}) + "\\n")
"""
EXAMPLES = {
    ("base", "data"): PARQUET + "import datasets; print(datasets.__version__)",
    ("verify", "judges"): JUDGE,
    ("verify", "reasoning-gym"): TASKS,
    ("audit", "data"): PARQUET,
    ("audit", "notebook"): RUN + "print(load_run(run).metrics)",
    ("audit", "plots"): RUN
    + "from cooper_audit.report.load_run import curves_figure\nfrom cooper_audit.run.run_record import read_run\n"
    + "print(curves_figure([read_run(run)], ['reward/mean']))",
    ("rl", "cluster"): "from cooper_rl.engines.scale.ray import ranks, session, vllm_engines; print(session.__doc__)",
    ("rl", "data"): PARQUET,
    ("rl", "lab"): "import cooper_lab; print(cooper_lab.__doc__)",
    ("rl", "lora"): "from cooper_rl.engines.local import adapter; import peft; print(peft.__version__)",
    ("rl", "mlflow"): "from cooper_rl.record.trackers import MLflow; MLflow().check(); print('there')",
    ("rl", "notebook"): RUN + "print(load_run(run).metrics)",
    ("rl", "reasoning-gym"): TASKS,
    ("rl", "serve"): "from cooper_rl.service import server, client; from cooper_rl.service.config import check_extra; "
    "check_extra(); print(client.RewardClient('http://127.0.0.1:9').url)",
    ("rl", "tensorboard"): "from cooper_rl.record import TensorBoard; TensorBoard().check(); print('there')",
    ("rl", "trackio"): "from cooper_rl.record.trackers import Trackio; Trackio().check(); print('there')",
    ("rl", "trl"): "from cooper_rl.adapters.trl import GRPOReward; import trl; print(GRPOReward.NAME, trl.__version__)",
    ("rl", "wandb"): "from cooper_rl.record.trackers import Wandb; Wandb().check(); print('there')",
}
"""What an extra is for, as code that prints. `vllm` needs a GPU; docs/vllm.md has a test of its own."""
ON_A_GPU = {("rl", "vllm")}


def extras() -> dict[tuple[str, str], list[str]]:
    """The extras of all packages, each with its requirements."""
    declared = {}
    for package in PACKAGES:
        project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        for extra, needs in project.get("optional-dependencies", {}).items():
            declared[package.name, extra] = needs
    return declared


def test_every_extra_has_an_example():
    assert set(extras()) == EXAMPLES.keys() | ON_A_GPU


def test_an_extra_has_what_its_rooms_import():
    """`httpx` came with huggingface_hub, until that took another client."""
    rooms = {"cluster": "engines/scale", "vllm": "engines/scale/vllm", "serve": "service"}
    for extra, room in rooms.items():
        files = (ROOT / "packages/rl/src/cooper_rl" / room).rglob("*.py")
        imported = {
            name for file in files for name in re.findall(r"^\s*import (httpx|ray|fastapi)\b", file.read_text(), re.M)
        }
        needs = {re.split(r"[\[><=]", need)[0] for need in extras()["rl", extra]}
        assert imported <= needs | ({"ray"} if extra == "vllm" else set()), f"{extra}: {imported - needs} is missing"


@pytest.mark.slow
@pytest.mark.xdist_group("packages")
@pytest.mark.parametrize(
    ("package", "extra"),
    [pytest.param(package, extra, marks=[pytest.mark.long] if package == "rl" else []) for package, extra in EXAMPLES],
)
def test_an_extra_alone_runs_what_it_is_for(package, extra, built, tmp_path):
    printed, _ = Environment(package, built, tmp_path / "environment", extra).python(EXAMPLES[package, extra])
    assert printed.strip()
    assert "Traceback" not in printed
