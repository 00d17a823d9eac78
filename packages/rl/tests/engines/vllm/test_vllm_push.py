"""What a vLLM engine draws after weights were handed over, and after a hand-over that was cut."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")

from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl import InputError
from cooper_rl.engines.config import LearnerConfig, LoraConfig, SamplingParams
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.scale.vllm import VllmConfig
from cooper_rl.engines.scale.vllm.engines import OfflineEngine
from cooper_rl.engines.scale.vllm.sampler import build_sampler
from cooper_rl.engines.scale.vllm.weight_sync import UNFINISHED, WeightPushError
from cooper_rl.records import Column, Samples

LONG = [5 + i * i % 97 for i in range(150)]
"""More than a block of the prefix cache, 128 tokens on a CPU."""
PROMPTS = [LONG, [*LONG[:140], 70], [50, 40, 30]]
DRAWN = SamplingParams(max_tokens=24)


def tied_qwen2(folder: Path) -> Path:
    """A Qwen2 whose head is tied to its embeddings, with biases that are not zero."""
    tokenizer = build_tokenizer()
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 128,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "eos_token_id": tokenizer.eos_token_id,
    }
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(Qwen2Config(**shape, tie_word_embeddings=True))
    disturb(model, 0.05)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tied_qwen2(tmp_path_factory.mktemp("qwen2"))


@pytest.fixture(scope="module")
def engine(folder):
    return OfflineEngine(str(folder), CONFIG)


CONFIG = VllmConfig(kv_cache_gib=0.1, timeout_s=20)


@pytest.fixture
def learner(folder):
    return TorchPolicyLearner.from_config(LearnerConfig(model=str(folder), device="cpu"), 10)


@pytest.fixture
def sampler(engine, folder):
    return build_sampler(LearnerConfig(model=str(folder)), CONFIG, "gloo", start=lambda *_: engine)


@torch.no_grad()
def disturb(model, by: float, generator=None) -> None:
    for parameter in model.parameters():
        parameter.add_(by * torch.randn(parameter.shape, generator=generator))


def gap(samples: Samples, learner, prompts: list[list[int]] = PROMPTS) -> float:
    """Largest distance in nats between sampler and learner."""
    own = learner.logprobs(rows_of(samples, prompts), samples.token_ids.lengths)
    return float(np.abs(samples.logprobs - own).max())


def rows_of(samples: Samples, prompts: list[list[int]] = PROMPTS) -> Column:
    n = len(samples) // len(prompts)
    return Column.of([[*prompts[i // n], *row.tolist()] for i, row in enumerate(samples.token_ids)])


def check_twenty_pushes(sampler, learner, change) -> None:
    """`change(push)` disturbs the learner. The prompts stay the same, so that a prefix cache that outlived a push would
    show."""
    gaps, texts, versions = [], set(), set()
    for push in range(20):
        change(push)
        sampler.sync_weights(learner)
        samples = sampler.sample(PROMPTS, 4, DRAWN, seed=push)
        gaps.append(gap(samples, learner))
        texts.add(tuple(samples.texts))
        versions.add(sampler.version)
    assert max(gaps) < 1e-4, "nats after each push: " + " ".join(f"{g:.1e}" for g in gaps)
    assert len(texts) == len(versions) == 20


def test_after_each_of_twenty_pushes_sampler_and_learner_agree(sampler, learner):
    generator = torch.Generator().manual_seed(1)
    check_twenty_pushes(sampler, learner, lambda push: disturb(learner.model, 0.02, generator))


def test_without_emptying_the_prefix_cache_they_would_not_agree(sampler, learner, engine, monkeypatch):
    """What the test above would see."""
    sampler.sync_weights(learner)
    sampler.sample(PROMPTS, 4, DRAWN, seed=0)
    disturb(learner.model, 0.05)
    monkeypatch.setattr(engine, "reset_prefix_cache", lambda: None)
    sampler.sync_weights(learner)
    assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=0), learner) > 0.01


def test_the_same_weights_and_seed_draw_the_same_after_another_push(sampler, learner):
    sampler.sync_weights(learner)
    first = sampler.sample(PROMPTS, 8, DRAWN, seed=5)
    sampler.sync_weights(learner)
    again = sampler.sample(PROMPTS, 8, DRAWN, seed=5)
    np.testing.assert_array_equal(again.token_ids.values, first.token_ids.values)
    assert len({tuple(row) for row in first.token_ids}) > len(PROMPTS) * 4  # a seed for each completion


def test_an_engine_that_does_not_sleep_goes_on_drawing_after_a_rest(sampler, learner):
    sampler.sync_weights(learner)
    first = sampler.sample(PROMPTS, 2, DRAWN, seed=5)
    sampler.rest()
    np.testing.assert_array_equal(sampler.sample(PROMPTS, 2, DRAWN, seed=5).token_ids.values, first.token_ids.values)


@pytest.mark.skipif(torch.cuda.is_available(), reason="here vLLM can sleep")
def test_sleep_is_refused_where_vllm_cannot(folder):
    with pytest.raises(InputError, match="vLLM cannot sleep on this machine"):
        VllmConfig(sleep=True).check_model(str(folder))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device; vLLM sleeps on one only")
def test_a_sleeping_engine_gives_its_memory_back_and_draws_with_the_next_weights(folder):
    learner = TorchPolicyLearner.from_config(LearnerConfig(model=str(folder)), 10)
    config = VllmConfig(kv_cache_gib=0.5, gpu_memory_utilization=0.2, sleep=True)
    sampler = build_sampler(LearnerConfig(model=str(folder)), config, "ipc")
    for push in range(3):
        disturb(learner.model, 0.02)
        sampler.sync_weights(learner)
        assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=push), learner) < 0.1
        awake = torch.cuda.mem_get_info()[0]
        sampler.rest()
        assert torch.cuda.mem_get_info()[0] > awake + 2**28
        with pytest.raises(RuntimeError, match="call sync_weights first"):
            sampler.sample(PROMPTS, 4, DRAWN, seed=push)


def test_more_prompt_tokens_than_fit_into_one_pass_are_drawn_from_too(sampler, learner):
    """On a CPU vLLM could not draw after a prompt that it had divided between two passes."""
    prompts = [[5 + i * j % 97 for j in range(1, 121)] for i in range(40)]  # no block of the prefix cache in common
    sampler.sync_weights(learner)
    assert gap(sampler.sample(prompts, 1, DRAWN, seed=0), learner, prompts) < 1e-4


@pytest.mark.parametrize("after", [0, 1, 9])
def test_a_push_that_is_cut_is_told_and_the_next_one_mends_it(sampler, learner, engine, monkeypatch, after):
    """Cut after so many tensors, in the middle of a layer's fused weights."""
    sampler.sync_weights(learner)
    original, numbers = torch.nn.Module.named_parameters, count()

    def cut(module, *arguments, **settings):
        for item in original(module, *arguments, **settings):
            if module is learner.model and next(numbers) >= declared + after:
                raise OSError("the cable is out")
            yield item

    disturb(learner.model, 0.05)
    declared = len(list(learner.model.named_parameters()))
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.Module, "named_parameters", cut)
        with pytest.raises(WeightPushError, match="the cable is out"):
            sampler.sync_weights(learner)
    assert engine.weight_versions()[0].startswith(UNFINISHED)
    with pytest.raises(RuntimeError, match="sync_weights"):
        sampler.sample(PROMPTS, 1, DRAWN, seed=0)
    sampler.sync_weights(learner)
    assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=0), learner) < 1e-4


