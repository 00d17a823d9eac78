"""What a GPU shows in six parts, each in under ten minutes on one H200; those that failed are named first.

    make gpu-check                                   # all parts, each in a process of its own
    make gpu-check PART=vllm                         # one of them
    make gpu-check PART=engine GPU='--model FOLDER'  # a model of yours

engine        the in-process engine in float32 and bfloat16: tokens/s, memory, how far sampler and learner differ
conformance   the engine's conformance suite and the kernels' own tests on the GPU, against plain float64
chunks        log-probabilities of a vocabulary of 152 K at several sizes of `largest_chunk`
vllm          pushes, the gap after 20 of them, an adapter alone, sleep and wake, tokens/s against the native sampler
step          steps of the paper's configuration with random weights of its shapes, their memory beside `cooper plan`
run           whole runs of the embedded world: beside a CPU's, to their end, continued, and with a 4-bit policy

Models have random weights of published shapes. Results are added to `benchmarks/results/gpu.json`. Without a CUDA
device it says so and measures nothing; `--device cpu --shape tiny` tries the script itself.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, Qwen2ForSequenceClassification

from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.logprobs import token_logprobs
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.numerics import largest_chunk
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.losses.policy import PolicyObjective, PPOClip
from cooper_rl.records import Column

RESULTS = Path(__file__).parents[1] / "results" / "gpu.json"
SHAPES: dict[str, dict[str, int]] = {
    "qwen2.5-0.5b": {
        "vocab_size": 151_936, "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
        "num_attention_heads": 14, "num_key_value_heads": 2,
    },
    "qwen2.5-1.5b": {
        "vocab_size": 151_936, "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
        "num_attention_heads": 12, "num_key_value_heads": 2,
    },
    "tiny": {
        "vocab_size": 512, "hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2,
    },
}  # fmt: skip
"""Shapes from the models' published config.json."""


