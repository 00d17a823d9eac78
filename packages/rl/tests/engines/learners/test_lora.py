"""Low-rank adapters: what is shared, what is trained and saved, and what is told when they do not fit."""

import importlib.util
import json

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, GPT2Config, GPT2LMHeadModel

from cooper_base.errors import InputError, MissingExtraError
from cooper_rl.engines.base import PairBatch, PolicyBatch
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.cpu.linear import FastLinear, has_onednn, use_fast_linear
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.models import load_policy, load_reward_model, load_tokenizer, merge_folder
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.losses.policy import PolicyObjective, PPOClip
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.engines.model_folder import check_model_folder
from cooper_rl.records import Column
from cooper_rl.verifyrm.config import VerifyRMConfig

ROWS, LENGTHS = Column.of([[5, 6, 7, 8, 9, 3], [5, 6, 2, 4]]), np.array([4, 2])
PAIRS = PairBatch([[5, 6, 7]], [[5, 8]], [1.0])


def config(folder, lora=None, **changes) -> LearnerConfig:
    settings = {"model": str(folder), "learning_rate": 1e-2, "device": "cpu", "lora": {"rank": 4, **(lora or {})}}
    return LearnerConfig.model_validate(settings | changes)


def train(learner: TorchPolicyLearner, updates: int = 2) -> None:
    for _ in range(updates):
        old = learner.logprobs(ROWS, LENGTHS)
        batch = PolicyBatch(ROWS, LENGTHS, np.repeat([1.0, -1.0], LENGTHS), np.full(6, 1 / 6), old, old)
        learner.forward_backward(batch, PolicyObjective(loss=PPOClip(), kl=None))
        learner.optim_step()


def storages(*models: torch.nn.Module) -> int:
    """Bytes of all tensors, each memory once."""
    held = {
        t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for m in models for t in m.state_dict().values()
    }
    return sum(held.values())


def test_the_reference_is_the_base_exactly_and_takes_no_memory(policy_folder):
    base = TorchPolicyLearner.from_config(config(policy_folder).model_copy(update={"lora": None}), 0, trainable=False)
    policy = TorchPolicyLearner.from_config(config(policy_folder), 4)
    before = storages(policy.model)
    train(policy)
    np.testing.assert_array_equal(policy.logprobs(ROWS, LENGTHS, 0.7, adapter=False), base.logprobs(ROWS, LENGTHS, 0.7))
    assert np.abs(policy.logprobs(ROWS, LENGTHS) - base.logprobs(ROWS, LENGTHS)).max() > 1e-3
    adapter = sum(p.numel() * p.element_size() for p in policy.model.parameters() if p.requires_grad)
    assert storages(policy.model) == before == storages(base.model) + adapter
    with pytest.raises(RuntimeError, match="frozen"):
        base.optim_step()


