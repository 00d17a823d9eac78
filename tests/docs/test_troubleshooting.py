"""docs/troubleshooting.md quotes messages that Cooper gives, letter by letter but for line ends."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from cooper_audit.run.watch_rules import DEFAULT_RULES
from cooper_base.cli.main import app
from docs.snippets import Snippet, snippets_of
from repository import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
SNIPPETS = snippets_of(PAGE.read_text(encoding="utf-8"), PAGE.name)
COMMANDS = [snippet for snippet in SNIPPETS if snippet.text.startswith("$ ")]
ADVICE = [snippet for snippet in SNIPPETS if snippet.language == "text" and not snippet.text.startswith("$ ")]


@pytest.fixture
def folder(tiny_models, tmp_path, monkeypatch) -> Path:
    """The folder that the page describes, with the page's own `run.yaml`."""
    for source, name in (("policy", "my-policy"), ("reward_model", "my-verifyrm")):
        shutil.copytree(tiny_models / source, tmp_path / "models" / name)
    rows = [{"question": f"{n}+{n}=", "answer": str(2 * n)} for n in range(64)]
    (tmp_path / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "broken.jsonl").write_text('{"question": "1+1=", "answer": "2"}\n{"question": "1+2="\n')
    (tmp_path / "run.yaml").write_text(next(snippet.text for snippet in SNIPPETS if snippet.language == "yaml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("snippet", [pytest.param(one, id=one.place) for one in COMMANDS])
def test_each_command_ends_with_the_message_below_it(snippet: Snippet, folder, monkeypatch, capsys):
    for part in snippet.text.split("$ ")[1:]:
        command, _, message = part.partition("\n")
        monkeypatch.setattr(sys, "argv", shlex.split(command))
        with pytest.raises(SystemExit) as end:
            app()
        printed = capsys.readouterr()
        assert end.value.code == 2
        assert "".join((printed.out + printed.err).split()) == "".join(message.split())


def test_each_advice_of_the_log_is_that_of_a_default_rule():
    advice = {" ".join(rule.advice.split()) for rule in DEFAULT_RULES}
    assert [one.place for one in ADVICE if " ".join(one.text.split()) not in advice] == []
