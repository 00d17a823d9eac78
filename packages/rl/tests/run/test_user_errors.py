"""An exception of the user's code comes with that code's own frames, and the rest is in a file or behind a switch."""

import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
import yaml

from cooper_base.errors import show_users_frames
from cooper_rl import Callback, CooperTrainer, build_config

HERE = Path(__file__).name


def look_up(key):
    return {}[key]


def broken_reward(problem, completion):
    return look_up(problem.id)


async def broken_async_reward(problem, completion):
    return look_up(problem.id)


def broken_rule(problem, text):
    return look_up("verdict")


class BrokenCallback(Callback):
    def after_step(self, trainer, step, metrics):
        look_up(step)


def _frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


FUNCTION = {"kind": "function", "weight": 0.1}


@pytest.mark.parametrize(
    ("changes", "function"),
    [
        (
            {"rewards": [{"kind": "function", "function": "test_user_errors:broken_reward", "weight": 0.1}]},
            "broken_reward",
        ),
        (
            {"rewards": [{"kind": "function", "function": "test_user_errors:broken_async_reward"}]},
            "broken_async_reward",
        ),
        ({"rule": {"kind": "test_user_errors:broken_rule"}}, "broken_rule"),
        ({"callbacks": ["test_user_errors:BrokenCallback"]}, "BrokenCallback.after_step"),
    ],
    ids=["reward", "async reward", "rule", "callback"],
)
def test_fit_raises_it_with_the_users_frames_and_keeps_all_in_the_run(changes, short_run, function):
    trainer = CooperTrainer.from_config(build_config({**short_run, **changes}))
    with trainer, pytest.raises(KeyError) as caught:
        trainer.fit()
    names = _frames(caught.value)
    assert names[-2:] == [function.rpartition(".")[2], "look_up"]
    assert len(names) == 3  # this test's comes first
    path = trainer.directory / "error.txt"
    note = f"raised in test_user_errors:{function}, {HERE}:"
    assert caught.value.__notes__[0].startswith(note)
    assert str(path) in caught.value.__notes__[0]
    assert "in cooper_step" in path.read_text() or "in _steps" in path.read_text()


@pytest.fixture
def short_run(settings):
    return {**settings, "kind": "rule", "steps": 1, "evaluation": {"every": 0}}


@pytest.mark.slow
def test_the_command_line_shows_no_other_frame(short_run, tmp_path):
    reward = {"kind": "function", "function": "test_user_errors:broken_reward", "weight": 0.1}
    settings = {**short_run, "output_dir": str(tmp_path), "rewards": [reward]}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(settings))
    environment = os.environ | {"PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"}
    command = [str(Path(sys.executable).parent / "cooper"), "train", str(tmp_path / "run.yaml")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    shown = done.stderr[done.stderr.index("Traceback") :]
    assert shown.count("  File ") == 5  # the first three are of the script and of what starts the command
    assert "in broken_reward" in shown
    assert "raised in test_user_errors:broken_reward" in shown


def test_a_switch_shows_every_frame_and_an_exception_without_a_users_frame_is_left_alone(monkeypatch):
    library = KeyError("x")
    show_users_frames(library)
    assert not hasattr(library, "__notes__")
    with pytest.raises(KeyError) as caught:
        look_up(1)
    whole = caught.value.__traceback__
    monkeypatch.setenv("COOPER_DEBUG", "1")
    show_users_frames(caught.value)
    assert caught.value.__traceback__ is whole
