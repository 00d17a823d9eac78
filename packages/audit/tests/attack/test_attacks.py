"""Attack completions and robustness rows: wrong by construction, and not the same texts on both sides."""

from collections import Counter
from random import Random

import pytest

from cooper_audit.attack.edits import STATEMENTS, VALUES
from cooper_audit.attack.wrong_answers import ATTACKS, CONTROLS, attack_rows, robustness_rows
from cooper_base.data.labelled import LabelledCompletion
from cooper_rl import RuleVerifier
from cooper_rl.verifyrm.config import VerifyRMConfig

ROWS = [LabelledCompletion(f"What is {i} + 7?", str(i + 7), f"It is {i + 7}.", 1.0, f"f:{i}") for i in range(10, 50)]
KINDS = VerifyRMConfig.model_fields["robustness_kinds"].default


def test_every_pattern_is_tried_on_every_drawn_problem():
    attacks = attack_rows([*ROWS, *ROWS], 10, seed=0)
    assert len(ATTACKS) >= 13
    assert Counter(a.pattern for a in attacks) == dict.fromkeys([*ATTACKS, *CONTROLS], 10)
    assert all((a.row.label == 1) == (a.pattern in CONTROLS) for a in attacks)
    assert attacks == attack_rows([*ROWS, *ROWS], 10, seed=0)
    assert attacks != attack_rows([*ROWS, *ROWS], 10, seed=1)


def test_the_rule_rejects_every_attack_and_accepts_the_bare_right_answers():
    attacks = attack_rows(ROWS, 40, seed=0)
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(a.row.answer, a.row.completion) for a in attacks])
    accepted = {a.pattern for a, verdict in zip(attacks, verdicts, strict=True) if verdict == "correct"}
    assert accepted == set(CONTROLS)
    assert all(v == "correct" for a, v in zip(attacks, verdicts, strict=True) if a.pattern in CONTROLS)


def test_robustness_rows_are_wrong_by_the_rule_except_half_of_the_bare_answers():
    rows = robustness_rows(ROWS, 120, KINDS, seed=0)
    kinds = Counter((row.location.split()[1], row.label) for row in rows)
    assert kinds["bare_answer", 1.0] == kinds["bare_answer", 0.0] == 10
    assert all(kinds[kind, 0.0] == 20 and kinds[kind, 1.0] == 0 for kind in KINDS if kind != "bare_answer")
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(row.answer, row.completion) for row in rows])
    wrong = [(row, v) for row, v in zip(rows, verdicts, strict=True) if (v == "correct") != (row.label == 1)]
    assert [row.completion for row, _ in wrong] == []


def test_the_attack_table_measures_texts_that_training_did_not_show():
    trained = {row.completion for row in robustness_rows(ROWS, 3000, KINDS, seed=0) if row.label == 0}
    tried = {a.row.completion for a in attack_rows(ROWS, 40, seed=0) if a.pattern not in CONTROLS}
    shared = {text for text in trained & tried if text.strip() and "answer is" not in text}
    assert shared == set()


@pytest.mark.parametrize(
    "reference", ["9" * 5000, "-" + "1" * 4400 + ".5", "1e999999999", r"\frac{" + "1" * 5000 + "}{3}"]
)
def test_an_edit_of_a_reference_too_long_to_compute_with_is_no_edit(reference):
    for edit in (VALUES | STATEMENTS).values():
        edit(reference, "7", Random(0))
