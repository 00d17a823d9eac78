import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cooper_base.errors import InputError
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.cpu.linear import has_onednn
from cooper_rl.engines.local.device import available_cores, resolve_device, set_threads
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.logprobs import token_logprobs
from cooper_rl.engines.local.optimizer import learning_rate_factor
from cooper_rl.engines.local.packing import length_mask, pad_tokens, token_budget_batches


@given(st.lists(st.integers(1, 50), max_size=60), st.integers(1, 200))
def test_every_row_is_in_one_batch_and_padding_stays_within_the_budget(lengths, budget):
    batches = token_budget_batches(lengths, budget)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(lengths[row] for row in batch)
        assert padded <= budget or len(batch) == 1


def test_rows_of_like_length_share_a_batch():
    assert token_budget_batches([3, 10, 9, 2, 2], 20) == [[1, 2], [0, 3, 4]]


def test_padding_is_on_the_right():
    cpu = torch.device("cpu")
    assert pad_tokens([[5, 6, 7], [8]], 1, cpu).tolist() == [[5, 6, 7], [8, 1, 1]]
    assert length_mask(torch.tensor([1, 3]), 3).tolist() == [[True, False, False], [True, True, True]]


@pytest.mark.parametrize(
    ("step", "schedule", "factor"),
    [
        (0, "constant", 0.25),
        (2, "constant", 0.75),
        (3, "constant", 1.0),
        (4, "constant", 1.0),
        (1000, "constant", 1.0),
        (0, "cosine", 0.25),
        (4, "cosine", 1.0),
        (6, "cosine", 0.5 + 0.25 * 2**0.5),  # a quarter of the way: (1 + cos 45 degrees) / 2
        (8, "cosine", 0.5),
        (12, "cosine", 0.0),
        (13, "cosine", 0.0),
        (2, "linear", 0.75),
        (4, "linear", 1.0),
        (6, "linear", 0.75),
        (13, "linear", 0.0),
    ],
)
def test_learning_rate_with_four_warmup_steps_of_twelve(step, schedule, factor):
    assert learning_rate_factor(step, 4, 12, schedule) == pytest.approx(factor, abs=1e-12)


@pytest.mark.parametrize(("schedule", "rates"), [("linear", [8.0, 6.0, 4.0]), ("constant", [8.0, 8.0, 8.0])])
def test_a_falling_rate_ends_at_0(make_policy, schedule, rates):
    rate = {"learning_rate": 8.0, "warmup_steps": 2, "schedule": schedule}
    config = LearnerConfig.model_validate({"model": "tiny", "device": "cpu", **rate})
    learner, found = TorchPolicyLearner(make_policy(), config, 6), []
    for learner.steps in (0, 2, 3, 4, 6):
        found.append(learner.learning_rate)
    assert found == [4.0, *rates, 0.0 if schedule == "linear" else 8.0]
    learner.set_learning_rate(4.0)
    assert learner.learning_rate == (0.0 if schedule == "linear" else 4.0)


def test_the_first_step_learns_without_warmup():
    assert learning_rate_factor(0, 0, 10, "cosine") == 1.0


@pytest.fixture
def threads_put_back():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("omp", [None, "many", "0"])
def test_threads_default_to_the_cores_this_process_may_use(monkeypatch, threads_put_back, omp):
    monkeypatch.setenv("OMP_NUM_THREADS", omp) if omp else monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert set_threads() == available_cores() == torch.get_num_threads()
    if hasattr(os, "sched_getaffinity"):
        assert available_cores() == len(os.sched_getaffinity(0))


def test_threads_of_the_environment_count_and_a_setting_counts_more(monkeypatch, threads_put_back, caplog):
    caplog.set_level(logging.INFO, "cooper_rl")
    monkeypatch.setenv("OMP_NUM_THREADS", "3,1")
    assert set_threads() == torch.get_num_threads() == 3
    assert "CPU threads for tensor work: 3 (OMP_NUM_THREADS)" in caplog.text
    assert set_threads(1) == torch.get_num_threads() == 1
    assert "1 (as set)" in caplog.text


@pytest.mark.parametrize("name", ["abacus", "cuda:99"])
def test_a_device_that_is_not_there_is_an_input_error(name):
    with pytest.raises(InputError, match=name):
        resolve_device(name)


def test_auto_finds_a_device_that_works():
    assert torch.ones(2, device=resolve_device("auto")).sum().item() == 2


@pytest.mark.slow
def test_ever_new_batch_sizes_do_not_fill_the_memory():
    """oneDNN keeps a compiled kernel for each number of rows: by default 290 MiB for these."""
    if not Path("/proc/self/status").exists() or not has_onednn():
        pytest.skip("the test reads memory from /proc and needs oneDNN")
    code = """
from pathlib import Path
import torch, cooper_rl.engines.local.device
torch.set_num_threads(1)
def resident_kib():
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("VmRSS")))
weight = torch.ones(384, 128)
for rows in range(64, 600):
    torch.ops.mkldnn._linear_pointwise(torch.ones(rows, 128), weight, None, "none", [], "")
    if rows == 164:
        before = resident_kib()
print(resident_kib() - before)
"""
    grown_kib = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown_kib < 100 * 1024


def test_chunked_logprobs_and_gradients_equal_the_plain_ones(caplog):
    caplog.set_level(logging.ERROR)
    torch.manual_seed(0)
    head = torch.nn.Linear(8, 20, bias=False).double()
    hidden = torch.randn(13, 8, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(20, (13,))
    plain = head(hidden).log_softmax(-1)[torch.arange(13), targets]
    expected = torch.autograd.grad(plain.square().sum(), [hidden, head.weight])
    chunked = token_logprobs(hidden, head, targets, logits_per_chunk=60)
    found = torch.autograd.grad(chunked.square().sum(), [hidden, head.weight])
    torch.testing.assert_close(chunked, plain, rtol=0, atol=1e-12)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
