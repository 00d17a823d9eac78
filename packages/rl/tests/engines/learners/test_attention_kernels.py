"""Every kernel of attention computes what plain attention over each row computes, in float64 where it can."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from cooper_rl import InputError
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.attention import KERNELS, choose_kernel, kernel_error
from cooper_rl.engines.local.device import warn_untried
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.numerics import exact_float32
from cooper_rl.engines.local.packing import pack_rows
from cooper_rl.records import Column
from slow_members import first_fast

CPU = torch.device("cpu")
RNG = np.random.default_rng(0)
PROMPTS = [RNG.integers(0, 50, length) for length in (150, 7, 40)]
ROWS = [np.append(prompt, RNG.integers(50, 60, size)) for prompt in PROMPTS for size in (1, 90, 130, 3)]
ROWS += [PROMPTS[0], np.array([61]), np.array([62, 63])]
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device; run on one")


def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention of a row: q [L, heads, size], k and v [M, kv_heads, size]; the last query sees the last key."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = torch.einsum("lhd,mhd->hlm", q, k) / math.sqrt(q.shape[-1])
    unseen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(len(k) - len(q)).logical_not()
    return torch.einsum("hlm,mhd->lhd", scores.masked_fill(unseen, -torch.inf).softmax(-1), v)


def drawn(heads: int, key_heads: int, tokens: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(tokens, n, 16, generator=generator, dtype=dtype) for n in (heads, key_heads, key_heads)]


@pytest.mark.parametrize("heads", first_fast([[4, 2], [4, 4], [6, 1]]))
@pytest.mark.parametrize("kernel", ["sdpa", "flex"])
def test_packed_rows_are_attended_as_each_row_alone(kernel, heads):
    packed = pack_rows(ROWS, CPU)
    q, k, v = (x.requires_grad_(kernel != "flex") for x in drawn(heads[0], heads[1], packed.token_ids.shape[1]))
    found = KERNELS[kernel](packed, torch.float64)(q, k, v, None)
    for row, places in zip(ROWS, packed.places, strict=True):
        at = places[: len(row)]
        torch.testing.assert_close(found[at], plain(q[at], k[at], v[at]), rtol=0, atol=1e-12)
    if kernel == "flex":
        return  # on a CPU it has no backward pass
    weights = torch.randn_like(found)
    gradients = torch.autograd.grad(found, (q, k, v), weights)
    alone, done = torch.zeros(()).double(), torch.zeros(len(q), dtype=torch.bool)
    for row, places in zip(ROWS, packed.places, strict=True):
        at = places[: len(row)]
        new = at[~done[at]]  # a token that several rows share counts once
        done[at] = True
        alone = alone + (plain(q[at], k[at], v[at])[len(at) - len(new) :] * weights[new]).sum()
    torch.testing.assert_close(gradients, torch.autograd.grad(alone, (q, k, v)), rtol=0, atol=1e-12)


def test_log_probabilities_by_flex_are_those_by_sdpa(make_policy):
    rows, lengths = Column.of([row % 64 for row in ROWS if len(row) > 3]), np.array([1, 90, 130, 3] * 3 + [5])
    found = {}
    for attention in ("sdpa", "flex", "padded"):
        config = LearnerConfig(model="", device="cpu", attention=attention)
        learner = TorchPolicyLearner(make_policy(torch.float64), config, 10, trainable=False)
        assert learner.attention == ("flex" if attention == "flex" else "sdpa")
        found[attention] = torch.from_numpy(learner.logprobs(rows, lengths))
    torch.testing.assert_close(found["flex"], found["padded"], rtol=0, atol=1e-10)
    torch.testing.assert_close(found["sdpa"], found["padded"], rtol=0, atol=1e-10)


def test_the_trial_tells_a_kernel_that_computes_the_same(make_policy):
    config = make_policy().config
    assert kernel_error("flex", config, CPU, bfloat16=False, learns=False) < 1e-6
    assert kernel_error("flex", config, CPU, bfloat16=True, learns=False) < 0.01
    assert choose_kernel("auto", config, CPU, bfloat16=False, learns=True) == "sdpa"
    assert choose_kernel("flex", config, CPU, bfloat16=False, learns=False) == "flex"


def test_a_kernel_that_cannot_run_here_is_refused(make_policy):
    config = LearnerConfig(model="", device="cpu", attention="flex")
    with pytest.raises(InputError, match="no backward pass on cpu"):
        TorchPolicyLearner(make_policy(), config, 10, trainable=True)


def test_a_kernel_for_packed_rows_is_refused_where_rows_are_not_packed(make_policy):
    config = LearnerConfig(model="", device="cpu", attention="flex")
    with pytest.raises(InputError, match="leave out attention"):
        TorchPolicyLearner(make_policy(sliding_window=4, use_sliding_window=True), config, 10, trainable=False)


@needs_cuda
@pytest.mark.parametrize("bfloat16", [False, True])
def test_on_a_gpu_results_and_gradients_are_those_of_sdpa(make_policy, bfloat16):
    config = make_policy(hidden_size=256, num_attention_heads=4, num_key_value_heads=2).config
    error = kernel_error("flex", config, torch.device("cuda"), bfloat16, learns=True)
    assert error < (0.02 if bfloat16 else 1e-5)


@needs_cuda
def test_on_a_gpu_flex_stays_compiled_whatever_the_lengths():
    cuda, random = torch.device("cuda"), np.random.default_rng(1)
    compiled = torch._dynamo.utils.counters["stats"]
    for drawing in range(24):
        rows = [np.append(prompt, random.integers(50, 60, random.integers(1, 300))) for prompt in PROMPTS for _ in "ab"]
        packed = pack_rows(rows[: random.integers(1, 7)] if drawing else [np.arange(5)], cuda)
        q, k, v = (x.to(cuda).requires_grad_() for x in drawn(4, 2, packed.token_ids.shape[1], torch.float32))
        found = {}
        for kernel in ("flex", "sdpa"):
            with exact_float32():
                result = KERNELS[kernel](packed, torch.float32)(q, k, v, None)
                found[kernel] = (result, *torch.autograd.grad(result.square().sum(), (q, k, v)))
        torch.testing.assert_close(found["flex"], found["sdpa"], rtol=1e-4, atol=1e-4)
        if drawing == 0:
            before = compiled["unique_graphs"]
    assert compiled["unique_graphs"] - before <= 2


def test_a_part_that_has_never_run_on_a_gpu_is_told_once(caplog):
    for part in ("engine: a", "engine: b", "engine: a"):
        warn_untried(part)
    told = [message.partition(" has never run on a GPU")[0] for message in caplog.messages]
    assert told == ["engine: a", "engine: b"]
    assert "docs/gpu.md" in caplog.text
