"""The artefacts in the package: plain Hugging Face folders that are as good as the manifest says."""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

import cooper_lab.arithmetic
from cooper_base.data.labelled import read_labelled
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS, draw
from cooper_lab.arithmetic.figures import figures_verdict
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl.engines.reward_input import RewardModelInput

ASSETS = Path(cooper_lab.arithmetic.__file__).parent / "assets"
MIB = 2**20


@pytest.fixture(scope="module")
def manifest():
    return json.loads((ASSETS / "manifest.json").read_text())


@pytest.fixture(scope="module")
def samples():
    """(problem, completion) of the shipped policy on test problems, loaded with plain transformers."""
    policy = AutoModelForCausalLM.from_pretrained(ASSETS / "policy", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(ASSETS / "policy")
    problems = arithmetic_problems("test", 96, seed=11)
    drawn = draw(policy, tokenizer, problems, n=4, seed=0)
    return [(problem, text) for problem, texts in zip(problems, drawn, strict=True) for text in texts]


def test_the_artefacts_are_small():
    assert sum(path.stat().st_size for path in ASSETS.rglob("*") if path.is_file()) < 6 * MIB


def test_the_shipped_tokenizers_are_the_ones_the_code_builds():
    text = "<completion>What is 2 + 3?\n2+3=5 answer: 5</completion>"
    for folder in ("policy", "reward_model"):
        shipped = AutoTokenizer.from_pretrained(ASSETS / folder)
        assert shipped(text)["input_ids"] == build_tokenizer()(text)["input_ids"]


def test_the_policy_is_right_about_as_often_as_the_manifest_says_and_leaves_room(manifest, samples):
    accuracy = sum(gold(problem, text) for problem, text in samples) / len(samples)
    assert accuracy == pytest.approx(manifest["policy"]["gold_accuracy"], abs=0.08)
    assert 0.3 < accuracy < 0.65


def test_the_rule_is_precise_but_misses_right_answers_of_the_policy(samples):
    accepted = [figures_verdict(problem.answer, text, problem.question) == "correct" for problem, text in samples]
    right = [gold(problem, text) for problem, text in samples]
    both = sum(a and b for a, b in zip(accepted, right, strict=True))
    assert both / sum(accepted) > 0.95
    assert 0.65 < both / sum(right) < 0.92


@pytest.mark.slow
def test_the_reward_model_is_as_good_as_the_manifest_says(manifest, samples):
    model = AutoModelForSequenceClassification.from_pretrained(ASSETS / "reward_model", dtype=torch.float32).eval()
    encoder = RewardModelInput(AutoTokenizer.from_pretrained(ASSETS / "reward_model"), MAX_INPUT_TOKENS)
    agreed = 0
    with torch.inference_mode():
        for problem, text in samples:
            logit = model(torch.tensor([encoder.encode(problem.question, problem.answer, text)])).logits.item()
            agreed += (logit > 0) == gold(problem, text)
    assert agreed / len(samples) == pytest.approx(manifest["reward_model"]["heldout_accuracy"], abs=0.07)


def test_the_labelled_data_is_balanced_and_about_training_problems_only():
    rows = read_labelled(ASSETS / "labelled.jsonl")
    assert len(rows) >= 1000
    assert 0.35 < sum(row.label for row in rows) / len(rows) < 0.65
    assert not {row.question for row in rows} & {problem.question for problem in arithmetic_problems("test", 150)}
