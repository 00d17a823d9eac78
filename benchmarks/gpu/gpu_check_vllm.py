"""The part `vllm` of gpu_check.py: weights into an engine on the learner's device, sleep, and speed."""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cooper_rl.engines.config import LearnerConfig, LoraConfig, SamplingParams
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.scale.vllm import VllmConfig
from cooper_rl.engines.scale.vllm.engines import OfflineEngine
from cooper_rl.engines.scale.vllm.sampler import VllmSampler, build_sampler
from cooper_rl.records import Column, Samples

PUSHES = 20
ON_A_CPU = {"kv_cache_gib": 0.2}


def check_vllm(options: argparse.Namespace, policy: Path) -> dict[str, Any]:
    """Whole weights and an adapter alone, each with an engine of its own, and the native sampler on the same work."""
    random, gpu = np.random.default_rng(0), options.device == "cuda"
    prompts = [random.integers(2, 500, options.prompt_tokens).tolist() for _ in range(options.prompts)]
    params = SamplingParams(max_tokens=options.new_tokens, min_tokens=0)
    context = options.prompt_tokens + options.new_tokens + 8
    how = {"gpu_memory_utilization": 0.3, "max_model_len": context, "sleep": gpu}
    found: dict[str, Any] = {}
    for name, lora in (("whole weights", None), ("adapter alone", LoraConfig(rank=16))):
        config = LearnerConfig(model=str(policy), device=options.device, lora=lora)
        learner = TorchPolicyLearner.from_config(config, 100)
        engine = VllmConfig.model_validate(how if gpu else ON_A_CPU)

        def start(model: str, engine: VllmConfig, backend: str, rank: int, policy=config) -> OfflineEngine:
            return OfflineEngine(model, engine, backend, engine.adapter_rank(policy))  # on a CPU too

        sampler = build_sampler(config, engine, "ipc" if gpu else "gloo", start)
        found[name] = _pushes(sampler, learner, prompts, params)
        if gpu:
            found[name] |= _sleep(sampler, learner, prompts, params)
        del sampler
        if lora is None:
            native = NativeSampler(load_tokenizer(str(policy)), autocast=config.autocast)
            native.sync_weights(learner)
            native.sample(prompts[:1], 1, params, seed=0)
            found["native"] = _speed(native, prompts, options.n, params)
    return found


def _pushes(
    sampler: VllmSampler, learner: TorchPolicyLearner, prompts: list[list[int]], params: SamplingParams
) -> dict[str, Any]:
    """The learner is disturbed before each push; the gap is between its log-probabilities and the sampler's."""
    gaps, seconds = [], []
    generator = torch.Generator(learner.device).manual_seed(0)
    trained = [p for p in learner.model.parameters() if p.requires_grad]
    for push in range(PUSHES):
        with torch.no_grad():
            for parameter in trained:
                noise = torch.randn(parameter.shape, generator=generator, device=learner.device)
                parameter.add_(noise, alpha=0.002)
        sampler.sync_weights(learner)
        seconds.append(sampler.take_metrics()["time/push_weights"])
        drawn = sampler.sample(prompts[:4], 2, params, seed=push)
        own = learner.logprobs(_rows(drawn, prompts[:4]), drawn.token_ids.lengths)
        gaps.append(np.abs(own - drawn.logprobs))
    return {
        "push_s": {"first": seconds[0], "median": float(np.median(seconds[1:]))},
        "gap_nats": {"mean": float(np.concatenate(gaps).mean()), "max_of_each_push": [float(g.max()) for g in gaps]},
        **_speed(sampler, prompts, 8, params),
    }


def _sleep(
    sampler: VllmSampler, learner: TorchPolicyLearner, prompts: list[list[int]], params: SamplingParams
) -> dict[str, Any]:
    """What the device gets back, how long going to sleep and waking take, and whether the engine draws as before."""
    before = sampler.sample(prompts, 1, params, seed=1)
    awake, start = torch.cuda.mem_get_info()[0], time.perf_counter()
    sampler.rest()
    slept, freed = time.perf_counter() - start, torch.cuda.mem_get_info()[0] - awake
    start = time.perf_counter()
    sampler.sync_weights(learner)
    woken = time.perf_counter() - start
    again = sampler.sample(prompts, 1, params, seed=1)
    same = float(np.mean([np.array_equal(a, b) for a, b in zip(before.token_ids, again.token_ids, strict=True)]))
    return {"sleep": {"freed_gib": freed / 2**30, "to_sleep_s": slept, "wake_and_push_s": woken, "same_rows": same}}


def _speed(sampler: Any, prompts: list[list[int]], n: int, params: SamplingParams) -> dict[str, Any]:
    start = time.perf_counter()
    drawn = sampler.sample(prompts, n, params, seed=99)
    return {"tokens_per_second": len(drawn.logprobs) / (time.perf_counter() - start)}


def _rows(drawn: Samples, prompts: list[list[int]]) -> Column:
    n = len(drawn) // len(prompts)
    return Column.of([[*prompts[i // n], *row.tolist()] for i, row in enumerate(drawn.token_ids)])
