"""The page of designs lists every shaping, combination, estimator of advantages, and source or filter of pairs."""

import pytest

from cooper_base.config.base import Kinds
from cooper_lab.designs.combinations import COMBINATIONS
from cooper_rl.policy.advantages import ADVANTAGES
from cooper_rl.reward.base import SHAPINGS
from cooper_rl.reward.pairs.base import PAIRS
from repository import ROOT

PAGE = ROOT / "packages" / "lab" / "src" / "cooper_lab" / "designs" / "README.md"


@pytest.mark.parametrize("kinds", [SHAPINGS, COMBINATIONS, ADVANTAGES, PAIRS], ids=lambda kinds: kinds.noun)
def test_every_kind_has_a_row(kinds: Kinds):
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    listed = [kind for kind, record in kinds.records.items() if record.__module__.startswith("cooper_lab")]
    assert listed != []
    assert [kind for kind in listed if not any(f"| `{kind}` |" in row for row in rows)] == []
