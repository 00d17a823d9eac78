"""Merged weights and ranked signals at values worked out by hand."""

import pytest
from shelf.lexicographic import LexicographicSource, order
from shelf.merged import Merged

from cooper_base.data.answer import Answer, AnswerGroup
from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import load_scorer, load_tokenizer
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local.models import load_reward_model
from cooper_rl.reward.pairs.base import PairGroup

START = ASSETS / "reward_model"
GROUP = AnswerGroup("g", Problem("p", "What is 12 + 7?", "19"), [Answer("12+7=19 answer: 19"), Answer("answer: 18")])


def scorer(folder) -> ScorerConfig:
    return ScorerConfig(model=str(folder), device="cpu", max_input_tokens=MAX_INPUT_TOKENS)


def logits(model) -> list[float]:
    return model.logits([GROUP]).flat.tolist()


def test_models_that_differ_in_their_heads_score_the_mean_of_their_logits(tmp_path):
    other = load_reward_model(str(START))
    other.get_parameter("score.weight").data.mul_(-3.0)
    other.save_pretrained(tmp_path)
    load_tokenizer(str(START)).save_pretrained(tmp_path)
    first, second = (logits(load_scorer(scorer(folder))) for folder in (START, tmp_path))
    merged = logits(Merged(members=(scorer(START), scorer(tmp_path)))._merged)
    assert first != pytest.approx(second, abs=0.1)
    assert merged == pytest.approx([(a + b) / 2 for a, b in zip(first, second, strict=True)], abs=1e-4)


def test_a_model_merged_with_itself_is_itself():
    assert logits(Merged(members=(scorer(START), scorer(START)))._merged) == logits(load_scorer(scorer(START)))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((1, 0, -90), (0, 1, -10), 1),  # the verdict comes first
        ((1, 0, -10), (1, 1, -10), -1),  # then whether it ended
        ((1, 1, -10), (1, 1, -16), 1),  # then the length, beyond the margin
        ((1, 1, -10), (1, 1, -15), 0),  # and not within it
    ],
)
def test_the_first_signal_that_differs_decides(first, second, expected):
    assert order(first, second, (0, 0, 5)) == expected
    assert order(second, first, (0, 0, 5)) == -expected


def group(verdicts, texts):
    answers = [Answer(text) for text in texts]
    return PairGroup(AnswerGroup("g", GROUP.problem, answers), verdicts, [0.0] * len(texts), "seed")


def test_pairs_are_by_verdict_and_where_the_rule_is_silent_by_length():
    texts = ["answer: 19", "a much longer text and then answer: 18"]
    (pair,) = LexicographicSource(4, 1.0).pairs([group(["wrong", "correct"], texts)], []).pairs
    assert (pair.positive, pair.negative) == (texts[1], texts[0])
    made = LexicographicSource(4, 1.0).pairs([group(["silent", "silent"], texts)], [])
    assert [(pair.positive, pair.negative) for pair in made.pairs] == [(texts[0], texts[1])]
    assert made.metrics == {"pairs/lexicographic_silent": 1.0}
    alike = LexicographicSource(4, 1.0).pairs([group(["silent", "silent"], ["answer: 19", "answer: 18"])], [])
    assert (list(alike.pairs), alike.metrics) == ([], {})
