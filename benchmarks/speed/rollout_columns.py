"""Measures what it costs to carry a step's samples from the sampler to the update, and from one process to another.

    python benchmarks/speed/rollout_columns.py --problems 64 --n 8 --tokens 1024

Tokens and log-probabilities are random numbers in place of a sampler's. The collection, the update and the
serialisation are the real code. The policy is one Llama layer of width 16, and `update` leaves out the time in its
forward and backward pass. Memory is the process's peak above what it held before the first token.
"""

import argparse
import json
import multiprocessing
import resource
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from cooper_base.data.problem import Problem
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.local import learner as policy_module
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.sampler import Drafts
from cooper_rl.engines.stop_rule import StopRule
from cooper_rl.policy.config import AlgorithmConfig
from cooper_rl.policy.rollout_bytes import from_bytes, to_bytes
from cooper_rl.policy.update import update_policy
from cooper_rl.records import Ragged, Rollouts

MODEL_SECONDS = [0.0]


def as_model(function: Callable) -> Callable:
    """Count the time of a function as time of the model."""

    @wraps(function)
    def timed(*args, **kwargs):
        start = time.perf_counter()
        result = function(*args, **kwargs)
        MODEL_SECONDS[0] += time.perf_counter() - start
        return result

    return timed


def no_hidden_states(model, packed, kernel) -> torch.Tensor:
    """Replaces the layer's forward pass, whose attention would take most of the memory."""
    return torch.zeros(packed.token_ids.shape[1], model.config.hidden_size, requires_grad=True)


def resident_mib() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in status if line.startswith("VmRSS"))) / 1024


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tiny_learner(vocabulary: int, tokens: int) -> TorchPolicyLearner:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=2 * tokens,
    )
    return TorchPolicyLearner(LlamaForCausalLM(config), LearnerConfig(model="", device="cpu"), 10)


def collected(options, tokenizer, tokens: np.ndarray, logprobs: np.ndarray) -> Rollouts:
    """Rollouts with the given numbers [tokens, completions], collected token by token as the sampler does."""
    params = SamplingParams(max_tokens=options.tokens)
    rule = StopRule(tokenizer, params, [tokenizer.eos_token_id])
    drafts = Drafts([options.tokens] * options.problems, options.n, range(options.problems))
    rows = np.arange(len(drafts))
    for token_ids, values in zip(tokens, logprobs, strict=True):
        drafts.extend(rows, token_ids, values, rule)
    problems = [Problem(str(p), f"{p} + {p}?", str(2 * p)) for p in range(options.problems)]
    prompts = [[5 + p % 20] * 60 for p in range(options.problems)]
    return Rollouts.of(problems, prompts, drafts.samples(rule, prompts), options.n, version=0)


def serialisation(rollouts: Rollouts, repeats: int = 20) -> dict[str, float]:
    """Time packing, unpacking and a round trip to another process, beside plain copies of as many bytes."""
    data = to_bytes(rollouts)
    plain = np.frombuffer(data, np.uint8)
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_echo_sizes, args=(theirs, repeats))
    process.start()
    seconds = {
        "copy": _fastest(plain.copy, repeats),
        "to_bytes": _fastest(lambda: to_bytes(rollouts), repeats),
        "from_bytes": _fastest(lambda: from_bytes(data), repeats),
        "to_another_process": _fastest(lambda: _send(ours, rollouts), repeats),
    }
    process.join()
    speeds = {f"{name}_gb_per_s": len(data) / value / 1e9 for name, value in seconds.items()}
    return {"bytes": len(data), **{f"{name}_ms": 1e3 * value for name, value in seconds.items()}, **speeds}


def _send(connection, rollouts: Rollouts) -> None:
    connection.send_bytes(to_bytes(rollouts))
    assert connection.recv() == len(rollouts.logprobs)


def _echo_sizes(connection, repeats: int) -> None:
    for _ in range(repeats):
        connection.send(len(from_bytes(connection.recv_bytes()).logprobs))


def _fastest(function: Callable[[], object], repeats: int) -> float:
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def main(options) -> None:
    torch.set_num_threads(1)
    random, completions = np.random.default_rng(0), options.problems * options.n
    tokenizer = build_tokenizer()
    tokens = random.integers(5, len(tokenizer), (options.tokens, completions))
    logprobs = -random.random((options.tokens, completions), dtype=np.float32)
    learner = tiny_learner(len(tokenizer), options.tokens)
    if options.without_model:
        policy_module.packed_hidden_states = no_hidden_states
    for name in ("packed_hidden_states", "token_logprobs"):
        setattr(policy_module, name, as_model(getattr(policy_module, name)))
    learner._backward = as_model(learner._backward)
    learner.optim_step = as_model(learner.optim_step)

    before, start = resident_mib(), time.perf_counter()
    rollouts = collected(options, tokenizer, tokens, logprobs)
    collect_seconds, collect_peak = time.perf_counter() - start, peak_mib() - before
    rewards = Ragged(torch.from_numpy(random.random(completions)), (options.n,) * options.problems)
    algorithm = AlgorithmConfig(kl=None)
    start = time.perf_counter()
    update_policy(learner, None, rollouts, rewards, algorithm, SamplingParams(max_tokens=options.tokens))
    update_seconds = time.perf_counter() - start
    found = {
        "collect_s": collect_seconds,
        "update_s": update_seconds - MODEL_SECONDS[0],
        "model_s": MODEL_SECONDS[0],
        "collect_peak_mib": collect_peak,
        "peak_mib": peak_mib() - before,
        **serialisation(rollouts),
    }
    print(json.dumps({name: round(value, 3) for name, value in found.items()}, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=64)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--without-model", action="store_true", help="leave out the layer, whose memory hides the rest")
    main(parser.parse_args())