def test_a_worker_that_cannot_take_a_weight_ends_the_push(sampler, learner, folder, tmp_path):
    other = LlamaForCausalLM(LlamaConfig(vocab_size=31, hidden_size=32, num_hidden_layers=1, num_attention_heads=1))
    learner.model, kept = other, learner.model
    with pytest.raises(WeightPushError):
        sampler.sync_weights(learner)
    learner.model = kept
    sampler.sync_weights(learner)
    assert gap(sampler.sample(PROMPTS, 4, DRAWN, seed=0), learner) < 1e-4


def test_an_engine_that_has_lost_its_weights_gets_them_again_before_anything_is_learned(sampler, learner, engine):
    sampler.sync_weights(learner)
    drawn = sampler.sample(PROMPTS, 4, DRAWN, seed=0)
    other = TorchPolicyLearner.from_config(learner.config, 10)
    disturb(other.model, 0.1)
    build_sampler(learner.config, CONFIG, "gloo", start=lambda *_: engine).sync_weights(other)  # another run's
    again = sampler.sample(PROMPTS, 4, DRAWN, seed=0)
    assert sampler.take_metrics()["engine/reconnections"] == 1
    np.testing.assert_array_equal(again.token_ids.values, drawn.token_ids.values)
    assert gap(again, learner) < 1e-4


