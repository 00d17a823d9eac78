"""What is chosen for a device: precision, TF32, frozen weights, chunks. What a GPU computes is checked on one only."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from cooper_base.config.checking import Settings, check_settings, with_overrides
from cooper_rl import InputError
from cooper_rl.engines.config import LearnerConfig, LoraConfig
from cooper_rl.engines.cpu import linear
from cooper_rl.engines.local import numerics
from cooper_rl.engines.local.adapter import add_adapter
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.logprobs import token_logprobs
from cooper_rl.engines.local.numerics import allow_tf32, exact_float32, halve_frozen, in_bfloat16, largest_chunk
from cooper_rl.records import Column

CPU = torch.device("cpu")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device; run on one")


@pytest.mark.parametrize(
    ("written", "read"),
    [("off", "off"), ("on", "bfloat16"), ('"off"', "off"), ('"on"', "bfloat16"), ("auto", "auto"), ("no", "off")],
)
def test_precision_can_be_written_as_yaml_reads_it(written, read):
    values = with_overrides({"model": "m"}, [f"autocast={written}"])
    assert check_settings(LearnerConfig, Settings(values)).autocast == read


def test_another_precision_is_refused_with_the_ones_there_are():
    with pytest.raises(InputError, match="'auto', 'off' or 'bfloat16'"):
        check_settings(LearnerConfig, Settings({"model": "m", "autocast": "float16"}))


def test_a_cpu_computes_in_float32_unless_it_is_told_otherwise(make_policy):
    assert [in_bfloat16(value, CPU) for value in ("auto", "off", "bfloat16")] == [False, False, True]
    rows, lengths = Column.of([[1, 2, 3, 4], [1, 2, 5]]), np.array([2, 1])
    found = [
        TorchPolicyLearner(make_policy(), LearnerConfig(model="", device="cpu", autocast=autocast), 1).logprobs(
            rows, lengths
        )
        for autocast in ("auto", "off")
    ]
    assert np.array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("processor", "pays"),
    [
        ("AuthenticAMD avx512_bf16", True),
        ("GenuineIntel avx512_bf16", False),
        ("GenuineIntel amx_bf16", True),
        ("", False),
    ],
)
def test_a_processor_that_is_slower_in_bfloat16_is_told_once(monkeypatch, caplog, processor, pays):
    monkeypatch.setattr(linear, "_CPU_INFO", processor)
    for known in (linear.has_bfloat16, linear.bfloat16_pays, numerics._warn_of_slow_bfloat16):
        known.cache_clear()
    try:
        for value in ("auto", "bfloat16", "bfloat16"):
            in_bfloat16(value, CPU)
        assert [record.message for record in caplog.records] == [
            "autocast: this processor multiplies in bfloat16 more slowly than in float32; set autocast: off"
        ] * (not pays)
    finally:
        for known in (linear.has_bfloat16, linear.bfloat16_pays, numerics._warn_of_slow_bfloat16):
            known.cache_clear()


def test_tf32_is_for_gpus_and_off_in_comparisons():
    rows = torch.randn(64, 64, generator=torch.Generator().manual_seed(0))
    products, plain = torch.backends.cuda.matmul, rows @ rows
    products.allow_tf32 = False  # a test on a GPU may have left it on
    try:
        allow_tf32(CPU)
        assert not products.allow_tf32
        allow_tf32(torch.device("cuda"))
        assert products.allow_tf32
        with exact_float32():
            assert not products.allow_tf32
        assert products.allow_tf32
        assert torch.equal(rows @ rows, plain)  # the CPU's products stay as they are
        products.allow_tf32 = False
        products.fp32_precision = "tf32"  # as a library does that uses PyTorch's newer switch alone
        with exact_float32():
            assert products.fp32_precision == "ieee"
        assert products.fp32_precision == "tf32"
    finally:
        products.allow_tf32 = False


def under_autocast(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(tokens).logits


@pytest.mark.parametrize("tied", [True, False])
def test_halved_frozen_weights_compute_the_same_bits(make_policy, tied):
    model = make_policy(tie_word_embeddings=tied).requires_grad_(False)
    halved = copy.deepcopy(model)
    halve_frozen(halved)
    kinds = {
        type(module): next(module.parameters(recurse=False)).dtype
        for module in halved.model.layers[0].modules()
        if list(module.parameters(recurse=False))
    }
    assert kinds[nn.Linear] == torch.bfloat16
    assert {dtype for kind, dtype in kinds.items() if kind is not nn.Linear} == {torch.float32}
    assert halved.lm_head.weight.dtype == (torch.float32 if tied else torch.bfloat16)
    tokens = torch.arange(40).view(4, 10)
    assert torch.equal(under_autocast(halved, tokens), under_autocast(model, tokens))


def test_an_adapter_beside_halved_weights_learns_from_the_same_gradients(make_policy):
    pytest.importorskip("peft")
    model = make_policy()
    add_adapter(model, LoraConfig(rank=4), "")
    halved = copy.deepcopy(model)
    halve_frozen(halved)
    gradients = []
    for one in (model, halved):
        under_autocast(one, torch.arange(40).view(4, 10)).float().logsumexp(-1).sum().backward()
        gradients.append({name: p.grad for name, p in one.named_parameters() if p.requires_grad})
    assert gradients[0].keys() == gradients[1].keys()
    assert all(".lora_" in name and grad.dtype == torch.float32 for name, grad in gradients[1].items())
    assert all(torch.equal(gradients[0][name], gradients[1][name]) for name in gradients[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_log_probabilities_and_gradients_do_not_depend_on_the_chunk(dtype):
    bound = 1e-12 if dtype == torch.float64 else 2e-6
    torch.manual_seed(0)
    hidden, head = torch.randn(301, 32, dtype=dtype), nn.Linear(32, 997, bias=False, dtype=dtype)
    targets, weights = torch.randint(997, (301,)), torch.randn(301, dtype=dtype)
    exact = head.weight.detach().double().requires_grad_()
    expected = (hidden.double() @ exact.T / 0.7).log_softmax(-1).gather(1, targets[:, None]).squeeze(1)
    (expected * weights).sum().backward()
    assert exact.grad is not None
    for logits in (1, 997, 10 * 997, 300 * 997, 2**27):
        head.zero_grad()
        found = token_logprobs(hidden, head, targets, 0.7, logits)
        torch.testing.assert_close(found.double(), expected.detach(), rtol=0, atol=10 * bound)
        (found * weights).sum().backward()
        assert head.weight.grad is not None
        error = (head.weight.grad.double() - exact.grad).norm() / exact.grad.norm()
        assert error < bound


def test_a_gpu_takes_more_tokens_at_a_time():
    assert largest_chunk(CPU) == 2**24
    assert largest_chunk(torch.device("cuda")) // 151_936 == 883


def test_a_learner_says_where_and_how_it_computes(make_policy):
    learner = TorchPolicyLearner(make_policy(), LearnerConfig(model="", device="cpu"), 1)
    tokens = f"{2**24 // 64:,}"
    assert learner.describe() == (
        f"cpu, products in float32, attention sdpa over packed rows, log-probabilities of {tokens} tokens at a time"
    )


def _steps(learner: TorchPolicyLearner, number: int) -> None:
    for step in range(number):
        tokens = torch.arange(10 * step, 10 * step + 10, device=learner.device)[None] % 64
        learner.model(tokens).logits.logsumexp(-1).sum().backward()
        learner.optim_step()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
def test_moments_away_from_the_device_learn_the_same_also_over_a_checkpoint(make_policy, tmp_path, device):
    learners = {}
    for offload in (False, True):
        config = LearnerConfig(model="", device=device, optimizer_offload=offload, learning_rate=1e-2)
        learners[offload] = TorchPolicyLearner(make_policy(), config, 10)
        _steps(learners[offload], 3)
        learners[offload].save(tmp_path / str(offload))
    resumed = TorchPolicyLearner(make_policy(), config, 10)
    resumed.load(tmp_path / "False")
    for learner in (*learners.values(), resumed):
        learner.steps = 3
        _steps(learner, 2)
    assert resumed.optimizer is not None
    moments = [value for state in resumed.optimizer.state.values() for value in state.values() if value.ndim]
    assert {value.device.type for value in moments} == {"cpu"}
    expected = learners[False].model.state_dict()
    for learner in (learners[True], resumed):
        assert all(torch.equal(value, expected[name]) for name, value in learner.model.state_dict().items())


@needs_cuda
def test_on_a_gpu_bfloat16_is_the_default_and_frozen_weights_are_halved(make_policy):
    learner = TorchPolicyLearner(make_policy(), LearnerConfig(model="", device="cuda"), 1, trainable=False)
    assert learner.bfloat16 == torch.cuda.is_bf16_supported(including_emulation=False)
    assert learner.model.get_submodule("model.layers.0.mlp.up_proj").weight.dtype == torch.bfloat16
    exact = TorchPolicyLearner(make_policy(torch.float64), LearnerConfig(model="", device="cpu"), 1, trainable=False)
    rows, lengths = Column.of([[1, 2, 3, 4], [1, 2, 5]]), np.array([2, 1])
    np.testing.assert_allclose(learner.logprobs(rows, lengths), exact.logprobs(rows, lengths), atol=0.1)
