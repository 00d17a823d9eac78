"""The docs' pictures of pages are of the pages as they are."""

import json
import re

import pytest
from benchmarks.repository.pictures import DRAWN, PICTURES, digest_of

from docs.snippets import PAGES


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_was_drawn_from_the_templates_as_they_are(name):
    drawn = json.loads(DRAWN.read_text(encoding="utf-8")).get(name)
    folder = PICTURES[name][0]
    assert drawn == digest_of(folder), (
        f"{folder} is newer than docs/{name}: run `cooper demo --out runs/demo`"
        " and `python -m benchmarks.repository.pictures runs/demo`"
    )


def test_the_digest_is_of_what_the_page_is_made_of(tmp_path):
    (tmp_path / "page.js").write_text("one")
    before = digest_of(tmp_path)
    (tmp_path / "notes.txt").write_text("anything")
    assert digest_of(tmp_path) == before
    (tmp_path / "page.js").write_text("two")
    assert digest_of(tmp_path) != before


def test_every_picture_is_shown_by_a_page():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = {name for text in texts for name in re.findall(r"!\[[^]]*\]\((?:[\w./-]*/)?([\w-]+\.png)\)", text)}
    assert shown >= PICTURES.keys()
