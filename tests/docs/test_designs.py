"""The page of designs lists every shaping, combination, estimator of advantages, and source or filter of pairs."""

import re

import pytest
from shelf.ensemble import COMBINATIONS

from cooper_base.config.base import Kinds
from cooper_rl.policy.advantages import ADVANTAGES
from cooper_rl.reward.base import SHAPINGS
from cooper_rl.reward.pairs.base import PAIRS
from repository import ROOT

PAGE = ROOT / "packages" / "lab" / "src" / "cooper_lab" / "designs" / "README.md"


@pytest.mark.parametrize("kinds", [SHAPINGS, COMBINATIONS, ADVANTAGES, PAIRS], ids=lambda kinds: kinds.noun)
def test_every_kind_has_a_row(kinds: Kinds):
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    ours = ("cooper_lab.", "shelf.")
    listed = [kind for kind, record in kinds.records.items() if record.__module__.startswith(ours)]
    assert listed != []
    assert [kind for kind in listed if not any(f"| `{kind}` |" in row for row in rows)] == []


def test_every_part_of_the_shelf_has_a_row():
    kinds = set(re.findall(r"shelf\.\w+:\w+", (ROOT / "examples/shelf/designs.yaml").read_text(encoding="utf-8")))
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert [kind for kind in sorted(kinds) if not any(f"`{kind}`" in row for row in rows)] == []