@pytest.fixture
def adapted(folder):
    """Learners with an adapter of a rank, beside the same frozen weights."""
    pytest.importorskip("peft", reason="peft is not installed")

    def make(rank: int = 4, **settings) -> TorchPolicyLearner:
        lora = LoraConfig(rank=rank, alpha=6, **settings)
        return TorchPolicyLearner.from_config(LearnerConfig(model=str(folder), device="cpu", lora=lora), 10)

    return make


@torch.no_grad()
def disturb_adapter(model, by: float, generator=None) -> None:
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            parameter.add_(by * torch.randn(parameter.shape, generator=generator))


@pytest.fixture(scope="module")
def applying(folder):
    """An engine that holds the frozen weights and applies adapters."""
    pytest.importorskip("peft", reason="peft is not installed")
    return OfflineEngine(str(folder), CONFIG, adapter_rank=8)


@pytest.fixture
def adapter_sampler(applying, folder):
    return build_sampler(LearnerConfig(model=str(folder)), CONFIG, "gloo", start=lambda *_: applying)


def test_an_adapter_alone_draws_what_the_merged_weights_draw(adapter_sampler, sampler, adapted):
    learner = adapted()
    for push in range(3):
        disturb_adapter(learner.model, 0.1)
        alone, merged = (
            (one.sync_weights(learner), one.sample(PROMPTS, 8, DRAWN, seed=push))[1]
            for one in (adapter_sampler, sampler)
        )
        np.testing.assert_array_equal(alone.token_ids.values, merged.token_ids.values)
        np.testing.assert_allclose(alone.logprobs, merged.logprobs, rtol=0, atol=2e-5)
        assert gap(alone, learner) < 1e-4
        base = learner.logprobs(rows_of(alone), alone.token_ids.lengths, adapter=False)
        assert np.abs(alone.logprobs - base).max() > 0.1  # the adapter is large enough to be seen


def test_after_each_of_twenty_adapters_sampler_and_learner_agree(adapter_sampler, adapted):
    learner, generator = adapted(), torch.Generator().manual_seed(1)
    check_twenty_pushes(adapter_sampler, learner, lambda push: disturb_adapter(learner.model, 0.03, generator))


def test_an_adapter_that_the_engine_cannot_take_is_told_and_the_next_one_mends_it(adapter_sampler, adapted, applying):
    with pytest.raises(WeightPushError, match=r"not handed over.*max_lora_rank"):
        adapter_sampler.sync_weights(adapted(rank=9))
    assert applying.weight_versions()[0].startswith(UNFINISHED)
    learner = adapted()
    disturb_adapter(learner.model, 0.1)
    adapter_sampler.sync_weights(learner)
    assert gap(adapter_sampler.sample(PROMPTS, 4, DRAWN, seed=0), learner) < 1e-4


def test_which_engines_apply_an_adapter(folder):
    def rank(config=CONFIG, **lora) -> int:
        return config.adapter_rank(LearnerConfig(model=str(folder), lora=LoraConfig(**lora)))

    assert (rank(rank=1), rank(rank=9), rank(rank=32), rank(rank=513)) == (1, 16, 32, 0)
    assert CONFIG.adapter_rank(LearnerConfig(model=str(folder))) == 0
    assert rank(VllmConfig(url="http://localhost:8000")) == 0


def test_models_that_vllm_applies_no_adapter_to_get_whole_weights(tmp_path):
    models = pytest.importorskip("vllm.model_executor.models")
    gptj = models.registry.ModelRegistry.models["GPTJForCausalLM"].load_model_cls()
    assert not models.interfaces.supports_lora(gptj)
    (tmp_path / "config.json").write_text('{"model_type": "gptj", "architectures": ["GPTJForCausalLM"]}')
    assert VllmConfig().adapter_rank(LearnerConfig(model=str(tmp_path), lora=LoraConfig())) == 0


def test_weights_that_have_diverged_are_told(sampler, learner):
    with torch.no_grad():
        learner.model.model.norm.weight.fill_(float("nan"))
    sampler.sync_weights(learner)
    with pytest.raises(FloatingPointError, match="diverged"):
        sampler.sample(PROMPTS, 1, DRAWN, seed=0)
