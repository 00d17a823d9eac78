"""A run whose engine is lost equals one that was never disturbed, also in what its callbacks know."""

import pytest

from cooper_audit.run.run_record import read_metrics
from cooper_base.clock import MEASURED
from cooper_rl import CooperTrainer, build_config
from run.everyday_callbacks import Calls


class Lists(Calls):
    """Also keeps a list, which `state` returns as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[int] = []

    def before_step(self, trainer, step):
        self.steps.append(step)
        super().before_step(trainer, step)

    def state(self):
        return {"count": self.count, "steps": self.steps}

    def restore(self, state):
        super().restore(state)
        self.steps = state["steps"]


class Tally(Calls):
    """Keeps what it counts in no checkpoint."""

    def state(self):
        return {}

    def restore(self, state): ...


def _run(settings, tmp_path, name, lost_at, **changes):
    engine = {"kind": "run.lost_engines:LostEngine", "drawn": str(tmp_path / f"{name}.drawn"), "lost_at": lost_at}
    callback = Lists()
    config = build_config({**settings, **changes, "kind": "rule", "name": name, "engine": engine})
    with CooperTrainer.from_config(config, callbacks=[callback]) as trainer:
        trainer.fit(lambda *_: None)
    rows = [{k: v for k, v in row.items() if not k.startswith(MEASURED)} for row in read_metrics(trainer.directory)]
    recoveries = [row.pop("engine/recoveries", 0) for row in rows]
    return rows, callback.state(), recoveries[-1]


@pytest.mark.parametrize(
    ("lost_at", "every", "named"),
    [
        pytest.param([3], 0, "run.everyday_callbacks:Calls", id="step 3"),
        pytest.param([3], 0, "run.test_lost_engines:Tally", marks=pytest.mark.slow, id="no state"),
        pytest.param([1, 2, 4], 0, "run.everyday_callbacks:Calls", marks=pytest.mark.slow, id="again"),
        pytest.param([4], 1, "run.everyday_callbacks:Calls", marks=pytest.mark.slow, id="after a checkpoint"),
    ],
)
def test_the_callbacks_of_a_restarted_run_begin_anew(settings, tmp_path, lost_at, every, named):
    changes = {"checkpoint": {"every": every}, "evaluation": {"every": 0}, "callbacks": [named]}
    whole = _run(settings, tmp_path, "whole", [], **changes)
    disturbed = _run(settings, tmp_path, "disturbed", lost_at, **changes)
    assert disturbed[:2] == whole[:2]
    assert whole[1] == {"count": 4, "steps": [1, 2, 3, 4]}
    assert disturbed[2] == len(lost_at)


@pytest.mark.slow
def test_an_evaluation_before_the_first_step_is_seen_afresh(settings, tmp_path):
    """The first draw is the evaluation's, the third that of step 2, whose engine is lost."""
    changes = {"checkpoint": {"every": 0}, "evaluation": {"every": 4}}
    whole = _run(settings, tmp_path, "whole", [], **changes)
    assert _run(settings, tmp_path, "disturbed", [3], **changes)[:2] == whole[:2]
