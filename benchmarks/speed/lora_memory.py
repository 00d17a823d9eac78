"""Peak memory of a policy's step with and without LoRA: sampling, reference log-probabilities, update.

    python benchmarks/speed/lora_memory.py FOLDER [--completions 8] [--tokens 128]

Each setting runs in a process of its own; the peak is the process's largest resident set, libraries included.
"""

import argparse
import json
import resource
import subprocess
import sys

import numpy as np

SETTINGS = {
    "full": {},
    "full, checkpointing": {"gradient_checkpointing": True},
    "LoRA, rank 32": {"lora": {"rank": 32, "alpha": 64}},
    "LoRA, rank 32, checkpointing": {"lora": {"rank": 32, "alpha": 64}, "gradient_checkpointing": True},
}


def step(folder: str, settings: dict, completions: int, tokens: int) -> dict[str, float]:
    """Two steps, the first of which makes the optimizer's states."""
    from cooper_rl.engines.base import PolicyBatch
    from cooper_rl.engines.config import LearnerConfig, SamplingParams
    from cooper_rl.engines.local import LocalEngine
    from cooper_rl.engines.losses.policy import KLConfig, PolicyObjective, PPOClip
    from cooper_rl.records import Column

    config = LearnerConfig.model_validate({"model": folder, "device": "cpu", "tokens_per_microbatch": 1024, **settings})
    engine = LocalEngine()
    policy = engine.policy(config, 10)
    reference = policy if config.lora else engine.policy(config, 0, trainable=False)
    sampler = engine.sampler(config, 0)
    prompt = list(range(100, 132))
    for _ in range(2):
        sampler.sync_weights(policy)
        drawn = sampler.sample([prompt], completions, SamplingParams(max_tokens=tokens, min_tokens=tokens), seed=0)
        rows, lengths = Column.of([[*prompt, *row.tolist()] for row in drawn.token_ids]), drawn.token_ids.lengths
        count = int(lengths.sum())
        batch = PolicyBatch(
            rows, lengths, np.repeat(np.linspace(-1, 1, completions), lengths), np.full(count, 1 / count),
            drawn.logprobs, drawn.logprobs, reference.logprobs(rows, lengths, adapter=False),
        )  # fmt: skip
        policy.forward_backward(batch, PolicyObjective(loss=PPOClip(), kl=KLConfig()))
        policy.optim_step()
    return {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--completions", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--setting")
    given = parser.parse_args()
    if given.setting is not None:
        print(json.dumps(step(given.folder, SETTINGS[given.setting], given.completions, given.tokens)))
        return
    for name in SETTINGS:
        command = [sys.executable, *sys.argv, "--setting", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        print(f"{name:30} peak {found['peak_mib']:6.0f} MiB")


if __name__ == "__main__":
    main()
