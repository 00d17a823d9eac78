"""An evaluation through vLLM: the folder's own weights, which no learner has sent."""

import pytest

from cooper_base.errors import InputError
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl.cli.evaluate import engine_from
from cooper_rl.engines.config import SamplingParams
from cooper_rl.policy.folder import FolderEvaluator
from cooper_verify.problems.config import ProblemsConfig


def test_only_engines_that_read_a_folder_are_taken():
    assert engine_from("local").kind == "local"
    assert engine_from("vllm").gpu_memory_utilization == 0.9
    assert engine_from("{kind: vllm, gpu_memory_utilization: 0.5, tensor_parallel: 2}").gpu_memory_utilization == 0.5
    with pytest.raises(InputError, match="kind cluster evaluates only inside its own runs"):
        engine_from("cluster")
    with pytest.raises(InputError, match="nobody knows which weights a server holds"):
        engine_from("{kind: vllm, url: 'http://localhost:8000'}").sampler_of_folder("models/policy")


def test_the_greedy_completions_are_those_of_the_native_sampler():
    pytest.importorskip("vllm", reason="vLLM is not installed")
    data = ProblemsConfig.model_validate(
        {"source": "arithmetic", "split": "test", "limit": 6, "prompt": {"template": "{question}\n"}}
    )
    params, found = SamplingParams(temperature=0, max_tokens=12), []
    for engine in ("local", "{kind: vllm, kv_cache_gib: 0.1}"):
        with FolderEvaluator(str(ASSETS / "policy"), engine_from(engine), threads=1) as evaluator:
            records = evaluator.evaluate(data, params, k=1)["rule"].records
        found.append([(one.question, one.completion, one.tokens, one.stop_reason) for one in records])
    assert found[0] == found[1]
