"""Addresses and keys that no request can have are refused before one is sent."""

import pytest

from cooper_base.errors import InputError
from cooper_verify.clients.address import check_address, check_key
from cooper_verify.clients.chat import ChatConfig, read_api_key

NO_ADDRESSES = [
    "",
    "localhost:8000/v1",
    "ftp://host",
    "http://",
    "http:///v1",
    "http://host:99999",
    "http://[::1",
    "8000",
]


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no address of a server; write http://host:port"):
        check_address(url)
    with pytest.raises(ValueError, match="base_url"):
        ChatConfig(base_url=url, model="m")


@pytest.mark.parametrize("url", ["http://host", "https://host/v1", "http://name:word@host:80/v1", "HTTP://[::1]:8000"])
def test_addresses_are_left_as_they_are(url: str) -> None:
    assert ChatConfig(base_url=url, model="m").base_url == url


@pytest.mark.parametrize("key", ["secret\n", "se\rcret", "sécret", "秘密", "two words", "\0"])
def test_keys_that_no_header_can_hold_are_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="the token: it cannot be sent in an HTTP header"):
        check_key(key, "the token")
    if "\0" not in key:
        monkeypatch.setenv("KEY_OF_A_TEST", key)
        with pytest.raises(InputError, match="KEY_OF_A_TEST: it cannot be sent"):
            read_api_key(ChatConfig(base_url="http://host", model="m", api_key_env="KEY_OF_A_TEST"))
