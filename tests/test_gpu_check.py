"""The GPU check runs where there is no GPU: on the CPU as a trial, and otherwise it says that it did not."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from repository import ROOT

PARTS = ("engine", "conformance", "chunks", "vllm", "step", "run")
TINY = ["--shape", "tiny", "--prompts", "2", "--n", "2", "--prompt-tokens", "8", "--new-tokens", "8", "--repeats", "1"]


def measured(tmp_path: Path, part: str, *more: str) -> dict[str, Any]:
    """What a part has found on the CPU with a tiny shape."""
    output = tmp_path / "gpu.json"
    words = [part, *TINY, "--device", "cpu", "--output", output, *more]
    script = [sys.executable, "-m", "benchmarks.gpu.gpu_check", *words]
    done = subprocess.run(script, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())[part]


@pytest.mark.slow
def test_the_engine_is_measured_in_both_precisions(tmp_path):
    found = measured(tmp_path, "engine")
    for precision, most in (("off", 1e-4), ("bfloat16", 0.1)):
        for part in ("sample", "logprobs", "update_policy", "score"):
            assert found[precision][part]["tokens_per_second"] > 0
        assert found[precision]["sampler_against_learner_nats"]["max"] < most


@pytest.mark.slow
def test_the_conformance_suite_is_run_on_the_device_asked_for(tmp_path):
    found = measured(tmp_path, "conformance", "--pytest=-k 'local and end_of_sequence'")
    assert any("passed" in line for line in found["tests"])


@pytest.mark.slow
def test_every_size_of_a_chunk_is_timed(tmp_path):
    found = measured(tmp_path, "chunks")
    assert found["default"] == 2**24
    assert found["2^24"]["seconds"] > 0
    assert found["2^29"]["seconds"] > 0


@pytest.mark.slow
def test_vllm_is_measured_or_the_reason_is_told(tmp_path):
    found = measured(tmp_path, "vllm")
    if find_spec("vllm") is None:
        assert found["not run"].startswith("vLLM is not installed here")
        return
    for name in ("whole weights", "adapter alone"):
        assert len(found[name]["gap_nats"]["max_of_each_push"]) == 20
        assert max(found[name]["gap_nats"]["max_of_each_push"]) < 1e-3
        assert found[name]["tokens_per_second"] > 0
    assert found["native"]["tokens_per_second"] > 0


@pytest.mark.slow
def test_steps_of_the_papers_configuration_stand_beside_the_plan(tmp_path):
    found = measured(tmp_path, "step")
    assert set(found["parts"]) == {"generation", "scores", "policy_update", "reward_model_update", "push", "step"}
    for part in ("generation", "scores", "policy_update", "reward_model_update", "step"):
        assert found["parts"][part]["measured_s"] > 0
    assert found["memory_gb"]["plan"] > 0


@pytest.mark.slow
def test_whole_runs_on_one_device_are_equal(tmp_path):
    found = measured(tmp_path, "run")
    assert found["beside a CPU"]["equal completions by step"] == [1.0] * 3
    assert found["resumed"] == {"again, steps 1 to 6": [1.0] * 6, "resumed, steps 4 to 6": [1.0] * 3}
    assert [len(found["whole"][arm]["gold"]) for arm in ("rule", "cooper")] == [2, 2]


@pytest.mark.slow
def test_parts_that_fail_are_named_first(tmp_path):
    words = ["--device", "cpu", "--shape", "tiny", "--prompts", "0", "--output", tmp_path / "gpu.json"]
    script = [sys.executable, "-m", "benchmarks.gpu.gpu_check", *words, "--pytest=--co no/such/test"]
    done = subprocess.run(script, capture_output=True, text=True, cwd=ROOT)
    states = [line.split(maxsplit=1) for line in done.stdout.splitlines() if line.split(" ")[0] in PARTS]
    assert states[0][1].startswith("FAILED")
    assert done.returncode == sum(state != "done" for _, state in states) > 0
    assert [state == "done" for _, state in states] == sorted(state == "done" for _, state in states)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU; run make gpu-check")
@pytest.mark.slow
def test_without_a_gpu_it_says_that_nothing_was_run(tmp_path):
    script = [sys.executable, "-m", "benchmarks.gpu.gpu_check", "--output", tmp_path / "gpu.json"]
    done = subprocess.run(script, check=True, capture_output=True, text=True, cwd=ROOT)
    assert "was not run" in done.stdout
    assert not (tmp_path / "gpu.json").exists()
