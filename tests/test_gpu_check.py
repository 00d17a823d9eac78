"""The GPU check runs where there is no GPU: on the CPU as a trial, and otherwise it says that it did not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "gpu_check.py"
TINY = ["--shape", "tiny", "--prompts", "2", "--n", "2", "--prompt-tokens", "8", "--new-tokens", "8", "--repeats", "1"]


def test_every_part_is_measured(tmp_path):
    output = tmp_path / "gpu.json"
    script = [sys.executable, SCRIPT, *TINY, "--device", "cpu", "--output", output]
    subprocess.run(script, check=True, capture_output=True)
    found = json.loads(output.read_text())
    for precision, most in (("off", 1e-4), ("bfloat16", 0.1)):
        for part in ("sample", "logprobs", "update_policy", "score"):
            assert found[precision][part]["tokens_per_second"] > 0
        assert found[precision]["sampler_against_learner_nats"]["max"] < most


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU; run make gpu-check")
def test_without_a_gpu_it_says_that_nothing_was_run(tmp_path):
    script = [sys.executable, SCRIPT, "--output", tmp_path / "gpu.json"]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    assert "was not run" in done.stdout
    assert not (tmp_path / "gpu.json").exists()
