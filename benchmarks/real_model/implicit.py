"""An implicit reward model from a unit's start policy and its labelled completions, for the arms of PRIME.

Its rows, passes, batches and learning rate are those of the unit's reward model with a head (`decides.REWARD_MODEL`).
Its loss is PRIME's, the cross-entropy of the log-ratio to the start policy. A process of its own, so that its memory is
free when a run begins:

    python -m benchmarks.real_model.implicit POLICY LABELLED OUT SEED
"""

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.real_model.decides import REWARD_MODEL, fresh
from benchmarks.real_model.headline import IMPLICIT_INPUT
from benchmarks.real_model.warm_up import PROMPT

from cooper_lab.designs.implicit import ImplicitEngine, implicit_folder
from cooper_lab.designs.implicit_learner import ImplicitLearner
from cooper_rl import LearnerConfig, load_tokenizer
from cooper_rl.engines.base import LabelledBatch
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss
from cooper_rl.engines.reward_input import RewardModelInput

TEMPLATE = PROMPT.format(question="{{ messages[0].content }}")
"""What the policy reads, with the reference behind the question."""
WITH_HEAD = dict(setting.split("=", 1) for setting in REWARD_MODEL)
BATCH = int(WITH_HEAD["batch_size"])


def make_implicit(start: Path, labelled: Path, model: Path, seed: int) -> None:
    """The folder `model`, from one pass over the labelled rows."""
    half = implicit_folder(start, fresh(model), TEMPLATE)
    rows = [json.loads(line) for line in labelled.read_text(encoding="utf-8").splitlines()]
    Random(seed).shuffle(rows)
    batches = [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]
    learner, encoder = opened(start, half, updates=len(batches))
    for number, picked in enumerate(batches, 1):
        asked = [(row["question"], row["reference_answer"], row["completion"]) for row in picked]
        labels, weights = [float(row["label"]) for row in picked], [1 / len(picked)] * len(picked)
        batch = LabelledBatch(encoder.encode_all(asked), labels, weights)
        learned = learner.forward_backward(batch, BinaryCrossEntropyLoss())
        learner.optim_step()
        print(f"{model.name}: {number} of {len(batches)}, accuracy {learned['accuracy']:.2f}", flush=True)
    learner.model.save_pretrained(half)
    half.rename(model)


def opened(start: Path, model: Path, updates: int) -> tuple[ImplicitLearner, RewardModelInput]:
    """The learner, which compares with the start policy, and its input."""
    shared: dict[str, Any] = {"device": "cpu", "autocast": WITH_HEAD["autocast"]}
    shared["tokens_per_microbatch"] = int(WITH_HEAD["tokens_per_microbatch"])
    engine = ImplicitEngine()
    engine.policy(LearnerConfig(model=str(start), **shared), 0)
    own = {"learning_rate": float(WITH_HEAD["learning_rate"]), "max_input_tokens": int(WITH_HEAD["max_input_tokens"])}
    own |= {"warmup_steps": updates // 10, "input": IMPLICIT_INPUT}
    config = ScorerConfig.model_validate({"model": str(model)} | own | shared)
    return engine.reward_model(config, updates), RewardModelInput.of(config, load_tokenizer(str(model)))


if __name__ == "__main__":
    make_implicit(*map(Path, sys.argv[1:4]), seed=int(sys.argv[4]))
