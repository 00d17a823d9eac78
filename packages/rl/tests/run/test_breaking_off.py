"""A step that is broken off is repeated by the resumed run, which then equals one that was never stopped."""

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_base.progress import Listener, listening
from cooper_rl import CooperTrainer, build_config
from crash.comparison import differences

PLACES = [
    *("sampling", "gradients", "evaluation"),
    *(pytest.param(place, marks=pytest.mark.slow) for place in ("rollouts ahead", "log-probabilities")),
]


def _fit(settings, resume=False, wanted=None):
    """Run; ask for the end where `wanted` says of the progress that it should come. Returns the trainer."""
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:

        def told(at):
            if wanted is not None and wanted(at):
                trainer.request_stop()

        with listening(Listener(told)):
            trainer.fit(lambda step, metrics: None)
    return trainer


def _is_in(place):
    """Whether the work is in step 2, or in the evaluation after it, at this place."""
    if place == "evaluation":
        seen = []

        def in_the_second(at):
            seen.extend([at] if at.parts == ("evaluate",) and not at.total else [])
            return len(seen) == 2 and at.unit == "tokens"

        return in_the_second
    if place in ("sampling", "rollouts ahead"):
        return lambda at: at.parts == ("step 2", "sample") and at.done > 0
    return lambda at: at.parts == ("step 2", "update_policy") and at.note == place


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_wherever_it_was_the_resumed_run_is_the_same(settings, tmp_path, place):
    settings |= {"checkpoint": {"every": 0}}
    settings["policy"] |= {"tokens_per_microbatch": 64}  # several micro-batches
    settings["cooptimization"] |= {"before_policy": None}  # weights that have begun to change are the next test's
    if place == "rollouts ahead":
        settings["rollout"] |= {"lag": 1}
        settings["algorithm"] |= {
            "loss": {"kind": "ppo_clip", "truncated_importance_sampling": 2},
            "recompute_old_logprobs": True,
        }
    if place == "log-probabilities":
        settings["algorithm"] |= {"recompute_old_logprobs": True}
    _fit({**settings, "output_dir": str(tmp_path / "whole")})
    stopped = _fit(settings, wanted=_is_in(place))
    before = 2 if place == "evaluation" else 1
    assert (stopped.completed_steps, stopped.interrupted) == (before, True)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == [f"{before:06d}"]
    assert [row["step"] for row in read_metrics(tmp_path / "run")] == [0, 1]
    resumed = _fit(settings, resume=True)
    assert resumed.completed_steps == 4
    (tmp_path / "run" / "checkpoints" / f"{before:06d}").rename(tmp_path / "earlier")
    assert differences(tmp_path / "run", tmp_path / "whole" / "run", folders={"tensorboard"}) == []


@pytest.mark.parametrize(("every", "last"), [pytest.param(0, 2, marks=pytest.mark.slow), (1, 1)])
def test_weights_that_have_begun_to_change_are_finished_unless_a_checkpoint_has_the_step_before(
    settings, tmp_path, every, last
):
    settings |= {"checkpoint": {"every": every}, "evaluation": {"every": 0}, "steps": 3}
    stopped = _fit(settings, wanted=lambda at: at.parts[:2] == ("step 2", "update_reward_model"))
    assert stopped.completed_steps == last
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == [f"{last:06d}"]
    _fit(settings, resume=True)
    _fit({**settings, "output_dir": str(tmp_path / "whole")})
    own = {"tensorboard", "checkpoints"}
    assert differences(tmp_path / "run", tmp_path / "whole" / "run", folders=own) == []


def test_the_first_step_is_broken_off_without_a_trace(settings, tmp_path):
    stopped = _fit({**settings, "evaluation": {"every": 0}}, wanted=lambda at: at.unit == "tokens")
    assert (stopped.completed_steps, stopped.interrupted) == (0, True)
    assert not list((tmp_path / "run").glob("checkpoints/*"))
