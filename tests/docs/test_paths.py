"""The files that the docs name exist under that name."""

import re
from functools import cache
from pathlib import Path

import pytest

from repository import ROOT

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for folder in ("benchmarks", "docs", "packages", "tests") for page in sorted((ROOT / folder).rglob("*.md"))),
]
NAMED = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|yaml|j2))`")
LINKED = re.compile(r"\]\(((?!https?:)[^)#]+)[^)]*\)")
ELSEWHERE = {
    "config.yaml",
    "my_gold.py",
    "my_holes.py",
    "my_rewards.py",
    "alarm.py",
    "my_rules.py",
    "utils.py",
    "tests/test_all.py",
}
"""Names of files that a run or a user writes, that belong to another project, or that must not exist."""


@cache
def files() -> list[str]:
    """All of the project, without the environments that `make` creates."""
    tops = [top for top in ROOT.iterdir() if not top.name.startswith(".venv")]
    return [str(path.relative_to(ROOT)) for top in tops for path in (top, *top.rglob("*"))]


def named_files(page: Path) -> list[str]:
    return [name for name in NAMED.findall(page.read_text(encoding="utf-8")) if name not in ELSEWHERE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_link_on_the_page_exists(page: Path):
    missing = [
        name for name in named_files(page) if not any(path.endswith(f"/{name}") or path == name for path in files())
    ]
    missing += [link for link in LINKED.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []
