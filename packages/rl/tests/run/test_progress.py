"""Progress lines in Python programs and in logs, without control characters."""

import os
import subprocess
import sys
from functools import partial

import pytest
import yaml

from cooper_base.pace import ProgressLines
from cooper_base.progress import Progress
from cooper_rl import CooperTrainer, build_config
from forks import start_script


def test_a_line_says_step_total_metrics_and_the_time_left():
    seconds = iter([100.0, 130.0])
    lines = ProgressLines("run", [("reward/mean", "reward")], every_s=10, clock=lambda: next(seconds))
    assert lines.line(0, 10, {"test/rule_avg": 0.5}) == "run 0/10"
    assert lines.line(2, 10, {"reward/mean": 0.53111, "time/step": 1.0}) == "run 2/10  reward 0.531  left 0:02:00"


def test_quick_steps_share_a_line_and_the_first_and_last_have_their_own():
    now = [0.0]
    lines = ProgressLines("run", every_s=10, clock=lambda: now[0])
    told = []
    for step in range(1, 101):
        told += [step] if lines.line(step, 100) else []
        now[0] += 0.5
    assert told == [1, 21, 41, 61, 81, 100]


def test_a_run_that_rolled_back_still_prints_lines():
    now = [0.0]
    lines = ProgressLines("run", every_s=0, clock=lambda: now[0])
    assert lines.line(5, 10) == "run 5/10"
    now[0] = 3.0
    assert lines.line(4, 10) == "run 4/10"


def test_a_line_inside_a_step_says_part_count_rate_and_time_left():
    now = [100.0]
    lines = ProgressLines("run", every_s=10, clock=lambda: now[0])

    def at(seconds, parts, *work, **more):
        now[0] = seconds
        return lines.line_within(Progress(("step 1", *parts), *work, **more))

    assert at(100, ["sample"], 0, 1000, "tokens", "0/4 completions", True) is None
    assert at(109, ["sample"], 90, 1000, "tokens", "1/4 completions", True) is None
    assert at(110, ["sample"], 100, 1000, "tokens", "1/4 completions", True) == (
        "run  step 1  sampling  100 of at most 1,000 tokens  1/4 completions  10/s  at most 0:01:30 left"
    )
    assert at(111, ["update_policy"], 0, 4, "rows", "gradients") is None
    assert at(121, ["update_policy"], 1, 4, "rows", "gradients") == (
        "run  step 1  updating the policy  1 of 4 rows  gradients  0.1/s  0:00:30 left"
    )
    assert lines.line(1, 2) == "run 1/2"


@pytest.fixture
def short_run(settings):
    return {**settings, "kind": "rule", "steps": 3, "evaluation": {"every": 0}}


def _run(program, *arguments, **environment):
    """What a separate program writes to the two streams."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment)


FIT = """
import sys, yaml
from cooper_rl import CooperTrainer, build_config
with CooperTrainer.from_config(build_config(yaml.safe_load(open(sys.argv[1])))) as trainer:
    trainer.fit()
"""


OUT_IS_A_FILE = """
import os, sys
os.dup2(os.open("stdout.txt", os.O_WRONLY | os.O_CREAT), 1)
sys.argv.append("run.yaml")
"""


def test_fit_says_how_far_it_is_in_a_program_that_sets_up_nothing(short_run, tmp_path):
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(short_run))
    (tmp_path / "program.py").write_text(OUT_IS_A_FILE + FIT)
    program = start_script(tmp_path / "program.py", tmp_path / "stderr.txt", tmp_path)
    program.join()
    said = (tmp_path / "stderr.txt").read_text()
    assert program.exitcode == 0, said
    assert "The policy reads:" in said
    assert [line.split()[1] for line in said.splitlines() if line.startswith("run ")] == ["1/3", "3/3"]
    assert (tmp_path / "stdout.txt").read_text() == ""


def test_fit_says_how_much_it_is_and_how_far_inside_steps_and_evaluations(settings, monkeypatch, caplog):
    caplog.set_level("INFO", "cooper_rl")
    monkeypatch.setattr("cooper_rl.run.trainer.ProgressLines", partial(ProgressLines, every_s=0))
    with CooperTrainer.from_config(build_config({**settings, "steps": 2})) as trainer:
        trainer.fit()
    said = caplog.text
    assert (
        "run: 2 of 2 steps, each sampling 16 completions (4 problems, 4 each) of at most 12 tokens: at most 192 tokens "
        "a step; evaluations of 12 completions before, every 2 steps and after"
    ) in said
    lines = [line.partition("run  ")[2] for line in said.splitlines() if "run  " in line]
    for begin, within in {
        "evaluating": "0/6 problems  ",
        "step 1  sampling": " tokens  16/16 completions",
        "step 1  checking answers": "",
        "step 1  scoring": "of 16 rows  scores",
        "step 1  updating the policy": "rows  gradients",
        "step 2  updating the reward model": "rows  gradients",
    }.items():
        assert [line for line in lines if line.startswith(begin) and within in line], begin


@pytest.mark.slow
@pytest.mark.parametrize("setup", ["logging.basicConfig()", "logging.getLogger('cooper_rl').setLevel('WARNING')"])
def test_a_program_that_sets_up_logging_decides_itself(short_run, tmp_path, setup):
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(short_run))
    assert "1/3" not in _run(f"import logging\n{setup}\n{FIT}", tmp_path / "run.yaml").stderr


def test_a_caller_with_on_step_hears_it_there_alone(short_run, caplog):
    caplog.set_level("INFO", "cooper_rl")
    steps = []
    with CooperTrainer.from_config(build_config(short_run)) as trainer:
        trainer.fit(on_step=lambda step, metrics: steps.append(step))
    assert steps == [1, 2, 3]
    assert "run 1/3" not in caplog.text


@pytest.mark.slow
def test_the_log_of_the_command_holds_lines_and_no_control_characters(short_run, tmp_path):
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(short_run))
    program = "from cooper_base.cli.main import app; app()"
    said = _run(program, "train", tmp_path / "run.yaml", COLUMNS="60").stderr
    lines = [line for line in said.splitlines() if line.startswith("run ")]
    assert [line.split()[1] for line in lines] == ["1/3", "3/3"]
    assert lines[-1].endswith("left 0:00:00")
    assert "reward " in lines[0]
    assert "rule " in lines[0]
    assert not [one for one in said if not one.isprintable() and one != "\n"]
