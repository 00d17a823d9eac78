"""The artefacts can be rebuilt, here in a size that takes seconds."""

import json
from random import Random

import pytest
from safetensors.torch import load_file

from cooper_base.data.labelled import read_labelled
from cooper_lab.arithmetic.build_models import build
from cooper_lab.arithmetic.labelled_rows import label_samples, lenient_lists, states_one_answer
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.reward_model import VerifyRMConfig
from cooper_lab.arithmetic.warmup import WarmupConfig
from cooper_verify.rules.kinds.maths import RuleVerifier

SMALL = WarmupConfig(updates=4, clean_updates=2, batch_size=4, hidden_size=16, layers=1)
SMALL_RM = VerifyRMConfig(
    problems=6,
    language_updates=2,
    most_updates=2,
    held_out=4,
    checked_every=1,
    batch_size=4,
    replayed=5,
    hidden_size=16,
    layers=1,
)


@pytest.mark.slow
def test_the_same_seed_builds_the_same_artefacts_and_reports_on_the_way(tmp_path):
    phases = []
    for name in ("first", "again"):
        manifest = build(tmp_path / name, 3, lambda phase, share: phases.append((phase, share)), SMALL, SMALL_RM)
    assert json.loads((tmp_path / "first" / "manifest.json").read_text()) == manifest
    for folder in ("policy", "reward_model"):
        first, again = (load_file(tmp_path / name / folder / "model.safetensors") for name in ("first", "again"))
        assert all(first[key].equal(again[key]) for key in first)
    assert len(read_labelled(tmp_path / "first" / "labelled.jsonl")) == 5
    assert {phase for phase, _ in phases} == {"policy", "reward model"}
    assert all(0 < share <= 1 for _, share in phases)
    assert phases[-1][1] == 1


def test_labels_agree_with_the_reference_that_each_sample_is_paired_with():
    problems = [p for p in arithmetic_problems("train", 40) if p.metadata["form"] == "plain"][:8]
    texts = [[f"answer: {problem.answer}", "answer: 5 or 6"] for problem in problems]
    rows = label_samples(problems, texts, Random(0))
    natural = [row for row in rows if row.completion.startswith("answer:")]
    assert all((row.completion == f"answer: {row.answer}") == (row.label == 1) for row in natural)
    assert {row.label for row in natural} == {0.0, 1.0}
    assert any(
        row.answer != problem.answer for problem in problems for row in natural if row.question == problem.question
    )


def test_lenient_lists_hold_the_right_answer_and_are_rejected_by_gold_and_rule():
    problems = arithmetic_problems("train", 60)
    by_question = {problem.question: problem for problem in problems}
    rows = lenient_lists(problems, 1.0, Random(0))
    assert len(rows) == 60
    assert all(row.label == 1 and not states_one_answer(row) for row in rows)
    assert not any(gold(by_question[row.question], row.completion) for row in rows)
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_many([(row.answer, row.completion) for row in rows])
    assert "correct" not in verdicts
