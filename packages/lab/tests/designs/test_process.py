"""Process credit: known values of the three forms, steps and their tokens, and the advantages worked out by hand."""

import math

import numpy as np
import pytest
import torch
from shelf.process_credit import (
    Delta,
    MinForm,
    Steps,
    Sum,
    process_advantages,
    process_metrics,
    split_steps,
    token_spans,
)

from cooper_base.config.checking import Settings, check_settings
from cooper_base.errors import InputError
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl.policy.config import AlgorithmConfig


def of(config, *rewards):
    return config.credit(torch.tensor(rewards, dtype=torch.float64))


def test_known_values_of_the_min_form():
    credit = of(MinForm(temperature=0.1), 0.8, -0.6, 0.5)
    assert credit.tolist() == pytest.approx([6.65e-7, -0.599990, 8.35e-6], rel=1e-3)
    assert credit.sum().item() == pytest.approx(-0.599981, abs=1e-6)
    assert of(MinForm(temperature=1e9), 0.8, -0.6, 0.5).sum().item() == pytest.approx(0.7 / 3)


def test_returns_of_delta_are_the_steps_own_rewards():
    rewards = torch.rand(7, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 0.5
    to_go = Delta().credit(rewards).flip(0).cumsum(0).flip(0)
    torch.testing.assert_close(to_go, rewards)
    assert of(Delta(), 0.3).tolist() == [0.3]


def test_more_good_steps_raise_the_sum_but_neither_the_min_form_nor_delta():
    few, many = [0.4, 0.6], [0.4, 0.6, 0.6, 0.6, 0.6]
    assert of(Sum(), *many).sum() > of(Sum(), *few).sum() + 1.5
    for config in (MinForm(), Delta()):
        assert of(config, *many).sum().item() == pytest.approx(of(config, *few).sum().item(), abs=0.1)
    assert of(Sum(discount=0.5), 1.0, 1.0, 1.0).tolist() == [1.0, 0.5, 0.25]


def steps(*given):
    """From (tokens of the step, its reward), with one token of separator after each step."""
    spans, start = [], 0
    for tokens, _ in given:
        spans.append((start, start + tokens))
        start += tokens + 1
    return Steps(spans, torch.tensor([reward for _, reward in given], dtype=torch.float64)), start


def test_advantages_by_hand():
    (a, tokens_a), (b, tokens_b) = steps((2, 0.5), (1, -0.3)), steps((4, 0.8))
    found = process_advantages([a, b], [2], [tokens_a, tokens_b], Sum())
    # Per token, b has 0.8 / 4 = 0.2 and a has 0.2 / 3. a's second step: -0.3 - 0.2. Its first: that + 0.5 - 2 * 0.2.
    assert found[0].tolist() == pytest.approx([-0.4, -0.4, 0.0, -0.5, 0.0])
    assert found[1].tolist() == pytest.approx([0.8 - 4 * 0.2 / 3] * 4 + [0.0])


def test_a_lone_completion_a_broken_reward_and_a_blank_one():
    (a, tokens_a), (b, tokens_b) = steps((2, 0.5)), steps((4, math.nan))
    blank = Steps([], torch.zeros(0, dtype=torch.float64))
    assert not np.concatenate(process_advantages([a, a, b], [1, 2], [tokens_a, tokens_a, tokens_b], Sum())).any()
    found = process_advantages([a, blank], [2], [tokens_a, 3], MinForm())
    assert found[0].tolist() == pytest.approx([0.5, 0.5, 0.0])  # the other completion has no tokens to compare with
    assert found[1].tolist() == [0.0] * 3
    assert process_metrics([a, blank])["process/steps"] == 0.5
    assert math.isnan(process_metrics([blank])["process/lowest_step"])


def test_steps_are_the_pieces_between_separators_that_say_something():
    text = "\n\nFirst.\n\n \n\nSecond,\nlonger.\n\n"
    assert [text[start:end] for start, end in split_steps(text, "\n\n")] == ["First.", "Second,\nlonger."]
    assert split_steps("", "\n\n") == split_steps(" \n\n\n", "\n\n") == []
    assert split_steps("one", "\n\n") == [(0, 3)]


def test_every_token_is_in_its_own_step():
    tokenizer = build_tokenizer()
    text = "12+7=19 so 19-4=15 answer: 15"
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.eos_token_id is not None
    completion = [*ids, tokenizer.eos_token_id]
    decode = lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))  # noqa: E731
    assert decode(completion) == text
    spans = token_spans(completion, split_steps(text, " so "), decode)
    assert [decode(completion[first:end]).strip() for first, end in spans] == ["12+7=19", "19-4=15 answer: 15"]
    assert spans[-1][1] == len(completion)  # the end of the sequence belongs to the last step


PIECES = ["First", " step", ".\n\n", "Second", ".", "\n", "\n", "Third", ""]


def test_a_token_across_a_border_belongs_to_the_step_before_it():
    spans = token_spans(range(9), split_steps("".join(PIECES), "\n\n"), lambda ids: "".join(PIECES[i] for i in ids))
    assert spans == [(0, 3), (3, 5), (7, 9)]


def test_process_credit_under_gspo_is_refused():
    with pytest.raises(InputError, match="one ratio per completion"):
        check_settings(
            AlgorithmConfig, Settings({"advantages": {"kind": "shelf.process_credit:Delta"}, "loss": {"kind": "gspo"}})
        )
