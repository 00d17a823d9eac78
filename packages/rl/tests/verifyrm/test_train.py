"""A VerifyRM learns, keeps the best weights, and loads in plain transformers."""

import itertools
import json
import random
import re
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from cooper_base.data.labelled import LabelledCompletion, split_by_problem
from cooper_base.errors import InputError
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.reward.monitor import classification_metrics, roc_auc
from cooper_rl.verifyrm.config import VerifyRMConfig
from cooper_rl.verifyrm.train import (
    METRICS_FILE,
    class_weights,
    fitted,
    length_grouped_batches,
    one_sided,
    train_verifyrm,
)
from slow_members import first_fast


def labelled_rows(count: int) -> list[LabelledCompletion]:
    """Labelled rows, a third of them right. A right completion says so in its last word."""
    return [
        LabelledCompletion(f"what is {i}?", "1", f"step {i % 7}. {'yes' if i % 3 == 0 else 'no'}", float(i % 3 == 0))
        for i in range(count)
    ]


def config(folder: Path, **changes) -> VerifyRMConfig:
    settings = {"learning_rate": 1e-2, "epochs": 8, "batch_size": 16, "evaluate_every": 10, "warmup_steps": 2}
    settings |= {"model": str(folder), "threads": 1, "device": "cpu", "max_input_tokens": 160}
    return VerifyRMConfig.model_validate(settings | changes)


@pytest.mark.parametrize("base", ["policy", "reward_model"])
def test_a_causal_model_and_a_reward_model_both_learn(tiny_models: Path, tmp_path: Path, base: str):
    result = train_verifyrm(config(tiny_models / base, epochs=16), labelled_rows(120), tmp_path / "rm")
    assert result["held_out"]["accuracy"] > 0.95
    assert result["held_out"]["roc_auc"] > 0.95
    assert result["rows"] == {"train": 108, "robustness": 11, "held_out": 12, "given": 120}
    assert json.loads((tmp_path / "rm" / METRICS_FILE).read_text()) == result


@pytest.mark.parametrize("lora", first_fast([None, {"rank": 4}]))
def test_plain_transformers_loads_the_weights_with_the_lowest_held_out_loss(tiny_models: Path, tmp_path: Path, lora):
    rows = labelled_rows(60)
    seen: list[tuple[int, int]] = []
    settings = {"evaluate_every": 1, "epochs": 4, "calibrate": False, "patience": None}
    settings |= {"learning_rate": 3.0, "warmup_steps": 20, "schedule": "constant"}  # a rate that rises too far
    diverging = config(tiny_models / "policy", lora=lora, **settings)
    result = train_verifyrm(diverging, rows, tmp_path / "rm", lambda done, _, total: seen.append((done, total)))
    losses = [entry["loss"] for entry in result["history"]]
    assert result["held_out"]["loss"] == min(losses) < losses[-1]
    assert seen == [(i + 1, len(losses)) for i in range(len(losses))]

    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "rm")
    encoder = RewardModelInput(AutoTokenizer.from_pretrained(tmp_path / "rm"), 160)
    _, held_out = split_by_problem(rows, diverging.held_out, diverging.seed)
    inputs = [torch.tensor([encoder.encode(row.question, row.answer, row.completion)]) for row in held_out]
    with torch.no_grad():
        logits = torch.cat([model(tokens).logits[:, 0] for tokens in inputs])
    measured = classification_metrics(logits, torch.tensor([row.label for row in held_out]))
    assert measured["loss"] == pytest.approx(min(losses), rel=1e-4)


def test_settings_that_nobody_set_fit_few_rows(caplog):
    def numbers(rows, **settings):
        config, updates = fitted(VerifyRMConfig(model="m", **settings), rows)
        return config.batch_size, config.warmup_steps, config.evaluate_every, updates

    caplog.set_level("INFO", "cooper_rl")
    assert numbers(200) == (20, 3, 6, 30)
    assert "200 training rows are few, so: batch_size 20 instead of 64, warmup_steps 3 instead of 10" in caplog.text
    assert numbers(20) == (8, 0, 1, 8)
    assert numbers(2000) == (64, 10, 50, 94)
    caplog.clear()
    assert numbers(200, batch_size=64, warmup_steps=10, evaluate_every=50) == (64, 10, 50, 9)
    assert "warmup_steps: 10 of 9 updates" in caplog.text
    assert "evaluate_every: 50, but there are 9 updates" in caplog.text


