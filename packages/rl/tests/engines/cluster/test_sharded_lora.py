"""Adapters of sharded models: what is shared between processes and with the reference, saved, and dropped out."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sharded import CONFIG, pair_batch, policy_batch, train
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, LlamaForSequenceClassification

from cooper_base.errors import InputError
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl.engines.config import LearnerConfig, LoraConfig, SamplingParams
from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.local.adapter import own
from cooper_rl.engines.local.models import merge_folder
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.records import Column
from rank_processes import on_ranks, together, two_ranks
from tiny_llama import tiny_config


def adapted(model: Path, **lora) -> LearnerConfig:
    return CONFIG.model_copy(update={"model": str(model), "lora": LoraConfig(rank=3, **lora)})


def adapter_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "adapter_model.safetensors")


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reward_model")
    torch.manual_seed(1)
    tokenizer = build_tokenizer()
    shape = tiny_config(vocab_size=len(tokenizer), num_labels=1, pad_token_id=0)
    LlamaForSequenceClassification(shape).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.slow
@together
@pytest.mark.parametrize(
    ("saver", "loader"),
    [(2, 1), (1, 2), (2, 2), (4, 2), (2, 4), (4, 1), (1, 4)],
)
def test_an_adapter_goes_on_in_another_number_of_processes(engines, folder, tmp_path, saver, loader):
    first = engines(saver).policy(adapted(folder), 10)
    train(first, 2)
    first.save(tmp_path / "two")
    train(first, 2)
    first.save(tmp_path / "four")
    second = engines(loader).policy(adapted(folder), 10)
    second.load(tmp_path / "two")
    train(second, 2)
    second.save(tmp_path / "again")
    torch.testing.assert_close(adapter_of(tmp_path / "again"), adapter_of(tmp_path / "four"), rtol=0, atol=2e-6)
    before, after = (adapter_of(tmp_path / name) for name in ("two", "four"))
    assert max((before[name] - after[name]).abs().max() for name in before) > 1e-3
    assert not list(tmp_path.rglob("model.safetensors"))
    assert len(list((tmp_path / "two" / "trainer_state").glob("*.safetensors"))) == saver


@pytest.mark.slow
@together
def test_the_reference_has_the_policys_own_shards(folder):
    """Base and adapter are in halves, and the policy before training is computed from them, to the last bit."""
    asked = (policy_batch().token_ids, policy_batch().lengths, 0.7)
    base = two_ranks().policy(adapted(folder), 0, trainable=False)
    policy = two_ranks().policy(adapted(folder), 10)
    train(policy, 2)
    np.testing.assert_array_equal(policy.logprobs(*asked, adapter=False), base.logprobs(*asked))
    assert np.abs(policy.logprobs(*asked) - base.logprobs(*asked)).max() > 1e-3
    key = policy.key
    held = on_ranks(lambda rank: sum(own(p).numel() for p in rank.parts[key].learner.model.parameters()))
    whole = sum(p.numel() for p in LocalEngine().policy(adapted(folder), 1).model.parameters())
    assert sum(held) == whole
    assert max(held) < 0.55 * whole


@pytest.mark.slow
@together
def test_the_native_sampler_follows_the_adapter_alone(folder):
    """After each update it draws with the policy's own distribution, and its frozen weights stay where they are."""
    policy, sampler = two_ranks().policy(adapted(folder), 10), two_ranks().sampler(adapted(folder), 0)
    prompts, n = [[5, 6, 7], [9, 4]], 4
    for update in range(3):
        train(policy, 1)
        sampler.sync_weights(policy)
        samples = sampler.sample(prompts, n, SamplingParams(max_tokens=40), seed=update)
        rows = Column.of([[*prompts[i // n], *row.tolist()] for i, row in enumerate(samples.token_ids)])
        own = policy.logprobs(rows, samples.token_ids.lengths)
        np.testing.assert_allclose(samples.logprobs, own, rtol=0, atol=1e-5)
    base = policy.logprobs(rows, samples.token_ids.lengths, adapter=False)
    assert np.abs(own - base).max() > 1e-3
    key = policy.key
    sent = on_ranks(lambda rank: sum(tensor.numel() for _, tensor in rank.parts[key].adapter_weights()))
    adapter = sum(p.numel() for p in LocalEngine().policy(adapted(folder), 1).model.parameters() if p.requires_grad)
    assert sent == [adapter, adapter]


@pytest.mark.slow
@together
def test_final_models_hold_what_the_processes_computed(folder, reward_model, tmp_path):
    policy, scorer = two_ranks().policy(adapted(folder), 4), two_ranks().reward_model(adapted(reward_model), 4)
    train(policy, 2)
    scorer.forward_backward(pair_batch(), PairwiseLoss(anchor=0.5))
    scorer.optim_step()
    for name, learner in (("policy", policy), ("reward_model", scorer)):
        learner.save(tmp_path / name)
        merge_folder(str(tmp_path / name), tmp_path / f"plain {name}")
    row = policy_batch().token_ids[1]
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "plain policy")
    logits = plain(torch.from_numpy(row.astype(np.int64))[None]).logits[0, -2].log_softmax(-1)
    found = policy.logprobs(policy_batch().token_ids.take([1]), np.array([1]))
    np.testing.assert_allclose(found, [logits[row[-1]].item()], rtol=0, atol=1e-5)
    head = AutoModelForSequenceClassification.from_pretrained(tmp_path / "plain reward_model")
    rows = pair_batch().positives[:3]
    expected = torch.cat([head(torch.tensor([row])).logits[:, 0] for row in rows])
    torch.testing.assert_close(scorer.score(rows), expected, rtol=0, atol=1e-5)
    start = AutoModelForSequenceClassification.from_pretrained(reward_model)
    assert not torch.equal(head.score.weight, start.score.weight)


@together
def test_adapters_that_cannot_be_trained_here_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="load_in_4bit: engine kind cluster cannot shard 4-bit weights"):
        two_ranks().policy(adapted(folder, load_in_4bit=True), 1)
    train(policy := LocalEngine().policy(adapted(folder), 4), 1)
    policy.save(tmp_path / "saved")
    with pytest.raises(InputError, match="holds an adapter; resume with the settings lora"):
        two_ranks().policy(CONFIG.model_copy(update={"model": str(folder)}), 4).load(tmp_path / "saved")
    other = AutoModelForCausalLM.from_pretrained(folder)
    torch.nn.init.zeros_(other.model.norm.weight)
    other.save_pretrained(tmp_path / "other")
    build_tokenizer().save_pretrained(tmp_path / "other")
    with pytest.raises(InputError, match="beside other weights"):
        two_ranks().policy(adapted(tmp_path / "other"), 4).load(tmp_path / "saved")
