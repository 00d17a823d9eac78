"""A server that is down is reported within a second, with its address and the remedy, while the client still waits."""

import asyncio
import socket
import threading
import time

import pytest

from cooper_base.errors import InputError
from cooper_rl.service.client import AsyncRewardClient, RewardClient, UnavailableError
from cooper_verify.clients import chat
from cooper_verify.clients.chat import ChatClient, ChatConfig
from waiting import wait_for


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_reward_service_that_is_down_is_reported_at_once_and_waited_for(closed_port, asynchronous, caplog):
    url = f"http://127.0.0.1:{closed_port}"
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            if asynchronous:
                asyncio.run(AsyncRewardClient(url, timeout_s=2).info())  # pyright: ignore[reportArgumentType]
            else:
                RewardClient(url, timeout_s=2).info()
        except UnavailableError as error:
            failures.append(error)

    waiting = threading.Thread(target=ask)
    waiting.start()
    assert wait_for(lambda: url in caplog.text, 30)  # it takes a second where nothing else runs
    assert waiting.is_alive()
    waiting.join()
    assert len(failures) == 1
    said = [record.getMessage() for record in caplog.records if record.name.startswith("cooper_rl")]
    assert len(said) == 1  # not one for each attempt
    assert "trying again for up to 2 s; is `cooper serve` running there?" in said[0]


def test_a_judge_or_assistant_that_is_down_is_reported_before_its_retries(closed_port, caplog, monkeypatch):
    url = f"http://127.0.0.1:{closed_port}/v1"
    start = time.monotonic()
    monkeypatch.setattr(chat, "FIRST_WAIT_S", 1.0)
    config = ChatConfig(base_url=url, model="m", max_retries=1)
    with ChatClient(config) as client, pytest.raises(InputError, match=r"check base_url, .* and that the server is up"):
        client.check()
    assert time.monotonic() - start > 1
    said = [record for record in caplog.records if record.name.startswith("cooper_verify")]
    assert f"chat server {url}: connection" in said[0].getMessage()
    assert "trying again, up to 1 times; is it running at this base_url?" in said[0].getMessage()


@pytest.mark.parametrize("kind", [RewardClient, AsyncRewardClient])
def test_an_address_or_a_token_that_no_request_can_have_is_refused_without_a_wait(kind):
    with pytest.raises(InputError, match="the address of the reward service: 'localhost:8765' is no address"):
        kind("localhost:8765")
    with pytest.raises(InputError, match=r"the token \(COOPER_TOKEN\): it cannot be sent in an HTTP header"):
        kind("http://localhost:8765", token="secret\n")
