import pytest
import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

from cooper_base.errors import InputError
from cooper_rl.engines.base import LabelledBatch, PairBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss, PairwiseLoss, bce_loss

LENGTHS = [5, 17, 1, 9, 30, 2]


def config(**changes) -> LearnerConfig:
    return LearnerConfig(**({"model": "tiny", "learning_rate": 1e-2, "device": "cpu"} | changes))


def rows(seed: int, low: int = 1) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(low, 64, (length,), generator=generator).tolist() for length in LENGTHS]


def plain_logits(model, token_ids: list[list[int]]) -> torch.Tensor:
    return torch.cat([model(torch.tensor([row])).logits[:, 0] for row in token_ids])


def gradients(model) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def bert() -> BertForSequenceClassification:
    settings: dict = {
        "num_labels": 1,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
    }
    torch.manual_seed(0)
    return BertForSequenceClassification(BertConfig(vocab_size=64, **settings)).eval()


@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_scores_equal_plain_transformers_on_single_rows(make_reward_model, kind):
    model = make_reward_model() if kind == "llama" else bert()
    learner = TorchRewardModelLearner(model, config(tokens_per_microbatch=64), 10)
    scores = learner.score(rows(0))
    assert scores.dtype == torch.float32
    with torch.no_grad():
        torch.testing.assert_close(scores, plain_logits(model, rows(0)), rtol=0, atol=1e-5)


def test_the_logit_is_the_head_on_the_state(make_reward_model):
    learner = TorchRewardModelLearner(make_reward_model(), config(tokens_per_microbatch=64), 10)
    states = learner.states(rows(0))
    scores = learner.model.get_submodule("score")(states)[:, 0].detach()
    torch.testing.assert_close(scores, learner.score(rows(0)), rtol=0, atol=1e-5)
    with pytest.raises(InputError, match="no linear head"):
        TorchRewardModelLearner(bert(), config(), 10).states(rows(0))


def test_a_row_may_end_with_the_padding_token(make_reward_model):
    """End-of-sequence is often also the padding token. The score is still read at that token."""
    scores = {}
    for pad in (0, 63, None):
        learner = TorchRewardModelLearner(make_reward_model(pad_token_id=pad), config(), 10)
        learner.model.load_state_dict(make_reward_model(pad_token_id=None).state_dict())
        scores[pad] = learner.score([[5, 6, 0, 0], [5, 6], [9, 8, 7, 5, 6, 0]])
    torch.testing.assert_close(scores[0], scores[None], rtol=0, atol=0)
    torch.testing.assert_close(scores[63], scores[None], rtol=0, atol=0)
    assert abs(scores[0][0] - scores[0][1]) > 1e-3


@pytest.mark.parametrize("budget", [1, 40, 10_000])
def test_pairs_in_micro_batches_give_the_gradient_of_the_full_batch(make_reward_model, budget):
    model = make_reward_model(torch.float64)
    batch = PairBatch(rows(1), rows(2)[::-1], [0.1, 0.2, 0.3, 0.15, 0.05, 0.2])
    outputs = PairwiseLoss(anchor=0.5).pair_loss(
        plain_logits(model, batch.positives),
        plain_logits(model, batch.negatives),
        torch.tensor(batch.weights, dtype=torch.float64),
    )
    outputs.loss.backward()
    expected = gradients(model)
    model.zero_grad()
    learner = TorchRewardModelLearner(model, config(tokens_per_microbatch=budget), 10)
    metrics = learner.forward_backward(batch, PairwiseLoss(anchor=0.5))
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-10)
    assert metrics["loss"] == pytest.approx(outputs.loss.item(), abs=1e-10)
    assert metrics["margin"] == pytest.approx(outputs.metric_sums["margin"].item() / len(LENGTHS), abs=1e-10)
    assert metrics["pair_accuracy"] == outputs.metric_sums["pair_accuracy"].item() / len(LENGTHS)


@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_a_row_of_several_pairs_is_computed_once_and_counts_in_each(make_reward_model, kind):
    model = make_reward_model(torch.float64) if kind == "llama" else bert().double()
    right, wrong = rows(1)[:2], rows(2)
    batch = PairBatch([*right * 3], wrong, [0.1, 0.2, 0.3, 0.15, 0.05, 0.2])
    logits = plain_logits(model, batch.positives), plain_logits(model, batch.negatives)
    PairwiseLoss().pair_loss(*logits, torch.tensor(batch.weights, dtype=torch.float64)).loss.backward()
    expected = gradients(model)
    model.zero_grad()
    seen = []
    embed = model.get_input_embeddings()
    embed.register_forward_pre_hook(lambda _, given: seen.append(given[0].numel()))
    learner = TorchRewardModelLearner(model, config(), 10)
    learner.forward_backward(batch, PairwiseLoss())
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-10)
    packed, padded = sum(map(len, [*right, *wrong])), 8 * max(LENGTHS)
    assert seen[-1] <= (packed if kind == "llama" else padded)


@pytest.mark.parametrize("budget", [1, 40])
def test_labelled_rows_in_micro_batches_give_the_gradient_of_the_full_batch(make_reward_model, budget):
    model = make_reward_model(torch.float64)
    batch = LabelledBatch(rows(3), [1.0, 0.0, 1.0, 0.0, 0.3, 1.0], [1 / 6] * 6)
    tensors = [torch.tensor(values, dtype=torch.float64) for values in (batch.labels, batch.weights)]
    bce_loss(plain_logits(model, batch.token_ids), *tensors).loss.backward()
    expected = gradients(model)
    model.zero_grad()
    learner = TorchRewardModelLearner(model, config(tokens_per_microbatch=budget, gradient_checkpointing=True), 10)
    metrics = learner.forward_backward(batch, BinaryCrossEntropyLoss())
    torch.testing.assert_close(gradients(model), expected, rtol=0, atol=1e-10)
    assert set(metrics) == {"loss", "accuracy"}


def test_training_separates_the_pairs(make_reward_model):
    learner = TorchRewardModelLearner(make_reward_model(), config(learning_rate=3e-3), 30)
    batch = PairBatch(rows(1), rows(2), [1 / 6] * 6)
    for _ in range(30):
        metrics = learner.forward_backward(batch, PairwiseLoss())
        learner.optim_step()
    assert metrics["pair_accuracy"] == 1
    assert metrics["loss"] < 0.1
    assert (learner.score(batch.positives) > learner.score(batch.negatives)).all()


def test_a_saved_reward_model_scores_the_same_in_plain_transformers(reward_model_folder, tmp_path):
    learner = TorchRewardModelLearner.from_config(config(model=str(reward_model_folder)), 1)
    learner.save(tmp_path / "saved")
    plain = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    with torch.no_grad():
        torch.testing.assert_close(plain_logits(plain, rows(0)), learner.score(rows(0)), rtol=0, atol=1e-5)
