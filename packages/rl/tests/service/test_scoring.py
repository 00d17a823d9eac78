"""The service gives and learns exactly what `CooperReward` does in the trainer's own process."""

import asyncio
import pickle
from pathlib import Path

import pytest

from cooper_rl import AsyncRewardClient, CooperReward
from cooper_rl.service.config import ServeConfig
from service.answered import groups


def test_scores_and_updates_are_those_of_the_reward_in_process(make_server, in_process):
    server = make_server()
    client = server.client()
    for step in (1, 2, 5):
        ours, theirs = in_process.score(groups(10 * step), step=step), client.score(groups(10 * step), step=step)
        assert (ours.rewards, ours.logits, ours.verdicts) == (theirs.rewards, theirs.logits, theirs.verdicts)
        assert (theirs.version, theirs.step) == (ours.version, step)
        updated, served = in_process.update(ours), client.update(step)
        assert served.pairs == updated.pairs != []
        assert served.version == updated.version == client.version
    assert client.last_step == 5


def test_rewards_with_state_pay_and_remember_as_in_process(make_server, reward_settings):
    settings = {
        "rewards": [{"kind": "earned"}, {"kind": "hybrid"}],
        "shaping": [{"kind": "shelf.constraints:Constraints", "constraints": [{"reward": "rule", "at": 0.9}]}],
    }
    client = make_server(reward=settings).client()
    with CooperReward.from_config(ServeConfig.model_validate({**reward_settings, **settings})) as in_process:
        for step in (1, 2, 3):
            ours, theirs = in_process.score(groups(10 * step), step=step), client.score(groups(10 * step), step=step)
            assert ours.rewards == theirs.rewards
            in_process.update(ours)
            client.update(step)


@pytest.mark.slow
def test_the_asynchronous_client_does_the_same(make_server, in_process, tmp_path):
    server = make_server()

    async def run(folder: Path) -> list:
        async with AsyncRewardClient(server.url) as client:
            parts = [await client.score(groups(10)[i : i + 1], step=1) for i in range(4)]
            first = await client.update(1)
            await client.save(folder)
            await client.score(groups(20), step=2)
            await client.update(2)
            await client.load(folder)
            assert (await client.info())["last_step"] == 1
            return [*parts, first]

    *parts, updated = asyncio.run(run(tmp_path / "saved"))
    ours = [in_process.score(groups(10)[i : i + 1]) for i in range(4)]
    assert [one.logits for one in parts] == [one.logits for one in ours]
    assert updated.pairs == in_process.update(ours).pairs


def test_a_client_can_be_sent_to_another_process(make_server):
    client = make_server().client(run="mine")
    assert client.last_step == 0
    copy = pickle.loads(pickle.dumps(client))
    assert copy.score(groups(10), step=1).rewards == client.score(groups(10), step=1).rewards
