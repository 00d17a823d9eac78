"""TRL in two processes: one reward model scores for both, and learns from both."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl import Answer, AnswerGroup, CooperReward

pytest.importorskip("trl", reason="needs the extra trl")

HERE = Path(__file__).parent


def launched(models: Path, output: Path, *more: str) -> subprocess.CompletedProcess:
    output.mkdir()
    roots = [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "OMP_NUM_THREADS": "1"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, str(HERE / "in_several_processes.py"), str(models), str(output), *more]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_two_processes_share_one_reward_model(tiny_models, tmp_path):
    from trl_runs import GROUP, reward_config

    output = tmp_path / "run"
    ended = launched(tiny_models, output)
    assert ended.returncode == 0, ended.stderr[-3000:]
    ranks = [json.loads((output / f"rank-{rank}.json").read_text()) for rank in (0, 1)]
    assert [rank["has_model"] for rank in ranks] == [True, False]
    problems = {problem.id: problem for problem in arithmetic_problems("train", 64)}
    with CooperReward.from_config(reward_config(tiny_models)) as alone:
        for step, parts in enumerate(zip(ranks[0]["calls"], ranks[1]["calls"], strict=True), start=1):
            ids, texts, rewards = (
                [x for part in parts for x in part[name]] for name in ("ids", "completions", "rewards")
            )
            assert len(rewards) == 3 * GROUP
            groups = [
                AnswerGroup(f"{start}", problems[ids[start]], [Answer(text) for text in texts[start : start + GROUP]])
                for start in range(0, len(ids), GROUP)
            ]
            if step == 1:  # the same weights give the same rewards, whichever process an answer came from
                scored = alone.score(groups, train=False).rewards
                assert rewards == [reward for group in scored for reward in group]
    state = json.loads((output / "checkpoint-2" / "cooper_reward" / "reward.json").read_text())
    assert (state["version"], state["last_step"]) == (2, 2)


@pytest.mark.slow
def test_a_failure_in_the_first_process_ends_both(tiny_models, tmp_path):
    output = tmp_path / "run"
    ended = launched(tiny_models, output, "fail")
    assert ended.returncode != 0
    assert "the first process has no scorer" in (output / "error-0.txt").read_text()
    assert "the process that owns the reward has failed" in (output / "error-1.txt").read_text()