def test_a_folder_appears_only_when_it_is_done_and_an_interrupted_training_can_start_anew(tiny_models, tmp_path):
    settings, rows = config(tiny_models / "policy", epochs=2, evaluate_every=1), labelled_rows(60)

    def interrupt(done, metrics, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_verifyrm(settings, rows, tmp_path / "rm", interrupt)
    assert not (tmp_path / "rm").exists()
    train_verifyrm(settings, rows, tmp_path / "rm")
    assert [path.name for path in tmp_path.iterdir()] == ["rm"]
    assert "# rm" in (tmp_path / "rm" / "README.md").read_text()


def test_few_held_out_rows_calibrate_nothing_and_the_log_and_the_card_say_so(tiny_models: Path, tmp_path: Path, caplog):
    result = train_verifyrm(config(tiny_models / "policy", epochs=1), labelled_rows(60), tmp_path / "rm")
    assert "the model will not be calibrated: 6 rows are held out, and at least 100 are needed" in caplog.text
    assert result["calibration"] == {}
    card = " ".join((tmp_path / "rm" / "README.md").read_text().split())
    assert "Not calibrated, so `sigmoid(logit)` is no probability: 6 rows were held out" in card


def test_on_a_cpu_the_default_size_of_a_micro_batch_is_bounded_by_memory(tiny_models, tmp_path, caplog, monkeypatch):
    """The default, 8,192 tokens, would keep 14 GB of a model with the shape of SmolLM2-135M."""
    caplog.set_level("INFO", "cooper_rl")
    settings = config(tiny_models / "policy", epochs=1, robustness=0)
    plain = train_verifyrm(settings, labelled_rows(60), tmp_path / "plain")
    assert "tokens_per_microbatch" not in caplog.text
    monkeypatch.setattr("cooper_rl.verifyrm.train.ACTIVATION_BYTES", 2e6)
    bounded = train_verifyrm(settings, labelled_rows(60), tmp_path / "bounded")
    assert "instead of 8192, for about 1 GB of activations" in caplog.text
    assert bounded["held_out"]["loss"] == pytest.approx(plain["held_out"]["loss"], rel=1e-3)
    caplog.clear()
    train_verifyrm(
        config(tiny_models / "policy", epochs=1, tokens_per_microbatch=9000), labelled_rows(60), tmp_path / "own"
    )
    assert "tokens_per_microbatch" not in caplog.text


def test_a_temperature_that_does_not_help_is_logged_and_not_applied(tiny_models, tmp_path, caplog, monkeypatch):
    """Six held-out rows: the fit would raise their calibration error from 0.14 to 0.22 across the halves."""
    monkeypatch.setattr("cooper_rl.verifyrm.train.FEWEST_ROWS", 6)
    settings = config(tiny_models / "policy", epochs=2)
    result = train_verifyrm(settings, labelled_rows(60), tmp_path / "rm")
    assert "does not lower their calibration error" in caplog.text
    plain = train_verifyrm(settings.model_copy(update={"calibrate": False}), labelled_rows(60), tmp_path / "plain")
    assert result["held_out"] == {name: value for name, value in plain["held_out"].items() if name != "update"}
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("rm", "plain")]
    assert weights[0] == weights[1]
    card = " ".join((tmp_path / "rm" / "README.md").read_text().split())
    assert "Not scaled: the fitted temperature" in card


def test_frozen_layers_stay_bit_for_bit_and_the_head_learns(tiny_models: Path, tmp_path: Path):
    base = AutoModelForSequenceClassification.from_pretrained(tiny_models / "reward_model").state_dict()
    settings = config(tiny_models / "reward_model", frozen_layers=1, epochs=1)
    train_verifyrm(settings, labelled_rows(40), tmp_path / "rm")
    trained = AutoModelForSequenceClassification.from_pretrained(tmp_path / "rm").state_dict()
    changed = {name for name in base if not torch.equal(base[name], trained[name])}
    assert changed == {"model.norm.weight", "score.weight"}


def test_inputs_that_cannot_be_trained_on_are_refused_before_training(tiny_models: Path, tmp_path: Path):
    settings = config(tiny_models / "policy")
    right_only = [row for row in labelled_rows(60) if row.label == 1]
    with pytest.raises(InputError, match="0 wrong"):  # before a model is loaded
        train_verifyrm(config(tmp_path / "no-model"), right_only, tmp_path / "rm")
    with pytest.raises(InputError, match="frozen_layers: 2, but this model has 1 layers"):
        train_verifyrm(config(tiny_models / "policy", frozen_layers=2), labelled_rows(60), tmp_path / "rm")
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "config.json").write_text("{}")
    with pytest.raises(InputError, match="already in use"):
        train_verifyrm(settings, labelled_rows(60), tmp_path / "used")
    with pytest.raises(InputError, match="none of the rows fits"):
        train_verifyrm(config(tiny_models / "policy", max_input_tokens=16), labelled_rows(60), tmp_path / "rm")


def test_class_weights_give_both_classes_the_same_share():
    weights = class_weights([1.0, 0.0, 0.0, 0.0])
    assert weights == {1.0: 2.0, 0.0: pytest.approx(2 / 3)}


def test_every_row_is_in_exactly_one_batch_of_similar_length():
    lengths = [random.Random(i).randint(1, 500) for i in range(1000)]
    batches = length_grouped_batches(lengths, 16, random.Random(0))
    assert sorted(itertools.chain(*batches)) == list(range(1000))
    padded = sum(len(batch) * max(lengths[row] for row in batch) for batch in batches)
    assert padded < 1.1 * sum(lengths)
    assert batches != length_grouped_batches(lengths, 16, random.Random(1))


