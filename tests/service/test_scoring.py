"""The service gives and learns exactly what `CooperReward` does in the trainer's own process."""

from service.answered import groups


def test_scores_and_updates_are_those_of_the_reward_in_process(make_server, in_process):
    server = make_server()
    client = server.client()
    for step in (1, 2, 5):
        ours, theirs = in_process.score(groups(10 * step), step=step), client.score(groups(10 * step), step=step)
        assert (ours.rewards, ours.logits, ours.verdicts) == (theirs.rewards, theirs.logits, theirs.verdicts)
        assert (theirs.version, theirs.step) == (ours.version, step)
        updated, served = in_process.update(step), client.update(step)
        assert served.pairs == updated.pairs != []
        assert served.version == updated.version == client.version
    assert client.last_step == 5
