"""What the in-process engine does on a GPU: tokens a second, memory, and how far sampler and learner differ.

    make gpu-check                                   # random weights of the shape of Qwen2.5-0.5B
    python benchmarks/gpu_check.py --model FOLDER    # a model of yours

Measures sampling, log-probabilities, the policy's update and reward-model scoring, in float32 and with bfloat16
autocast, and a step of TRL on the same work where TRL is installed. Writes `benchmarks/results/gpu.json` after every
part. Without a CUDA device it says so and measures nothing; `--device cpu --shape tiny` tries the script itself.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, Qwen2ForSequenceClassification

from cooper_rl.engines.base import PolicyBatch
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.local.learner import TorchPolicyLearner, TorchRewardModelLearner
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.losses.policy import PolicyObjective, PPOClip
from cooper_rl.rollouts import Column

RESULTS = Path(__file__).parent / "results" / "gpu.json"
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
        "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2,
    },
}  # fmt: skip
"""Shapes from the models' published config.json."""


def random_models(shape: dict[str, int], folder: Path) -> tuple[Path, Path]:
    """A policy and a reward model of this shape with random weights and a tokenizer of one word a token."""
    words = Tokenizer(models.WordLevel({f"<{i}>": i for i in range(shape["vocab_size"])}, unk_token="<1>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<0>", pad_token="<0>", unk_token="<1>")
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


def check(options: argparse.Namespace, policy: Path, reward_model: Path, autocast: str) -> dict[str, Any]:
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
    """A step of Cooper and of TRL on the same work, each in a process of its own (`benchmarks/step.py`)."""
    work = ["--problems", str(options.prompts), "--n", str(options.n), "--new-tokens", str(options.new_tokens)]
    found = {}
    for engine in ("cooper", "trl"):
        script = [sys.executable, "step.py", engine, *work, "--model", str(policy), "--device", options.device]
        done = subprocess.run(script, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
        found[engine] = json.loads(lines[-1][7:]) if lines else {"failed": done.stderr[-1000:]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--shape", choices=SHAPES, default="qwen2.5-0.5b")
    parser.add_argument("--model", help="a policy's folder, in place of random weights")
    parser.add_argument("--reward-model", help="a reward model's folder, in place of random weights")
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--new-tokens", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("gpu-check was not run: this machine has no CUDA device.")
        return
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    found: dict[str, Any] = {"device": name, "torch": torch.__version__, "settings": vars(options) | {"output": ""}}
    with tempfile.TemporaryDirectory() as scratch:
        policy, reward_model = random_models(SHAPES[options.shape], Path(scratch))
        policy, reward_model = Path(options.model or policy), Path(options.reward_model or reward_model)
        for autocast in ("off", "bfloat16"):
            found[autocast] = check(options, policy, reward_model, autocast)
            _write(options.output, found)
        if options.model:  # random weights write texts that no step can be measured on
            found["step"] = against_trl(options, policy)
            _write(options.output, found)
    print(json.dumps(found, indent=2))
    print(f"results: {options.output}")


def _write(path: Path, found: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
