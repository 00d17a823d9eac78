"""A server that is killed, stopped, or out of disk learns nothing twice and loses nothing."""

import resource
from random import Random
from signal import SIGKILL, SIGTERM

import pytest

from cooper_rl.service.client import RefusedError, ServiceFailedError
from service.answered import group, groups
from service.killing import differences, disturbed, killed_at, last_files, train, undisturbed
from service.served import Served

STEPS = 4
SMALL_DISK = 2000
"""Bytes that a full disk still takes of a file."""


@pytest.fixture(scope="module")
def server_in(reward_settings, tmp_path_factory):
    """A server that has not been started."""

    def server_in(name: str, **serve) -> Served:
        return Served(tmp_path_factory.mktemp(name), {**reward_settings, "serve": {"checkpoint_every": 2, **serve}})

    return server_in


@pytest.fixture(scope="module")
def expected(server_in):
    return undisturbed(server_in("undisturbed"), STEPS)


@pytest.mark.slow
def test_a_server_that_is_killed_at_random_ends_where_an_undisturbed_one_does(server_in, expected):
    outcome, kills = disturbed(server_in("random"), STEPS, 3, expected[1], Random(0))
    assert differences(outcome, expected[0]) == []
    assert kills > 0


@pytest.mark.slow
def test_a_server_that_is_killed_in_every_request_of_a_step_ends_there_too(server_in, expected):
    """Requests 6 to 10: both parts, the evaluation, the commit, the wait for it."""
    outcome = killed_at(server_in("requests"), STEPS, lambda number: number in (7, 9, 13, 15))
    assert differences(outcome, expected[0]) == []


@pytest.mark.slow
def test_twenty_kills(server_in, expected):
    for seed in range(5):
        outcome, _ = disturbed(server_in(f"slow{seed}"), STEPS, 4, expected[1], Random(seed))
        assert differences(outcome, expected[0]) == []


def test_a_signal_ends_it_in_order_and_with_a_checkpoint(server_in):
    server = server_in("signal", checkpoint_every=0)
    with server:
        client = server.client()
        client.score(groups(10), step=1)
        client.update(1)
        first = client.score(groups(20), step=2)
        assert server.end(SIGTERM) == 0
        assert [path.name for path in sorted((server.folder / "served/checkpoints").glob("0*"))] == ["000000", "000001"]
        server.start()
        assert client.info()["open"] == {"step": 2, "groups": 4, "answers": 13}
        assert client.score(groups(20), step=2).logits == first.logits
        assert client.update(2).step == 2


def test_a_client_that_died_between_score_and_commit_goes_on_or_back(server_in):
    with server_in("client") as server:
        server.client().score(groups(10), step=1)
        again = server.client()
        again.score(groups(10), step=1)  # it does the same again
        with pytest.raises(RefusedError, match="other content"):
            again.score([group(10, size=3)], step=1)  # or it does not
        server.post("/v1/restore", {"step": 0})
        again.score([group(10, size=3)], step=1)
        assert again.update(1, expected=1).version == 1


def test_a_full_disk_is_told_and_nothing_is_learned_in_part(server_in, expected):
    server = server_in("full")
    with server:
        pid = server.pid
        client = server.client()
        told = train(client, 1)
        evaluated = client.score(groups(90), train=False).rewards
        free = resource.prlimit(pid, resource.RLIMIT_FSIZE, (SMALL_DISK, resource.RLIM_INFINITY))
        with pytest.raises(ServiceFailedError, match=r"507: .*nothing was learned and nothing was lost") as failure:
            client.score(groups(20), step=2)
        assert failure.value.status == 507
        assert client.score(groups(90), train=False).rewards == evaluated
        with pytest.raises(ServiceFailedError, match="507"):
            client.save(server.folder / "trainer")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, free)
        for part in (groups(20)[:2], groups(20)[2:]):  # as `train` does it, to the last bit
            client.score(part, step=2)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (SMALL_DISK, resource.RLIM_INFINITY))
        with pytest.raises(ServiceFailedError, match="507"):
            client.update(2)
        assert client.info()["last_step"] == 1
        resource.prlimit(pid, resource.RLIMIT_FSIZE, free)
        told += train(client, STEPS)
        server.end(SIGTERM)
    assert (told, last_files(server)) == (expected[0].told, expected[0].files)


@pytest.mark.slow
@pytest.mark.parametrize("every", [2, 0], ids=["a checkpoint before it", "every step replayed"])
def test_an_update_that_fails_learns_nothing_and_can_be_tried_again(reward_settings, tmp_path, expected, every):
    fragile = {"kind": "corrupter", "function": "service.answered:fragile"}
    cooptimization = {**reward_settings["cooptimization"], "assistant": fragile}
    server = Served(
        tmp_path, {**reward_settings, "cooptimization": cooptimization, "serve": {"checkpoint_every": every}}
    )
    with server:
        client = server.client()
        told = train(client, 2)
        (tmp_path / "broken").touch()
        given = groups(30)
        client.score(given[:2], step=3)
        for _ in range(2):
            with pytest.raises(ServiceFailedError, match="nothing was learned: RuntimeError: the file is there"):
                client.update(3)
        state = server.get("/v1/steps/3").json()
        assert (state["state"], state["version"]) == ("failed", 2)
        (tmp_path / "broken").unlink()
        server.end(SIGKILL)
        server.start()
        told += train(client, STEPS)
        server.end(SIGTERM)
    learned, files = dict(expected[0].files), last_files(server)
    del learned["state.json"], files["state.json"]  # which names the assistant among its conditions
    assert (told, files) == (expected[0].told, learned)


def test_a_folder_serves_one_server(server_in, reward_settings, tmp_path):
    with server_in("one") as server:
        serve = {"folder": str(server.folder / "served")}
        with pytest.raises(RuntimeError, match="another server is using"):
            Served(tmp_path, {**reward_settings, "serve": serve}).start()
