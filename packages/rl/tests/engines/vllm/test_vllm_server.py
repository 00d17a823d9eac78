"""A server that is running already: what it draws, what is told of it, and what happens when it is killed."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
import torch

pytest.importorskip("vllm", reason="vLLM is not installed; make test-vllm")

from test_vllm_push import disturb
from transformers import Qwen2Config, Qwen2ForCausalLM
from vllm_server import VllmServer

from cooper_audit.run.run_record import read_metrics
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl import CooperTrainer, InputError, build_config
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.scale.ray import ClusterEngine
from cooper_rl.engines.scale.vllm import VllmConfig
from cooper_rl.engines.scale.vllm.sampler import build_sampler
from cooper_rl.records import Column

PROMPTS = [[5, 6, 7], list(range(10, 40)), [50]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, tokenizer = tmp_path_factory.mktemp("served"), build_tokenizer()
    shape = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": None}
    config = Qwen2Config(**shape, **ids, num_key_value_heads=1, vocab_size=len(tokenizer), max_position_embeddings=256)
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    started = VllmServer(folder, tmp_path_factory.mktemp("log") / "serve.log")
    started.wait()
    yield started
    started.kill()


@pytest.fixture
def learner(folder):
    return TorchPolicyLearner.from_config(LearnerConfig(model=str(folder), device="cpu"), 10)


@pytest.fixture
def sampler(server, folder):
    return build_sampler(LearnerConfig(model=str(folder)), VllmConfig(url=server.url, timeout_s=400).at_most(8), "gloo")


def gap(samples, learner, temperature=1.0) -> float:
    n = len(samples) // len(PROMPTS)
    rows = [[*PROMPTS[i // n], *row.tolist()] for i, row in enumerate(samples.token_ids)]
    expected = learner.logprobs(Column.of(rows), samples.token_ids.lengths, temperature)
    return float(np.abs(samples.logprobs - expected).max())


def test_it_draws_with_pushed_weights_at_the_sampling_temperature(sampler, learner):
    drawn = []
    for push in range(3):
        disturb(learner.model, 0.1)
        sampler.sync_weights(learner)
        samples = sampler.sample(PROMPTS, 6, SamplingParams(max_tokens=20, temperature=0.7), seed=push)
        assert gap(samples, learner, 0.7) < 1e-4
        drawn.append(samples.texts)
        again = sampler.submit(PROMPTS, 6, SamplingParams(max_tokens=20, temperature=0.7), push).result()
        np.testing.assert_array_equal(again.token_ids.values, samples.token_ids.values)
    assert len(set(map(tuple, drawn))) == 3


def test_stop_strings_and_lengths_are_those_of_the_native_sampler(sampler, learner):
    disturb(learner.model, 0.1)
    sampler.sync_weights(learner)
    samples = sampler.sample(PROMPTS, 16, SamplingParams(max_tokens=30, stop=("e", "7")), seed=0)
    assert not any("e" in text or "7" in text for text in samples.texts)
    assert samples.stopped.any()
    assert all(
        stopped or length == 30 for stopped, length in zip(samples.stopped, samples.token_ids.lengths, strict=True)
    )


def test_a_server_that_was_killed_gets_the_weights_again_and_draws_the_same(server, sampler, learner):
    disturb(learner.model, 0.1)
    sampler.sync_weights(learner)
    params = SamplingParams(max_tokens=20)
    before = sampler.sample(PROMPTS, 6, params, seed=4)
    server.kill()
    server.start()  # with the weights of its folder
    after = sampler.sample(PROMPTS, 6, params, seed=4)
    assert sampler.take_metrics()["engine/reconnections"] == 1
    np.testing.assert_array_equal(after.token_ids.values, before.token_ids.values)
    assert gap(after, learner) < 1e-4


def test_a_run_at_lag_one_draws_on_the_server_while_it_learns(server, settings, folder):
    loss = {"kind": "ppo_clip", "truncated_importance_sampling": 2.0}
    settings["policy"] |= {"model": str(folder)}
    run = {
        **settings,
        "kind": "rule",
        "engine": {"kind": "vllm", "url": server.url, "timeout_s": 400},
        "algorithm": {"min_spread": 0.0, "loss": loss, "recompute_old_logprobs": True},
        "rollout": {**settings["rollout"], "lag": 1},
    }
    with CooperTrainer.from_config(build_config(run)) as trainer:
        trainer.fit()
    rows = read_metrics(trainer.directory)[1:]
    assert [row["rollout/lag"] for row in rows] == [0, 1, 1, 1]
    assert rows[0]["policy/mismatch_kl"] < 1e-7


def test_a_cluster_hands_its_weights_to_the_server(server, folder, learner, tmp_path):
    disturb(learner.model, 0.1)
    learner.save(tmp_path / "other")
    samplers = {"kind": "vllm", "url": server.url, "timeout_s": 400}
    engine = ClusterEngine.model_validate({"policy_ranks": 2, "cpus_per_rank": 0.1, "samplers": samplers})
    try:
        engine.open(tmp_path)
        sharded = engine.policy(LearnerConfig(model=str(tmp_path / "other"), device="cpu"), 10)
        sampler = engine.sampler(LearnerConfig(model=str(folder)), 0)
        sampler.sync_weights(sharded)
        assert gap(sampler.sample(PROMPTS, 6, SamplingParams(max_tokens=20), seed=1), learner) < 1e-4
    finally:
        engine.close()


@pytest.fixture
def answering():
    """A server with these answers and no others."""
    servers = []

    def start(answers: dict) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                found = answers.get(self.path.partition("?")[0])
                self.send_response(200 if found is not None else 404)
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            def log_message(self, *_): ...

        server = HTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()


MODELS = {"data": [{"max_model_len": 256, "root": "model"}]}


def info(mode: str = "processed_logprobs", transfer: str | None = "gloo") -> dict:
    config = {"model_config": {"logprobs_mode": mode}, "weight_transfer_config": transfer and {"backend": transfer}}
    return {"vllm_config": config}


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({}, "no vLLM server answers at"),
        ({"/v1/models": MODELS, "/version": {"version": "0.20.1"}}, "is vLLM 0.20.1; its weight transfer needs 0.32"),
        ({"/v1/models": MODELS, "/version": {"version": "0.32.0"}}, "start it with VLLM_SERVER_DEV_MODE=1"),
        ({"/server_info": info(mode="raw_logprobs")}, "start it with --logprobs-mode processed_logprobs"),
        ({"/server_info": info(transfer=None)}, "takes no weights, this run sends them over gloo; start it with"),
        ({"/server_info": info(transfer="nccl")}, "takes weights over nccl, this run sends them over gloo"),
    ],
)
def test_what_is_wrong_with_a_server_is_told_with_the_remedy(answering, folder, answers, told):
    if "/server_info" in answers:
        answers = {"/v1/models": MODELS, "/version": {"version": "0.32.0"}} | answers
    with pytest.raises(InputError, match=told):
        build_sampler(LearnerConfig(model=str(folder)), VllmConfig(url=answering(answers)), "gloo")


def test_an_address_without_a_server_is_told(folder):
    with pytest.raises(InputError, match=r"no vLLM server answers at http://127\.0\.0\.1:9"):
        build_sampler(LearnerConfig(model=str(folder)), VllmConfig(url="http://127.0.0.1:9"), "gloo")
