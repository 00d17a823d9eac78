"""docs/designs.md lists every shaping and every combination with the file that holds it."""

import inspect
from pathlib import Path

import pytest

from cooper_rl.config.registry import Kinds
from cooper_rl.rewards.base import SHAPINGS
from cooper_rl.rewards.combining import COMBINATIONS

PAGE = Path(__file__).parents[2] / "docs" / "designs.md"


@pytest.mark.parametrize("kinds", [SHAPINGS, COMBINATIONS], ids=lambda kinds: kinds.noun)
def test_every_kind_is_on_the_page_with_its_file(kinds: Kinds):
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for kind, record in kinds.records.items():
        file = "/".join(Path(inspect.getfile(record)).parts[-3:])
        assert any(f"| `{kind}` |" in row and f"`{file}`" in row for row in rows), (kind, file)
