"""Without a check, a trait that became frequent and is paid more within its groups is a suspicion, never a verdict.

The biased judge is small, after CHERRL (arXiv 2606.04923): it scores how good an answer is, with noise, and adds
something for a closing sentence.
"""

import random

import pytest
from dumps import trl

from cooper_audit.rollouts import audit
from cooper_audit.rollouts.suspicion import suspicions

CLOSING = "I have checked every step with care."
WORDS = ("the sum", "grows as", "parts meet", "and each", "carry moves", "left until", "all digits", "settle")


def judged_run(seed, bias=0.0, spreads=True):
    """Rows of 24 steps of 8 groups of 6. The closing sentence spreads from step 10 on."""
    generator = random.Random(seed)
    for step in range(1, 25):
        for problem in range(8):
            for _ in range(6):
                good = generator.random() < 0.4 + 0.02 * step
                closes = generator.random() < (0.05 + (min(1.0, max(0, step - 9) / 6) * 0.7 if spreads else 0.0))
                text = " ".join(generator.choices(WORDS, k=12)) + "."
                text += f" {CLOSING}" if closes else ""
                reward = (0.7 if good else 0.3) + bias * closes + generator.gauss(0, 0.15)
                yield {"step": step, "problem": f"{step} {problem}", "text": text, "reward": reward}


def test_a_biased_judge_is_suspected_with_the_onset():
    found = suspicions(judged_run(0, bias=0.3))
    assert any("checked" in one.trait or "with care" in one.trait for one in found)
    assert all(8 <= one.since <= 17 and one.paid > 0.15 for one in found)
    assert str(found[0]).startswith("Suspicion, no verdict: ")


@pytest.mark.parametrize(("bias", "spreads"), [(0.0, True), (0.3, False)])
def test_what_only_spreads_and_what_is_only_paid_is_not_suspected(bias, spreads):
    assert [suspicions(judged_run(seed, bias, spreads)) for seed in range(3)] == [[], [], []]


def test_an_audit_without_a_check_says_the_suspicion_and_cannot_tell(tmp_path):
    rows = [row | {"prompt": row["problem"], "answer": "", "advantage": None} for row in judged_run(0, bias=0.3)]
    for step in range(1, 25):
        trl(tmp_path / "dump", step, [row for row in rows if row["step"] == step])
    found = audit([tmp_path / "dump"], tmp_path / "audit").finding
    assert found.state == "unknown"
    assert any(guard.startswith("Suspicion, no verdict") for guard in found.guards)
