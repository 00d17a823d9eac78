"""The fast path compared with the slow path on completions of real language models."""

import random

import pytest

from cooper_verify.rules.verdicts.fast_path import fast_verdict
from cooper_verify.rules.verdicts.symbolic import maths_verdict
from repository import SHARED

LABELLED = SHARED / "data/labelled/real_completions.parquet"


def _rows() -> list[dict]:
    if not LABELLED.exists():
        pytest.skip(f"labelled completions are not on this machine ({LABELLED.name})")
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(LABELLED, columns=["reference_answer", "completion"]).to_pylist()


def _disagreements(rows: list[dict]) -> tuple[int, list[dict]]:
    decided = [(row, fast) for row in rows if (fast := fast_verdict(row["reference_answer"], row["completion"]))]
    return len(decided), [
        row for row, fast in decided if maths_verdict(row["reference_answer"], row["completion"]) != fast
    ]


def test_fast_and_slow_agree_on_a_sample():
    decided, disagreements = _disagreements(random.Random(0).sample(_rows(), 400))
    assert disagreements == []
    assert decided > 200


@pytest.mark.slow
def test_fast_and_slow_agree_on_everything():
    decided, disagreements = _disagreements(_rows())
    assert disagreements == []
    assert decided > 12_000