def test_roc_auc_is_the_share_of_ordered_pairs_with_ties_at_half():
    logits = torch.tensor([0.1, 0.4, 0.4, 0.8, -2.0, 0.4])
    labels = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    pairs = [
        0.5 if right == wrong else float(right > wrong)
        for right in logits[labels == 1]
        for wrong in logits[labels == 0]
    ]
    assert roc_auc(logits, labels) == pytest.approx(sum(pairs) / len(pairs))
    assert roc_auc(labels, labels) == 1.0
    assert roc_auc(-labels, labels) == 0.0


def test_classification_metrics_by_hand():
    metrics = classification_metrics(torch.tensor([2.0, -1.0, 0.5, -3.0]), torch.tensor([1.0, 1.0, 0.0, 0.0]))
    assert (metrics["accuracy"], metrics["recall"], metrics["specificity"]) == (0.5, 0.5, 0.5)
    assert metrics["loss"] == pytest.approx((0.126928 + 1.313262 + 0.974077 + 0.048587) / 4, abs=1e-5)


def test_calibration_is_in_the_saved_weights_and_in_the_metrics(tiny_models: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("cooper_rl.verifyrm.train.FEWEST_ROWS", 20)
    settings = config(tiny_models / "policy", epochs=4)  # too few to be sure enough: the temperature is below 1
    plain = train_verifyrm(settings.model_copy(update={"calibrate": False}), labelled_rows(200), tmp_path / "plain")
    result = train_verifyrm(settings, labelled_rows(200), tmp_path / "rm")
    temperature = result["calibration"]["temperature"]
    assert temperature == result["calibration"]["temperature_fitted"] < 0.8
    assert result["held_out"]["ece"] < plain["held_out"]["ece"]
    assert plain["calibration"] == {}
    assert result["held_out"]["roc_auc"] == plain["held_out"]["roc_auc"]
    assert result["held_out"]["loss"] != plain["held_out"]["loss"]
    folders = [tmp_path / name for name in ("plain", "rm")]
    heads = [AutoModelForSequenceClassification.from_pretrained(folder).score.weight for folder in folders]
    assert torch.allclose(heads[0] / temperature, heads[1], rtol=1e-5)


def test_the_model_card_says_what_was_done(tiny_models: Path, tmp_path: Path):
    result = train_verifyrm(config(tiny_models / "policy", epochs=1), labelled_rows(60), tmp_path / "rm")
    card = (tmp_path / "rm" / "README.md").read_text()
    assert f"{result['held_out']['accuracy']:.4f}" in card
    assert "<reference_answer>" in card
    assert "many_answers" in card
    assert str(tiny_models / "policy") in card


def test_training_stops_when_the_held_out_loss_no_longer_falls(tiny_models: Path, tmp_path: Path):
    settings = config(tiny_models / "policy", learning_rate=0.3, evaluate_every=1, epochs=20, patience=3)
    result = train_verifyrm(settings, labelled_rows(60), tmp_path / "rm")
    losses = [entry["loss"] for entry in result["history"]]
    assert len(losses) == losses.index(min(losses)) + 1 + 3


@pytest.mark.slow
def test_robustness_rows_teach_that_an_empty_completion_is_wrong(tiny_models: Path, tmp_path: Path):
    """The given rows alone teach the opposite: what has no `no` in it is right."""
    rows = [
        LabelledCompletion(f"what is {i}?", "1", f"step {i % 7}.{' no' * (i % 3 == 0)}", float(i % 3 > 0))
        for i in range(120)
    ]
    train_verifyrm(config(tiny_models / "policy", robustness=0.5, epochs=16, calibrate=False), rows, tmp_path / "rm")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "rm")
    encoder = RewardModelInput(AutoTokenizer.from_pretrained(tmp_path / "rm"), 160)
    with torch.no_grad():
        for text, is_right in (("", False), ("step 4.", True)):
            inputs = [torch.tensor([encoder.encode(f"what is {i}?", "1", text)]) for i in range(200, 210)]
            assert all((model(tokens).logits.item() > 0) == is_right for tokens in inputs)


@pytest.mark.parametrize(
    ("held_out", "right_of_ten", "says"),
    [
        ({"recall": 0.0, "specificity": 1.0, "roc_auc": 0.9}, 5, "accepts no held-out .* only the threshold is off"),
        ({"recall": 0.0, "specificity": 1.0, "roc_auc": 0.5}, 0.5, "5 % of its 20 training rows are right"),
        ({"recall": 1.0, "specificity": 0.0, "roc_auc": 0.5}, 5, "accepts every held-out .* has not learned to tell"),
        ({"recall": 0.1, "specificity": 1.0, "roc_auc": 0.5}, 5, "^$"),
        ({"recall": 0.0, "roc_auc": 0.5}, 5, "^$"),
    ],
)
def test_a_model_that_accepts_all_or_nothing_is_said_with_the_cause(held_out, right_of_ten, says):
    right = round(2 * right_of_ten)
    assert re.search(says, one_sided(held_out, [1.0] * right + [0.0] * (20 - right)))