def random_models(shape: dict[str, Any], folder: Path) -> tuple[Path, Path]:
    """A policy and a reward model of this shape with random weights and a tokenizer of one byte a token."""
    names = ["<0>", "<1>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    names += [f"<{i}>" for i in range(len(names), shape["vocab_size"])]
    letters = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, []))
    letters.pre_tokenizer = pre_tokenizers.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    letters.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=letters, eos_token="<0>", pad_token="<0>", unk_token="<1>")
    config = Qwen2Config(**shape, max_position_embeddings=4096, tie_word_embeddings=True, eos_token_id=0)
    config.bos_token_id, config.pad_token_id, config.num_labels = None, 0, 1
    torch.manual_seed(0)
    for name, kind in (("policy", Qwen2ForCausalLM), ("reward_model", Qwen2ForSequenceClassification)):
        kind(config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return folder / "policy", folder / "reward_model"


def timed(device: torch.device, work: Callable[[], Any], repeats: int) -> dict[str, Any]:
    """Median seconds of `repeats` runs after one that does not count, and the peak of the device's memory in GiB.

    The peak is None on a CPU.
    """
    work()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds = []
    for _ in range(repeats):
        _wait(device)
        start = time.perf_counter()
        work()
        _wait(device)
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else None
    return {"seconds": float(np.median(seconds)), "least": min(seconds), "most": max(seconds), "peak_gib": peak}


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def engine(options: argparse.Namespace, policy: Path, reward_model: Path) -> dict[str, Any]:
    """The in-process engine in both precisions, and a step of TRL on the same work where a model is given."""
    found = {autocast: in_precision(options, policy, reward_model, autocast) for autocast in ("off", "bfloat16")}
    if options.model:  # random weights write texts that no step can be measured on
        found["step"] = against_trl(options, policy)
    return found


def in_precision(options: argparse.Namespace, policy: Path, reward_model: Path, autocast: str) -> dict[str, Any]:
    """Every part of a step with one precision of the matrix products."""
    device = torch.device(options.device)
    settings = LearnerConfig.model_validate(
        {"model": str(policy), "device": options.device, "autocast": autocast, "learning_rate": 1e-6}
    )
    learner = TorchPolicyLearner.from_config(settings, 100)
    sampler = NativeSampler(load_tokenizer(str(policy)), autocast=settings.autocast)
    sampler.sync_weights(learner)
    vocabulary = learner.model.config.get_text_config().vocab_size
    random = np.random.default_rng(0)
    prompts = [random.integers(2, vocabulary, options.prompt_tokens) for _ in range(options.prompts)]
    params = SamplingParams(max_tokens=options.new_tokens, min_tokens=options.new_tokens)
    drawn = sampler.sample([p.tolist() for p in prompts], options.n, params, seed=0)
    tokens = len(drawn.logprobs)

    completions = [drawn.token_ids.take([row]).values for row in range(len(drawn))]
    rows = Column.of([[*prompts[row // options.n], *ids] for row, ids in enumerate(completions)])
    lengths = drawn.token_ids.lengths
    own = learner.logprobs(rows, lengths)
    batch = PolicyBatch(
        token_ids=rows,
        lengths=lengths,
        advantages=np.repeat(random.standard_normal(len(lengths)), lengths),
        weights=np.full(tokens, 1 / tokens),
        old_logprobs=own,
        sampler_logprobs=drawn.logprobs,
    )
    objective = PolicyObjective(loss=PPOClip(), kl=None)

    def update() -> None:
        learner.forward_backward(batch, objective)
        learner.optim_step()

    found: dict[str, Any] = {"tokens": tokens}
    texts = [p.tolist() for p in prompts]
    found["sample"] = timed(device, lambda: sampler.sample(texts, options.n, params, seed=1), options.repeats)
    found["logprobs"] = timed(device, lambda: learner.logprobs(rows, lengths), options.repeats)
    gap = np.abs(own - drawn.logprobs)
    found["sampler_against_learner_nats"] = {"mean": float(gap.mean()), "max": float(gap.max())}
    found["update_policy"] = timed(device, update, options.repeats)
    del learner, sampler

    scorer = TorchRewardModelLearner.from_config(settings.model_copy(update={"model": str(reward_model)}), 100)
    token_ids = [rows.take([row]).values.tolist() for row in range(len(lengths))]
    found["score"] = timed(device, lambda: scorer.score(token_ids), options.repeats)
    for part in ("sample", "logprobs", "update_policy", "score"):
        found[part]["tokens_per_second"] = tokens / found[part]["seconds"]
    return found


def against_trl(options: argparse.Namespace, policy: Path) -> dict[str, Any]:
    """A step of Cooper and of TRL on the same work, each in a process of its own (`benchmarks/speed/step.py`)."""
    work = ["--problems", str(options.prompts), "--n", str(options.n), "--new-tokens", str(options.new_tokens)]
    folder, found = Path(__file__).parents[1] / "speed", {}
    for engine in ("cooper", "trl"):
        script = [sys.executable, "step.py", engine, *work, "--model", str(policy), "--device", options.device]
        done = subprocess.run(script, cwd=folder, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        found[engine] = json.loads(lines[-1][7:]) if lines else {"failed": done.stderr[-1000:]}
    return found


def conformance(options: argparse.Namespace, *_: Path) -> dict[str, Any]:
    """pytest's own account. TF32 is off for it: the suite compares with float64."""
    environment = {**os.environ, "COOPER_TEST_DEVICE": options.device, "NVIDIA_TF32_OVERRIDE": "0"}
    where = ["conformance", "learners/test_attention_kernels.py", "learners/test_numerics.py"]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-rfEs", "-p", "no:cacheprovider", "-k", "not cluster"]
    files = [f"packages/rl/tests/engines/{name}" for name in (where[:1] if options.shape == "tiny" else where)]
    done = subprocess.run(
        [*command, *files, *shlex.split(options.pytest)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stdout[-8000:] + done.stderr[-2000:])
    return {"tests": done.stdout[-2000:].splitlines()}


CHUNKS = (2**24, 2**25, 2**26, 2**27, 2**28, 2**29)


def chunks(options: argparse.Namespace, *_: Path) -> dict[str, Any]:
    """Seconds and memory of log-probabilities with their backward pass, by logits at a time; the head in bfloat16."""
    shape, device = SHAPES[options.shape], torch.device(options.device)
    tokens = options.prompts * options.new_tokens
    torch.manual_seed(0)
    head = nn.Linear(shape["hidden_size"], shape["vocab_size"], bias=False, device=device)
    hidden = torch.randn(tokens, shape["hidden_size"], device=device, requires_grad=True)
    targets = torch.randint(shape["vocab_size"], (tokens,), device=device)

    def passes(compute: Callable[..., Tensor], *settings: Any) -> None:
        head.zero_grad()
        hidden.grad = None
        with torch.autocast(device.type, dtype=torch.bfloat16):
            compute(hidden, head, targets, 1.0, *settings).mean().backward()

    found: dict[str, Any] = {"tokens": tokens, "default": largest_chunk(device)}
    for size in CHUNKS:
        found[f"2^{size.bit_length() - 1}"] = timed(device, partial(passes, token_logprobs, size), options.repeats)
    return found


def vllm(options: argparse.Namespace, policy: Path, _: Path) -> dict[str, Any]:
    """See `benchmarks/gpu/gpu_check_vllm.py`, which imports vLLM."""
    if find_spec("vllm") is None:
        return {"not run": "vLLM is not installed here; install ./packages/rl[vllm], or use that of make test-vllm"}
    from benchmarks.gpu.gpu_check_vllm import check_vllm

    return check_vllm(options, policy)


def step(options: argparse.Namespace, *_: Path) -> dict[str, Any]:
    """See `benchmarks/gpu/gpu_check_step.py`."""
    from benchmarks.gpu.gpu_check_step import check_step

    return check_step(options)


def run(options: argparse.Namespace, *_: Path) -> dict[str, Any]:
    """See `benchmarks/gpu/gpu_check_run.py`."""
    from benchmarks.gpu.gpu_check_run import check_run

    return check_run(options)


PARTS = {part.__name__: part for part in (engine, conformance, chunks, vllm, step, run)}
"""In the order in which a fault of one explains those of the next."""
LIMIT_S = 590


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=PARTS, help="all, one after the other, where it is left out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", choices=SHAPES, default="qwen2.5-0.5b")
    parser.add_argument("--model", help="a policy's folder, in place of random weights")
    parser.add_argument("--reward-model", help="a reward model's folder, in place of random weights")
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--new-tokens", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pytest", default="", help="more arguments for pytest, in the part conformance")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("gpu-check was not run: this machine has no CUDA device.")
        return
    if options.part is None:
        sys.exit(run_all(options.output))
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    with tempfile.TemporaryDirectory() as scratch:
        policy, reward_model = random_models(SHAPES[options.shape], Path(scratch))
        policy, reward_model = Path(options.model or policy), Path(options.reward_model or reward_model)
        start = time.perf_counter()
        found = PARTS[options.part](options, policy, reward_model)
    settings = {key: str(value) for key, value in vars(options).items() if key not in ("output", "part")}
    about = {"device": name, "torch": torch.__version__, "settings": settings, "took_s": time.perf_counter() - start}
    _write(options.output, options.part, about | found)
    print(json.dumps(about | found, indent=2))
    print(f"results: {options.output}")


def run_all(output: Path) -> int:
    """Every part in a process of its own, so that one that fails takes no other along. Returns how many failed."""
    states = {}
    for part in PARTS:
        print(f"--- {part}", flush=True)
        try:
            script = [sys.executable, "-m", "benchmarks.gpu.gpu_check", part, *sys.argv[1:]]
            done = subprocess.run(script, timeout=LIMIT_S)
            states[part] = f"FAILED with status {done.returncode}" if done.returncode else "done"
        except subprocess.TimeoutExpired:
            states[part] = f"FAILED: more than {LIMIT_S} s"
    for part, state in sorted(states.items(), key=lambda one: one[1] == "done"):
        print(f"{part:12} {state}")
    print(f"results: {output}")
    return sum(state != "done" for state in states.values())


def _write(path: Path, part: str, found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(before | {part: found}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