def test_only_the_adapter_moves_and_has_moments(policy_folder):
    policy = TorchPolicyLearner.from_config(config(policy_folder), 4)
    before = {name: p.clone() for name, p in policy.model.named_parameters()}
    train(policy)
    moved = {name for name, p in policy.model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {name for name in before if ".lora_" in name}
    assert len(policy._get_optimizer().state) == len(moved) == 2 * 7 * 2


def test_the_reward_models_head_is_trained_and_saved(reward_model_folder, tmp_path):
    learner = TorchRewardModelLearner.from_config(config(reward_model_folder), 4)
    before = learner.model.get_parameter("score.weight").clone()
    learner.forward_backward(PAIRS, PairwiseLoss(anchor=0.1))
    learner.optim_step()
    assert not torch.equal(learner.model.get_parameter("score.weight"), before)
    learner.save(tmp_path / "saved")
    base = AutoModelForSequenceClassification.from_pretrained(reward_model_folder)
    for model in (PeftModel.from_pretrained(base, tmp_path / "saved"), load_reward_model(str(tmp_path / "saved"))):
        logits = torch.cat([model(torch.tensor([row])).logits[:, 0] for row in ([5, 6, 7], [5, 8])])
        torch.testing.assert_close(logits, learner.score([[5, 6, 7], [5, 8]]), rtol=0, atol=1e-5)


def test_a_checkpoint_is_the_adapter_alone_and_merges_into_a_plain_folder(policy_folder, tmp_path):
    policy = TorchPolicyLearner.from_config(config(policy_folder), 4)
    train(policy)
    policy.save(tmp_path / "saved")
    assert not (tmp_path / "saved/model.safetensors").exists()
    assert not list((tmp_path / "saved").rglob("*.bin"))
    check_model_folder(str(tmp_path / "saved"))
    merge_folder(str(tmp_path / "saved"), tmp_path / "plain")
    tokens = torch.tensor([[5, 6, 7, 8]])
    expected = policy.model(tokens).logits
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "plain")
    torch.testing.assert_close(plain(tokens).logits, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(load_policy(str(tmp_path / "saved"))(tokens).logits, expected, rtol=0, atol=1e-5)
    assert load_tokenizer(str(tmp_path / "plain")).encode("a1") == load_tokenizer(str(policy_folder)).encode("a1")
    with pytest.raises(InputError, match="already in use"):
        merge_folder(str(tmp_path / "saved"), tmp_path / "plain")
    with pytest.raises(InputError, match="holds no adapter"):
        merge_folder(str(tmp_path / "plain"), tmp_path / "other")


def test_an_adapter_is_resumed_with_its_own_settings_on_its_own_base(policy_folder, make_policy, tokenizer, tmp_path):
    policy = TorchPolicyLearner.from_config(config(policy_folder), 4)
    train(policy)
    policy.save(tmp_path / "saved")
    with pytest.raises(InputError, match="another rank"):
        TorchPolicyLearner.from_config(config(policy_folder, {"rank": 5}), 4).load(tmp_path / "saved")
    whole = TorchPolicyLearner.from_config(config(policy_folder).model_copy(update={"lora": None}), 4)
    with pytest.raises(InputError, match="holds an adapter"):
        whole.load(tmp_path / "saved")
    whole.save(tmp_path / "whole")
    with pytest.raises(InputError, match="saved without LoRA"):
        policy.load(tmp_path / "whole")
    make_policy(seed=7).save_pretrained(tmp_path / "other")
    tokenizer.save_pretrained(tmp_path / "other")
    with pytest.raises(InputError, match="beside other weights"):
        TorchPolicyLearner.from_config(config(tmp_path / "other"), 4).load(tmp_path / "saved")


@pytest.mark.parametrize("max_tokens", [12, 1])
def test_the_sampler_reports_the_adapted_models_logprobs(policy_folder, max_tokens):
    """With the packed copy of the weights, and without it: GPT-2 has none."""
    torch.manual_seed(0)
    shape = {"vocab_size": 49, "n_embd": 32, "n_layer": 2, "n_head": 2, "bos_token_id": None, "eos_token_id": 0}
    gpt2 = TorchPolicyLearner(GPT2LMHeadModel(GPT2Config(**shape)), config("gpt2"), 4)
    for policy in (TorchPolicyLearner.from_config(config(policy_folder), 4), gpt2):
        for name, parameter in policy.model.named_parameters():
            if ".lora_" in name:
                torch.nn.init.normal_(parameter, std=0.2)
        sampler = NativeSampler(load_tokenizer(str(policy_folder)))
        sampler.sync_weights(policy)
        drawn = sampler.sample([[5, 6, 7], [9]], 3, SamplingParams(max_tokens=max_tokens), seed=0)
        rows = [[*([5, 6, 7], [9])[i // 3], *row.tolist()] for i, row in enumerate(drawn.token_ids)]
        expected = policy.logprobs(Column.of(rows), drawn.token_ids.lengths)
        np.testing.assert_allclose(drawn.logprobs, expected, rtol=0, atol=1e-4)


@pytest.mark.skipif(not has_onednn(), reason="this PyTorch has no oneDNN")
def test_frozen_layers_and_adapters_compute_in_onednn(policy_folder):
    one, other = (TorchPolicyLearner.from_config(config(policy_folder), 4) for _ in range(2))
    use_fast_linear(one.model, FastLinear)
    use_fast_linear(other.model, torch.nn.Linear)
    projection = one.model.get_submodule("model.layers.0.self_attn.q_proj")
    assert all(isinstance(projection.get_submodule(name), FastLinear) for name in ("base_layer", "lora_A.default"))
    for learner in (one, other):
        train(learner)
    np.testing.assert_allclose(one.logprobs(ROWS, LENGTHS), other.logprobs(ROWS, LENGTHS), rtol=0, atol=1e-4)


def test_every_adapter_starts_the_same_and_the_runs_random_numbers_stay(policy_folder):
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    made = [TorchPolicyLearner.from_config(config(policy_folder), 1) for _ in range(2)]
    assert torch.rand(1) == expected
    a, b = (m.model.get_parameter("model.layers.0.mlp.up_proj.lora_A.default.weight") for m in made)
    assert torch.equal(a, b)
    assert a.any()


def test_missing_libraries_are_told_by_name(monkeypatch, policy_folder):
    missing = {"peft", "bitsandbytes"}
    find = importlib.util.find_spec
    monkeypatch.setattr("cooper_rl.engines.config.find_spec", lambda name: None if name in missing else find(name))
    with pytest.raises(MissingExtraError, match="extra `lora`"):
        TorchPolicyLearner.from_config(config(policy_folder), 1)
    missing.remove("peft")
    with pytest.raises(MissingExtraError, match="load_in_4bit: needs bitsandbytes"):
        TorchPolicyLearner.from_config(config(policy_folder, {"load_in_4bit": True}), 1)


def test_settings_that_do_not_go_with_an_adapter_are_refused():
    with pytest.raises(ValueError, match="load_in_4bit"):
        VerifyRMConfig.model_validate({"model": "base", "lora": {"load_in_4bit": True}})


def test_an_adapter_that_names_no_base_is_an_input_error(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    for base in ("", str(tmp_path), None):
        (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
        with pytest.raises(InputError, match="base_model_name_or_path"):
            check_model_folder(str(tmp_path))
