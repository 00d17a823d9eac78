"""Rebuilds the demo's artefacts: tokenizer, warmed-up policy, VerifyRM and its labelled data."""

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from cooper_base.files.durable import write_text
from cooper_lab.arithmetic.figures import figures_verdict
from cooper_lab.arithmetic.labelled_rows import label_samples, lenient_lists, states_one_answer
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.reward_model import VerifyRMConfig, label_accuracy, new_reward_model, train_reward_model
from cooper_lab.arithmetic.tokenizer import build_tokenizer
from cooper_lab.arithmetic.warmup import WarmupConfig, prompt_text, warm_up
from cooper_rl import LabelledCompletion, LearnerConfig, NativeSampler, Problem, SamplingParams
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput

logger = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
"""Called with the name of the phase and its finished share."""

TRAIN_PROBLEMS = 3000
TEST_PROBLEMS = 256
MAX_TOKENS = 32
MAX_INPUT_TOKENS = 160
DEFAULT_WARMUP, DEFAULT_VERIFYRM = WarmupConfig(), VerifyRMConfig()


def build(
    output_dir: Path,
    seed: int = 0,
    progress: Progress | None = None,
    warmup: WarmupConfig = DEFAULT_WARMUP,
    verifyrm: VerifyRMConfig = DEFAULT_VERIFYRM,
) -> dict[str, Any]:
    """Make `policy/`, `reward_model/`, `labelled.jsonl` and `manifest.json` in `output_dir`. Returns the manifest.

    Both models are plain Hugging Face folders in float16. The same seed gives the same artefacts on one machine.
    """

    def report(phase: str, total: int) -> Callable[[int, float], None]:
        return lambda done, loss: progress(phase, done / total) if progress else None

    output_dir.mkdir(parents=True, exist_ok=True)
    problems = arithmetic_problems("train", TRAIN_PROBLEMS, seed)
    tokenizer = build_tokenizer()
    snapshots = [warmup.updates // 2, warmup.clean_updates, warmup.updates]
    policy, kept = warm_up(problems, tokenizer, warmup, seed, snapshots, report("policy", warmup.updates))
    save(policy, tokenizer, output_dir / "policy")

    random = Random(f"VerifyRM {seed}")
    rows: list[LabelledCompletion] = []
    for number, model in enumerate(kept.values()):
        sampled = random.sample(problems, verifyrm.problems // len(kept))
        rows += label_samples(sampled, draw(model, tokenizer, sampled, n=2, seed=seed + number), random)
    rows = [row for row in rows if states_one_answer(row)]
    random.shuffle(rows)
    taught = rows + lenient_lists(problems, verifyrm.list_share, random)
    random.shuffle(taught)
    encoder = RewardModelInput(tokenizer, MAX_INPUT_TOKENS)
    learner = reward_learner(verifyrm, tokenizer, seed)
    label_accuracy = train_reward_model(
        learner, encoder, taught, verifyrm, random, report("reward model", learner.total_steps)
    )
    save(learner.model, tokenizer, output_dir / "reward_model")
    manifest = measure(policy, tokenizer, learner, encoder, seed)
    write_labelled(rows[: verifyrm.replayed], output_dir / "labelled.jsonl")
    manifest["reward_model"] |= {"label_accuracy": round(label_accuracy, 4), "updates": learner.steps}
    manifest |= {"seed": seed, "warmup": warmup.model_dump(), "verifyrm": verifyrm.model_dump()}
    write_text(output_dir / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    return manifest


def reward_learner(config: VerifyRMConfig, tokenizer: PreTrainedTokenizerFast, seed: int) -> TorchRewardModelLearner:
    """A learner for a reward model with random weights."""
    settings = LearnerConfig(
        model="",
        learning_rate=config.learning_rate,
        betas=(0.9, 0.98),
        warmup_steps=50,
        device="cpu",
    )
    return TorchRewardModelLearner(
        new_reward_model(config, tokenizer, seed), settings, config.language_updates + config.most_updates
    )


def draw(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, problems: Sequence[Problem], n: int, seed: int
) -> list[list[str]]:
    """Completions sampled at temperature 1, `n` per problem."""
    prompts = [tokenizer(prompt_text(problem))["input_ids"] for problem in problems]
    sampler = NativeSampler(tokenizer, model, max_rows=256)
    texts = sampler.sample(prompts, n, SamplingParams(max_tokens=MAX_TOKENS), seed).texts
    return [list(texts[start : start + n]) for start in range(0, len(texts), n)]


def measure(
    policy: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    reward_model: TorchRewardModelLearner,
    encoder: RewardModelInput,
    seed: int,
) -> dict[str, Any]:
    """Accuracy of the policy, the rule and the reward model on test problems, for the manifest."""
    problems = arithmetic_problems("test", TEST_PROBLEMS, seed)
    items = [
        (problem, text)
        for problem, texts in zip(problems, draw(policy, tokenizer, problems, 4, seed), strict=True)
        for text in texts
    ]
    right = [gold(problem, text) for problem, text in items]
    verdicts = [figures_verdict(problem.answer, text, problem.question) for problem, text in items]
    accepted = [verdict == "correct" for verdict in verdicts]
    both = sum(a and b for a, b in zip(right, accepted, strict=True))
    encoded = [encoder.encode(problem.question, problem.answer, text) for problem, text in items]
    return {
        "policy": {
            "parameters": policy.num_parameters(),
            "gold_accuracy": round(sum(right) / len(right), 4),
            "rule_accuracy": round(sum(accepted) / len(accepted), 4),
        },
        "rule": {"precision": round(both / max(1, sum(accepted)), 4), "recall": round(both / max(1, sum(right)), 4)},
        "reward_model": {
            "parameters": reward_model.model.num_parameters(),
            "heldout_accuracy": round(label_accuracy(reward_model, list(zip(encoded, right, strict=True))), 4),
        },
    }


def save(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write a plain Hugging Face folder with float16 weights. The model itself is not changed."""
    weights = {name: tensor.to(torch.float16) for name, tensor in model.state_dict().items()}
    model.save_pretrained(folder, state_dict=weights)
    tokenizer.save_pretrained(folder)


def write_labelled(rows: Sequence[LabelledCompletion], path: Path) -> None:
    """Write the rows as JSONL with the columns of VerifyRM's data."""
    lines = [
        json.dumps(
            {"question": row.question, "reference_answer": row.answer, "completion": row.completion, "label": row.label}
        )
        for row in rows
    ]
    write_text(path, "\n".join(lines) + "\n")
