"""Any input gives a valid object or an error that says where to look: Hypothesis drives the targets."""

import os

import pytest
from corpus import SEEDS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from targets import TARGETS, close

EXAMPLES = int(os.environ.get("COOPER_FUZZ_EXAMPLES", "1000"))
"""Examples of each target in the slow suite. Slow targets get a tenth."""
UNHURRIED = {"chat_reply", "rule_verifier", "rows.parquet", "report_page", "earlier_verdicts", "config_file"}


@pytest.fixture(scope="module", autouse=True)
def _closed():
    yield
    close()


@pytest.mark.parametrize("target", TARGETS)
def test_known_nasty_input(target: str):
    for seed in SEEDS[target]:
        print(seed[:200])  # noqa: T201 - if the test fails, pytest shows the last one
        TARGETS[target](seed)


def bent(target: str) -> st.SearchStrategy[bytes]:
    """A seed with a part of it cut out, doubled or replaced, or any other bytes."""
    short = [seed for seed in SEEDS[target] if len(seed) < 2000]
    any_bytes = st.one_of(st.binary(max_size=30), st.text(max_size=20).map(lambda t: t.encode(errors="replace")))

    def bend(seed: bytes, start: int, length: int, new: bytes) -> bytes:
        start = start % (len(seed) + 1)
        return seed[:start] + new + seed[start + length :]

    tokens = st.sampled_from([b'"', b"{", b"}", b":", b"\n", b"\\", b"0", b"-1", b"1e9", b",", b" ", b"<", b"null"])
    changed = st.builds(bend, st.sampled_from(short), st.integers(0, 2000), st.integers(0, 20), tokens | any_bytes)
    return changed | any_bytes


def drive(target: str, examples: int) -> None:
    checks = [HealthCheck.too_slow]

    @settings(max_examples=examples, deadline=None, suppress_health_check=checks, database=None)
    @given(bent(target))
    def run(data: bytes) -> None:
        TARGETS[target](data)

    run()


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_much_bent_input(target: str):
    drive(target, EXAMPLES // 10 if target in UNHURRIED else EXAMPLES)
