"""Temperature scaling: the temperature is the best one and is folded into the weights; errors equal those by hand."""

import math

import pytest
import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

from cooper_rl.reward.monitor import expected_calibration_error, reliability
from cooper_rl.verifyrm.calibration import (
    Calibration,
    calibrate_folder,
    cross_fitted_ece,
    fit_temperature,
    scale_logits,
)


def drawn(count: int, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and labels that are right with probability sigmoid(logit / temperature)."""
    generator = torch.Generator().manual_seed(0)
    logits = 6 * torch.randn(count, generator=generator)
    labels = (torch.rand(count, generator=generator) < (logits / temperature).sigmoid()).float()
    return logits, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_labels_were_drawn_with_is_found_and_no_other_is_better(temperature):
    logits, labels = drawn(20_000, temperature)
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(temperature, rel=0.08)

    right, wrong = labels.sum().item(), (1 - labels).sum().item()
    targets = torch.where(labels > 0.5, (right + 1) / (right + 2), 1 / (wrong + 2)).double()

    def loss(t: float) -> float:
        return torch.nn.functional.binary_cross_entropy_with_logits(logits.double() / t, targets).item()

    assert loss(found) <= min(loss(found * 1.01), loss(found / 1.01))


def test_scaling_reduces_overconfidence_on_rows_it_was_not_fitted_on():
    logits, labels = drawn(4000, 3.0)
    before = expected_calibration_error(logits.double().sigmoid(), labels)
    after = cross_fitted_ece(logits, labels, [i % 2 for i in range(len(logits))])
    assert before > 0.08
    assert after < 0.03
    assert math.isnan(cross_fitted_ece(logits, labels, [0] * len(logits)))


def test_a_temperature_is_applied_where_the_error_falls_on_rows_it_has_not_seen():
    logits, labels = drawn(4000, 3.0)
    found = Calibration.of(logits, labels, [i % 2 for i in range(len(logits))])
    assert found.helps
    assert found.temperature == found.fitted == pytest.approx(3, rel=0.1)
    assert found.figures()["ece_before"] > 2 * found.figures()["ece_cross_fitted"]


def test_few_rows_get_no_temperature_that_makes_the_error_worse_on_others():
    logits, labels = torch.tensor([-2.5, 2.5] * 13), torch.tensor([0.0, 1.0] * 13)  # right at 0.92
    found = Calibration.of(logits, labels, [i // 2 % 2 for i in range(len(logits))])
    assert found.fitted < 1
    assert found.ece_after < found.ece_before < found.ece_cross_fitted
    assert not found.helps
    assert found.temperature == 1
    alone = Calibration.of(logits, labels, [0] * len(logits))  # rows of one problem: nothing to check it on
    assert alone.temperature == 1
    assert "ece_cross_fitted" not in alone.figures()


@pytest.mark.parametrize("count", [1, 20])
def test_a_few_perfectly_separated_rows_do_not_give_certainty(count):
    logits, labels = torch.tensor([-4.0, 4.0] * count), torch.tensor([0.0, 1.0] * count)
    probability = (logits[1] / fit_temperature(logits, labels)).sigmoid().item()
    assert probability == pytest.approx((count + 1) / (count + 2), rel=1e-6)  # Laplace's rule of succession


def test_expected_calibration_error_by_hand():
    probabilities = torch.tensor([0.1, 0.1, 0.9, 0.9, 1.0], dtype=torch.float64)
    labels = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0])
    found = reliability(probabilities, labels, bins=5)
    assert [(b.count, b.right) for b in found] == [(2, 0.5), (3, pytest.approx(2 / 3))]
    expected = 2 / 5 * abs(0.1 - 0.5) + 3 / 5 * abs(2.8 / 3 - 2 / 3)
    assert expected_calibration_error(probabilities, labels, bins=5) == pytest.approx(expected)


def test_the_saved_folder_gives_the_scaled_logit(tiny_models, tmp_path):
    tokens = torch.tensor([[5, 6, 7, 8]])
    model = AutoModelForSequenceClassification.from_pretrained(tiny_models / "reward_model")
    before = model(tokens).logits
    for path in (tiny_models / "reward_model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    calibrate_folder(tmp_path, 2.5)
    after = AutoModelForSequenceClassification.from_pretrained(tmp_path)(tokens).logits
    assert after.item() == pytest.approx(before.item() / 2.5, rel=1e-5)


def test_a_head_with_a_bias_is_scaled_whole():
    config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    config.num_labels = 1
    model = BertForSequenceClassification(config).eval()
    torch.nn.init.constant_(model.classifier.bias, 1.0)
    tokens = torch.tensor([[1, 2, 3]])
    before = model(tokens).logits
    scale_logits(model, 3.0)
    assert model(tokens).logits.item() == pytest.approx(3 * before.item(), rel=1e-5)
