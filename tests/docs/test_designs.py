"""The pages of designs list every shaping, combination and process credit with the file that holds it."""

import inspect
from pathlib import Path

import pytest

import cooper_rl
from cooper_lab.designs.ensemble import COMBINATIONS
from cooper_rl.config.registry import Kinds
from cooper_rl.policy.process import PROCESS_CREDITS
from cooper_rl.rewards.base import SHAPINGS

SOURCE = Path(cooper_rl.__file__).parents[1]
PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("designs.md", "designs-stage2.md")]


@pytest.mark.parametrize("kinds", [SHAPINGS, COMBINATIONS, PROCESS_CREDITS], ids=lambda kinds: kinds.noun)
def test_every_kind_is_on_a_page_with_its_file(kinds: Kinds):
    lines = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines()]
    rows = [line for line in lines if line.startswith("|")]
    for kind, record in kinds.records.items():
        file = "/".join(Path(inspect.getfile(record)).relative_to(SOURCE).parts[1:])  # without the package
        assert any(f"| `{kind}` |" in row and f"`{file}`" in row for row in rows), (kind, file)
