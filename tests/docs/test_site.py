"""The site: links lead somewhere, the settings are all there, and no page asks a network for anything."""

import os
import re
import subprocess
import sys

import pytest

from cooper_base.config.explanation import explain
from cooper_rl.cli.config import Command, _record
from repository import ROOT

LOADED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?(https?:)?//|url\([\"']?https?:|@import"
)
"""What makes a browser ask another machine."""


@pytest.fixture(scope="module")
def website():
    """The modules of `website/`."""
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    sys.path.insert(0, str(ROOT / "website"))
    try:
        import repository_links
        import settings_pages

        return repository_links, settings_pages
    finally:
        sys.path.remove(str(ROOT / "website"))


def test_links_lead_to_pages_of_the_site(website):
    links, _ = website
    assert (
        links.site_links("[a](docs/plan.md#x) ![b](docs/picture.png)", "index.md") == "[a](plan.md#x) ![b](picture.png)"
    )
    assert links.site_links("[a](../README.md)", "plan.md") == "[a](index.md)"
    assert links.site_links("[a](../packages/rl/tests/crash/README.md)", "runs.md") == "[a](measured/kills.md)"
    assert links.site_links("[a](../../../../docs/runs.md#b)", "measured/kills.md") == "[a](../runs.md#b)"
    assert links.site_links("[a](../configs)", "plan.md") == "[a](source/configs/index.md)"
    assert links.site_links("[a](../../examples/rule.py)", "tutorials/x.md") == "[a](../source/examples/rule.py.md)"
    for kept in ("[a](https://x.org/a.md)", "[a](#b)", "[a](gone.md)", "```text\n[a](../README.md)\n```"):
        assert links.site_links(kept, "plan.md") == kept
    assert links.linked_files("[a](../configs/verifyrm)", "plan.md") == {
        ROOT / "configs" / "verifyrm",
        *(ROOT / "configs" / "verifyrm").glob("*.yaml"),
    }


def test_every_setting_has_an_entry_on_a_page(website):
    _, settings = website
    pages = settings.settings_pages()
    known = "\n".join(pages.values())
    for command in Command:
        page = pages[f"settings/{command}.md"]
        for one in explain(_record(command)):
            text = " ".join(one.text.split("\n\n")[0].split())
            assert text in page or text in known, (command, one.key)
    headings = re.findall(r"\{ (#[^ }]+)", pages["settings/train.md"])
    assert len(set(headings)) == len(headings)
    assert "integer, at least 1* · default `8`" in pages["settings/train.md"]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_a_network(tmp_path):
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = [*(tmp_path / "site").rglob("*.html"), *(tmp_path / "site").rglob("*.css")]
    loading = {page.name: found[0] for page in pages if (found := LOADED.search(page.read_text(encoding="utf-8")))}
    assert loading == {}
    assert "var __index = " in (tmp_path / "site" / "search" / "search_index.js").read_text(encoding="utf-8")[:20]
