"""NeMo-RL's environment, as a Ray actor that NeMo-RL's own function asks."""

# pyright: reportMissingImports=false

import pytest
from rows import row_of, texts_of

from cooper_rl import InputError

pytest.importorskip("nemo_rl.environments.interfaces", reason="NeMo-RL is not installed")


def batch_of(problems, split: str = "train"):
    logs, rows = [], []
    for problem in problems:
        for text in texts_of(problem):
            logs.append([{"role": "user", "content": problem.question}, {"role": "assistant", "content": text}])
            rows.append(row_of(problem, split))
    return logs, rows


def test_a_batch_is_scored_in_its_order(service, problems):
    from cooper_rl.adapters.nemo_rl import ServedEnvironment

    logs, rows = batch_of(problems)
    found = ServedEnvironment().step(logs[::-1], rows[::-1])
    assert found.rewards.shape == (32,)
    assert [one["content"] for one in found.observations[-2:]] == ["wrong", "correct"]
    assert found.terminateds.all()
    ServedEnvironment().step(*batch_of(problems[:1], "test"))
    assert service.info()["open"] == {"step": 1, "groups": 8, "answers": 32}


def test_what_is_missing_is_told(service, problems):
    from cooper_rl.adapters.nemo_rl import ServedEnvironment

    logs, rows = batch_of(problems[:1])
    with pytest.raises(InputError, match="extra_env_info has no column 'question'"):
        ServedEnvironment().step(logs, [None] * len(logs))
    with pytest.raises(InputError, match="training and test rows"):
        ServedEnvironment().step(logs, [*rows[:-1], row_of(problems[0], "test")])


@pytest.mark.slow
def test_nemo_rl_asks_the_actor(service, problems):
    ray = pytest.importorskip("ray")
    rollouts = pytest.importorskip("nemo_rl.experience.rollouts", reason="NeMo-RL's rollouts cannot be imported here")
    from nemo_rl.distributed.batched_data_dict import BatchedDataDict

    from cooper_rl.adapters.nemo_rl import CooperEnvironment

    ray.init(num_cpus=2, include_dashboard=False)
    try:
        logs, rows = batch_of(problems[:2])
        names = ["math"] * len(logs)
        batch = BatchedDataDict({"message_log": logs, "extra_env_info": rows, "task_name": names})
        found = rollouts.calculate_rewards(batch, {"math": CooperEnvironment.remote({})})
        assert found.rewards.shape == (8,)
        assert service.info()["open"] == {"step": 1, "groups": 2, "answers": 8}
    finally:
        ray.shutdown()
