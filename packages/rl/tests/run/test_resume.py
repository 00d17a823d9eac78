"""A resumed run continues from its checkpoint and logs any difference, and a run survives a full disk."""

import resource
import shutil

import pytest
import torch

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_rl import CooperTrainer, InputError, build_config
from slow_members import first_fast


@pytest.fixture
def rule(settings):
    """The quickest kind of run, with a checkpoint after every step."""
    return {**settings, "kind": "rule", "evaluation": {"every": 0}, "checkpoint": {"every": 1}}


def _fit(settings, resume=False, on_step=None):
    with CooperTrainer.from_config(build_config(settings), resume=resume) as trainer:
        trainer.fit(on_step)
    return trainer


def _weights(trainer):
    return [parameter.detach().clone() for parameter in trainer.parts.policy.model.parameters()]


def _timeless(directory):
    return [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(directory)]


@pytest.fixture
def limit_files():
    """Imitate a full disk: writes to files longer than this many bytes fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_run_goes_on_when_a_checkpoint_does_not_fit_on_the_disk(rule, limit_files, caplog):
    whole = _fit({**rule, "name": "whole"})
    disk = {1: resource.RLIM_INFINITY, 2: 20_000, 3: resource.RLIM_INFINITY}
    with CooperTrainer.from_config(build_config(rule)) as trainer:

        def on_step(step, _):  # before the step's checkpoint
            limit_files(disk[step])
            if step == 3:
                trainer.request_stop()

        trainer.fit(on_step)
    assert "CHECKPOINT OF STEP 2 NOT WRITTEN" in caplog.text
    assert [row["checkpoint/failed_writes"] for row in read_metrics(trainer.directory)] == [0, 0, 1]
    checkpoints = trainer.directory / "checkpoints"
    assert sorted(path.name for path in checkpoints.iterdir()) == ["000001", "000003"]
    assert all(map(torch.equal, _weights(_fit(rule, resume=True)), _weights(whole)))


def test_a_run_whose_last_checkpoint_does_not_fit_says_so(rule, limit_files):
    with CooperTrainer.from_config(build_config({**rule, "steps": 2, "checkpoint": {"every": 0}})) as trainer:
        limit_files(20_000)
        with pytest.raises(InputError, match=r"step 2 could not be written: .*too large.* begin again"):
            trainer.fit()
        limit_files(resource.RLIM_INFINITY)
        assert list((trainer.directory / "checkpoints").iterdir()) == []
        trainer.save_checkpoint()  # there is room again


@pytest.mark.slow
def test_a_record_that_cannot_be_written_ends_the_run_which_then_goes_on(rule, limit_files):
    whole = _fit({**rule, "name": "whole"})
    disk = {1: 100, 3: 2000}  # the rollouts of step 2, and the metrics of step 3, no longer fit
    for full_after, size in disk.items():
        (tmp := whole.directory.parent / f"full-{full_after}")
        with CooperTrainer.from_config(build_config({**rule, "name": tmp.name})) as trainer:

            def on_step(step, _, full_after=full_after, size=size):
                if step == full_after:
                    limit_files(size)

            with pytest.raises(InputError, match=rf"{tmp}/.*: cannot be written \(File too large\); make room"):
                trainer.fit(on_step)
            limit_files(resource.RLIM_INFINITY)
        resumed = _fit({**rule, "name": tmp.name}, resume=True)
        assert _timeless(resumed.directory) == _timeless(whole.directory)


def test_the_best_step_gets_a_checkpoint_of_its_own(settings):
    best = {"every": 0, "keep": 1, "keep_best": "test/cut_off_rate"}
    settings = {**settings, "kind": "rule", "checkpoint": best, "evaluation": {"every": 1, "k": 2}}
    trainer = _fit(settings)
    measured = {row["step"]: row["test/cut_off_rate"] for row in read_metrics(trainer.directory) if row["step"]}
    kept = {int(path.name) for path in (trainer.directory / "checkpoints").iterdir()}
    assert kept == {max(measured, key=lambda step: measured[step]), 4}


@pytest.mark.parametrize("metric", ["test/rule_avg", "monitor/accuracy"])
def test_a_keep_best_metric_that_is_never_measured_is_bad_input(rule, metric):
    with pytest.raises(InputError, match=f"keep_best: {metric} is measured by"):
        build_config({**rule, "checkpoint": {"keep_best": metric}})


def test_a_changed_setting_is_logged(rule, caplog):
    _fit({**rule, "steps": 1})
    changed = {**rule, "steps": 2, "policy": {**rule["policy"], "learning_rate": 5e-4}, "checkpoint": {"every": 7}}
    _fit(changed, resume=True)
    told = [record.message.partition("changed: ")[2] for record in caplog.records if "not an exact" in record.message]
    assert told == ["steps: 1 -> 2", "policy.learning_rate: 0.001 -> 0.0005"]


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("cooper", "rule"),
        ("rule", "cooper"),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in [("cooper", "cooper_model"), ("paper", "static")]),
    ],
)
def test_another_kind_is_refused_before_any_model_is_read(settings, kind, other):
    """It would write checkpoints without the parts that the first kind needs, and going back would fail."""
    settings = {**settings, "evaluation": {"every": 0}, "steps": 1}
    trainer = _fit({**settings, "kind": kind})
    no_model = {"model": "/missing"}
    with pytest.raises(
        InputError, match=f"of a run of kind {kind}, but this run is of kind {other}; resume with kind: {kind}"
    ):
        _fit({**settings, "kind": other, "steps": 2, "policy": no_model}, resume=True)
    with CooperTrainer.from_config(build_config({**settings, "kind": other, "name": "other"})) as fresh:
        shutil.rmtree(fresh.directory)
        shutil.copytree(trainer.directory, fresh.directory)
        with pytest.raises(InputError, match="resume with kind"):  # parts that somebody assembled themselves
            CooperTrainer(fresh.config, fresh.parts, resume=True)
    assert _fit({**settings, "kind": kind, "steps": 2}, resume=True).completed_steps == 2


@pytest.mark.slow
def test_a_run_killed_before_its_first_checkpoint_starts_at_the_beginning(settings):
    settings = {**settings, "kind": "rule", "checkpoint": {"every": 0}}
    whole = _fit({**settings, "name": "whole"})
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit(lambda step, _: trainer.request_stop() if step == 2 else None)
    shutil.rmtree(trainer.directory / "checkpoints")
    assert _timeless(_fit(settings, resume=True).directory) == _timeless(whole.directory)


def test_there_must_be_a_run_to_resume(rule):
    with pytest.raises(InputError, match="no run to resume"):
        _fit(rule, resume=True)


@pytest.mark.parametrize(
    "torn", first_fast(['{"step": 3, "reward/me', '{"step": 3}\n\0\0\0\0', '{"step": 2', ""], fast=2)
)
def test_what_was_recorded_after_the_checkpoint_is_cut_off(rule, torn):
    trainer = _fit({**rule, "steps": 2})
    metrics = trainer.directory / "metrics.jsonl"
    before = metrics.read_text()
    metrics.write_text(before + torn)
    for folder in ("rollouts", "pairs"):
        (trainer.directory / folder / "000003.jsonl").write_text('{"half a')
    trainer = _fit({**rule, "steps": 2}, resume=True)
    assert metrics.read_text() == before
    assert len(list((trainer.directory / "rollouts").iterdir())) == 2


def test_a_shortened_record_is_logged(rule, caplog):
    trainer = _fit({**rule, "steps": 2})
    metrics = trainer.directory / "metrics.jsonl"
    metrics.write_text(metrics.read_text().split("\n")[0] + "\n")
    _fit({**rule, "steps": 3}, resume=True)
    assert "ends at step 1, but the run continues after 2" in caplog.text


def test_tensorboard_shows_every_step_once(rule):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    settings = {**rule, "checkpoint": {"every": 2}}
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        trainer.fit(lambda step, _: trainer.request_stop() if step == 3 else None)
    shutil.rmtree(trainer.directory / "checkpoints" / "000003")
    folder = _fit(settings, resume=True).directory
    shown = EventAccumulator(str(folder / "tensorboard")).Reload()
    values = [(event.step, event.value) for event in shown.Scalars("reward/mean")]
    assert values == [(row["step"], pytest.approx(row["reward/mean"])) for row in read_metrics(folder)]
