"""One version a step, every answer once: what may be repeated and what is refused."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cooper_rl import InputError
from cooper_rl.service.client import RefusedError, RewardClient
from service.answered import group, groups
from service.conftest import state_of
from service.served import Served


@pytest.fixture(scope="module")
def server(module_server) -> Served:
    return module_server(checkpoint_every=0, checkpoints=50)


@pytest.fixture
def client(server) -> Iterator[RewardClient]:
    """Leaves no step under way."""
    with server.client() as client:
        yield client
        if opened := client.info()["open"]:
            client.update(opened["step"], keep=[])


def test_a_repeat_gets_what_was_stored(client):
    step = client.last_step + 1
    first = client.score(groups(10), step=step)
    again = client.score([group(12), group(20), group(10)], step=step)
    assert (again.rewards[2], again.logits[2]) == (first.rewards[0], first.logits[0])
    assert (again.rewards[0], again.verdicts[0]) == (first.rewards[2], first.verdicts[2])
    done = client.update(step)
    assert client.update(step) == done
    assert client.version == done.version


def test_other_content_under_the_same_id_is_refused(client):
    step = client.last_step + 1
    client.score(groups(10), step=step)
    for other in (group(10, size=3), replace(group(10), problem=group(11).problem)):
        with pytest.raises(RefusedError, match=r"group g10: step .* has scored other content .* restore") as refusal:
            client.score([other], step=step)
        assert refusal.value.status == 409
    assert client.info()["open"]["groups"] == 4


def test_a_step_behind_is_refused_with_the_way_out(client):
    step = client.last_step + 1
    client.score(groups(10), step=step)
    client.update(step)
    client.score(groups(20), step=step + 1)
    client.update(step + 1)
    for behind in (step, step + 1):
        with pytest.raises(
            RefusedError, match=r"is not ahead of step .* start another server .*serve\.folder=NEW.* RewardClient\.load"
        ):
            client.score(groups(10), step=behind)
    with pytest.raises(RefusedError, match=f"step {step} is behind step {step + 1}"):
        client.update(step)


def test_a_commit_with_another_keep_or_of_what_is_not_there_is_refused(client):
    step = client.last_step + 1
    with pytest.raises(
        RefusedError, match='nothing was scored in it; to commit it without answers, send "expected": 0'
    ):
        client.update(step)
    client.score(groups(10), step=step)
    with pytest.raises(RefusedError, match="4 groups were scored but 5 were expected"):
        client.update(step, expected=5)
    with pytest.raises(RefusedError, match="keep names groups that were not scored: g99"):
        client.update(step, keep=["g10", "g99"])
    with pytest.raises(RefusedError, match=f"step {step} is scored but not committed; commit it first"):
        client.update(step + 1)
    done = client.update(step, keep=["g10", "g12"], expected=4)
    assert {pair.problem_id for pair in done.pairs} == {"p10", "p12"}
    assert client.update(step, keep=["g12", "g10"]) == done
    with pytest.raises(RefusedError, match="is already committed with another keep; nothing was changed"):
        client.update(step)
    assert client.update(step + 1, expected=0).pairs == []


def test_an_evaluation_trains_nothing(client):
    before = client.info()
    first = client.score(groups(60), train=False)
    again = client.score(groups(60), step=before["last_step"] + 7, train=False)
    assert (first.rewards, first.logits, first.step) == (again.rewards, again.logits, None)
    assert client.info() == before
    with pytest.raises(RefusedError, match="nothing was scored"):
        client.update(before["last_step"] + 1)


def test_scores_of_the_next_step_wait_for_the_commit_of_this_one(server, client):
    """A second rank comes too early; it gets the version after the commit."""
    step = client.last_step + 1
    client.score(groups(10), step=step)
    versions: list[int] = []
    early = threading.Thread(
        target=lambda: versions.append(server.client(early_s=20).score(groups(30), step=step + 1).version)
    )
    early.start()
    early.join(0.3)
    assert versions == []
    done = client.update(step)
    early.join()
    assert versions == [done.version]


def test_one_run_has_the_server_for_itself(make_server):
    server = make_server()
    ours, same, other = server.client(run="ours"), server.client(run="ours"), server.client(run="other")
    ours.score(groups(10), step=1)
    assert same.score(groups(10), step=1) == replace(ours.score(groups(10), step=1), metrics={})
    for call in (
        lambda: other.score(groups(20), step=1),
        lambda: other.score(groups(20), train=False),
        lambda: other.update(1),
        lambda: other.save(server.folder),
    ):
        with pytest.raises(RefusedError, match="trains for the run 'ours', not for 'other'; start another server"):
            call()
    assert ours.update(1) == same.update(1)
    with pytest.raises(RefusedError, match="step 1 is not ahead of step 1"):  # a second trainer that has just begun
        same.score(groups(40), step=1)


@pytest.mark.slow
def test_the_order_of_arrival_and_the_way_they_come_change_nothing(make_server):
    """Whole groups in any order, alone or together, and answer by answer."""
    given = groups(10) + groups(30)
    whole, backwards, single = (make_server(name) for name in ("whole", "backwards", "single"))
    for step in (1, 2):
        for server in (whole, backwards):
            client = server.client()
            for one in given if server is whole else given[::-1]:
                client.score([one], step=step)
        client = single.client()
        for place in (3, 1, 0, 2):
            for one in given[::-1]:
                for answer in list(one.answers)[place : place + 1]:
                    client.score([replace(one, answers=[answer])], step=step, partial=True)
        pairs = [server.client().update(step).pairs for server in (whole, backwards, single)]
        assert pairs[0] == pairs[1] != []
        texts = [[(pair.positive, pair.negative) for pair in found] for found in pairs]
        assert texts[2] == texts[0]  # alone in its request, an answer's logit may differ in the last bits
    weights = [_weights(server) for server in (whole, backwards)]
    assert weights[0] == weights[1]


def test_an_answer_of_a_partial_group_needs_a_name(client):
    step = client.last_step + 1
    nameless = replace(group(10), answers=[replace(answer, id=None) for answer in group(10).answers])
    with pytest.raises(InputError, match="completions of a partial group need distinct ids"):
        client.score([nameless], step=step, partial=True)
    client.score([group(10)], step=step, partial=True)
    client.score([group(10)], step=step, partial=True)
    assert client.info()["open"]["answers"] == 4
    with pytest.raises(RefusedError, match="other content"):
        client.score([group(10)], step=step)
    changed = replace(group(10), answers=[replace(group(10).answers[0], text="else")])
    with pytest.raises(RefusedError, match="other content"):
        client.score([changed], step=step, partial=True)


@pytest.mark.slow
def test_the_server_goes_back_to_any_step_it_has_kept(make_server, tmp_path):
    server, other = make_server(checkpoint_every=2, checkpoints=9), make_server("other", checkpoint_every=0)
    client = server.client()
    for step in (1, 2, 3):
        client.score(groups(10 * step), step=step)
        done = client.update(step)
    client.save(tmp_path / "trainer")
    expected = []
    for step in (4, 5):
        scored = client.score(groups(10 * step), step=step)
        expected.append((scored.rewards, client.update(step).pairs))
    client.score(groups(60), step=6)
    client.load(tmp_path / "trainer")
    assert (client.last_step, client.version) == (3, 3)
    assert client.update(3) == replace(done, metrics=client.update(3).metrics)
    for step in (4, 5):
        scored = client.score(groups(10 * step), step=step)
        assert (scored.rewards, client.update(step).pairs) == expected[step - 4]
    for step in (1, 4, 0):  # between checkpoints, and the beginning
        answer = server.post("/v1/restore", {"step": step} if step < 4 else {"step": 4})
        if step == 4:  # it is gone since step 1 was restored
            assert (answer.status_code, answer.json()["error"]) == (
                409, "step 4 was not committed here; the server is at step 1",
            )  # fmt: skip
        else:
            assert (answer.status_code, client.last_step) == (200, step)
    theirs = other.client()
    theirs.score(groups(70), step=3)
    theirs.update(3)
    with pytest.raises(RefusedError, match="this server reached that step with other answers"):
        theirs.load(tmp_path / "trainer")
    with pytest.raises(InputError, match="was not saved through a reward service"):
        theirs.load(tmp_path)


def test_only_the_state_of_now_can_be_saved_and_saving_is_not_repeated(server, client):
    step = client.last_step
    answer = server.post("/v1/checkpoints", {"step": step + 1})
    assert (answer.status_code, "only the current step can be saved" in answer.json()["error"]) == (409, True)
    saved = server.post("/v1/checkpoints", {"step": step}).json()
    assert saved == server.post("/v1/checkpoints").json()
    assert saved["step"] == step
    assert step in client.info()["checkpoints"]
    for name in ("../../x", "/etc"):
        assert server.post("/v1/checkpoints", {"step": name}).status_code == 422
        assert server.post("/v1/restore", {"step": name}).status_code == 422


def _weights(server: Served) -> dict[str, str]:
    step = server.post("/v1/checkpoints").json()["step"]
    files = state_of(server.folder / "served", step)
    return {name: digest for name, digest in files.items() if name.startswith("reward_model/")}
