"""A head with an auxiliary language-modelling loss on a working, and groups of a judge's verdicts."""

import json
from random import Random

import pytest
import torch
from benchmarks.arena.working_loss import LossWeights, Order, WorkedRow, combined_loss, worked_rows, working_of
from benchmarks.arithmetic.judge_collapse import pull, youdens_j
from benchmarks.arithmetic.working import written_rows
from torch import Tensor
from transformers import PreTrainedModel

from cooper_audit.statistics import mean_interval
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.reward_model import VerifyRMConfig, new_reward_model
from cooper_lab.arithmetic.tokenizer import END, build_tokenizer
from cooper_rl import LabelledCompletion
from cooper_rl.engines.reward_input import RewardModelInput
from repository import ROOT

WEIGHTS = LossWeights(label=1.0, language=0.3, working=0.7)
ROWS = [
    LabelledCompletion("7 + 12 = ?", "19", "7+12=19 answer: nineteen", 1.0),
    LabelledCompletion("7 + 12 = ?", "18", "7+12=19 \\boxed{19}", 0.0),
    LabelledCompletion("3/2 + 1/2", "2", "no idea", 0.0),
    LabelledCompletion("9 share 45 cups. How many each?", "5", "45/9 answer: 5 cups", 1.0),
]


@pytest.mark.parametrize(
    ("row", "working"),
    [
        (ROWS[0], "19 19 y"),
        (ROWS[1], "19 18 n"),
        (ROWS[2], "? 2 n"),
        (LabelledCompletion("?", "3/2", "answer: 1 1/2 cups", 1.0), "3/2 3/2 y"),
        (LabelledCompletion("?", "18", "answer: 19 or 18", 1.0), "? 18 y"),
        (LabelledCompletion("?", "5", "answer: 5", 0.0), "5 5 n"),
    ],
)
def test_a_working_says_both_values_and_the_label(row: LabelledCompletion, working: str):
    assert working_of(row, "values_first") == working + END
    *values, verdict = working.split()
    assert working_of(row, "verdict_first") == " ".join([verdict, *values]) + END


def test_the_gradient_of_the_combined_loss_is_that_of_plain_float64_code():
    model, rows = small_model(), encoded()
    combined_loss(model, rows, WEIGHTS).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    plain_loss(model, rows, WEIGHTS).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradients[name], parameter.grad, rtol=1e-9, atol=1e-12, msg=name)
    assert any(gradient is not None and gradient.abs().max() > 1e-3 for gradient in gradients.values())


@torch.no_grad()
def test_workings_do_not_change_what_the_head_says():
    model, only_label = small_model(), LossWeights(1.0, 0.0, 0.0)
    with_workings = combined_loss(model, encoded(), only_label)
    torch.testing.assert_close(with_workings, combined_loss(model, encoded(None), only_label), rtol=1e-12, atol=0)


def test_a_batch_of_wrong_rows_has_no_language_loss():
    wrong = [row for row in encoded(None) if row.label == 0]
    assert combined_loss(small_model(), wrong, LossWeights(0.0, 1.0, 1.0)) == 0


def test_only_comparing_tells_the_label_of_a_row_of_the_trial():
    rows = written_rows(arithmetic_problems("train", 60), Random(0))
    assert len(rows) > 40
    for row in rows:
        stated, reference, verdict = working_of(row, "values_first").removesuffix(END).split()
        assert (stated == reference) == (verdict == "y") == (row.label == 1)
    for texts in ([(row.question, row.completion) for row in rows], [(row.question, row.answer) for row in rows]):
        for text in texts:
            labels = [row.label for row, other in zip(rows, texts, strict=True) if other == text]
            assert sum(labels) == len(labels) / 2


def test_a_group_about_one_answer_does_not_pull_a_judge_that_always_says_yes():
    always = torch.full((2, 8), 1 - 1e-9, dtype=torch.float64)
    random, one_answer = torch.Generator().manual_seed(0), torch.tensor([[True], [False]]).expand(2, 8)
    assert torch.equal(pull(always, one_answer, "one answer", random), torch.zeros_like(always))
    both = (torch.arange(8) % 2 == 0).expand(2, 8)
    pulled = pull(always, both, "right and wrong answers", random)
    assert (pulled[both] > 0).all()
    assert (pulled[~both] < 0).all()


def test_groups_of_right_and_wrong_answers_teach_a_judge_sooner():
    assert youdens_j("right and wrong answers", seed=0)[0] > youdens_j("one answer", seed=0)[0] + 0.2


def test_the_gain_on_the_page_is_that_of_the_saved_results():
    page = (ROOT / "packages/lab/src/cooper_lab/arithmetic/README.md").read_text(encoding="utf-8")
    trials = json.loads((ROOT / "benchmarks/results/working.json").read_text(encoding="utf-8"))
    gains = [
        trial["arms"]["values_first:0.3"][-1]["accuracy"] - trial["arms"]["head"][-1]["accuracy"]
        for trial in trials
        if trial["seed"] < 6
    ]
    gain = "{:.3f}, 95 % interval {:.2f} to {:.2f}".format(*mean_interval(gains)).replace("-", "\u2212")
    assert f"{gain} (Student's t), ahead in {sum(gain > 0 for gain in gains)} of {len(gains)}" in page


def small_model() -> PreTrainedModel:
    torch.set_default_dtype(torch.float64)
    try:
        return new_reward_model(VerifyRMConfig(hidden_size=16, layers=2), build_tokenizer(), seed=3).double()
    finally:
        torch.set_default_dtype(torch.float32)


def encoded(order: Order | None = "values_first") -> list[WorkedRow]:
    tokenizer = build_tokenizer()
    rows = Random(0).sample(ROWS, len(ROWS))
    return worked_rows(rows, RewardModelInput(tokenizer, 160), tokenizer, order)


def plain_loss(model: PreTrainedModel, rows: list[WorkedRow], weights: LossWeights) -> Tensor:
    """The loss row by row, without padding, with sums over single tokens."""
    embedding = model.get_parameter("model.embed_tokens.weight")
    head = model.get_parameter("score.weight")[0]
    label, inputs, workings = [], [], []
    for token_ids, working_ids, is_right in rows:
        tokens = token_ids + working_ids
        states = model.base_model(torch.tensor([tokens]), use_cache=False).last_hidden_state[0]
        yes = torch.sigmoid(states[len(token_ids) - 1] @ head)
        label.append(-torch.log(yes if is_right else 1 - yes))
        for place in range(1, len(tokens)):
            logits = embedding @ states[place - 1]
            loss = torch.log(torch.exp(logits).sum()) - logits[tokens[place]]
            if place >= len(token_ids):
                workings.append(loss)
            elif is_right:
                inputs.append(loss)
    terms = ((weights.label, label), (weights.language, inputs), (weights.working, workings))
    return sum((weight * torch.stack(losses).mean() for weight, losses in terms), torch.zeros(()))
