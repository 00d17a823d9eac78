"""TRL through the service: the same as in its own process, bit for bit."""

import pytest
import torch

from cooper_rl import CooperReward
from cooper_rl.adapters.trl import FOLDER, GRPOReward

pytest.importorskip("trl", reason="needs the extra trl")
from trl_runs import Stop, reward_config, trainer_of


def test_the_service_gives_the_run_of_the_same_process(service, tiny_models, tmp_path):
    with CooperReward.from_config(reward_config(tiny_models)) as own:
        inside = trainer_of(tiny_models, tmp_path / "inside", GRPOReward(own), max_steps=3)
        inside.train()
    outside = trainer_of(tiny_models, tmp_path / "outside", GRPOReward(service), max_steps=3)
    outside.train()
    assert service.version == own.version == 3
    names = ("rewards/cooper/mean", "cooper/pairs/count", "cooper/reward_model/loss", "cooper/version")
    logs = [
        [[row[name] for name in names] for row in run.state.log_history if "loss" in row] for run in (inside, outside)
    ]
    assert logs[0] == logs[1]
    for run in (inside, outside):  # what the reward took of a step, wherever it is
        rows = [row for row in run.state.log_history if "loss" in row]
        assert all(row["cooper/time/score"] > 0 < row["cooper/time/update"] for row in rows)
    assert all(map(torch.equal, inside.model.parameters(), outside.model.parameters()))


@pytest.mark.slow
def test_a_resumed_run_takes_the_service_back(service, tiny_models, tmp_path):
    settings = {"save_strategy": "steps", "save_steps": 2}
    whole = trainer_of(tiny_models, tmp_path / "whole", GRPOReward(service), **settings)
    whole.train()
    service.load(tmp_path / "whole" / "checkpoint-2" / FOLDER)
    assert service.last_step == 2
    resumed = trainer_of(tiny_models, tmp_path / "whole", GRPOReward(service), **settings)
    resumed.add_callback(Stop(4))
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-2"))
    assert service.last_step == 4
    assert all(map(torch.equal, whole.model.parameters(), resumed.model.parameters()))
