"""A command that depends on nothing but committed files prints what the page below it shows."""

from itertools import pairwise

import pytest
from typer.testing import CliRunner

from cooper_base.cli.main import commands
from docs.snippets import ROOT, Snippet, all_snippets, shell_commands

SNIPPETS = all_snippets()
SHOWN = [
    (command, below)
    for command, below in pairwise(SNIPPETS)
    if command.language == "bash" and below.language == "text" and command.text.startswith("cooper plan")
]
"""Plans, each with the block of text after it on the page."""


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command.place for command, _ in SHOWN])
def test_a_plan_prints_what_its_page_shows(command: Snippet, shown: Snippet, monkeypatch):
    monkeypatch.chdir(ROOT)
    (words,) = shell_commands(command.text)
    printed = CliRunner().invoke(commands, words[1:]).output
    assert printed.endswith(shown.text)  # a page may show the end alone


def test_every_page_with_a_plans_figures_shows_its_command():
    pages = {one.place.partition(":")[0] for one in SNIPPETS if "fits" in one.text.lower() and one.language == "text"}
    assert pages == {command.place.partition(":")[0] for command, _ in SHOWN}
