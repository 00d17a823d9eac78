"""Without the extra `judges`, everything but a chat server works, and a chat server names the extra."""

import subprocess
import sys

import pytest

from cooper_base.errors import MissingExtraError
from cooper_verify.clients.chat import ChatClient, ChatConfig


@pytest.mark.parametrize("library", ["openai", "tenacity"])
def test_a_chat_client_without_a_library_names_the_extra(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=r"extra `judges`.*pip install openai tenacity"):
        ChatClient(ChatConfig(base_url="http://localhost:1/v1", model="judge"))


def test_the_package_and_its_command_load_neither_these_libraries_nor_numpy():
    code = (
        "import sys, cooper_verify, cooper_verify.cli.verify, cooper_verify.graders.written\n"
        "print(sorted({'openai', 'tenacity', 'numpy', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
