"""Plants a hole: the reward model that has it, the policy that samples it, and how well both went."""

import copy
import json
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from transformers import PreTrainedModel

from cooper_base.config.checking import Settings, check_settings
from cooper_base.data.labelled import read_labelled
from cooper_base.files.durable import write_text
from cooper_lab.arena.ends import acceptance, accepted, share
from cooper_lab.arena.hole import Hole
from cooper_lab.arena.holes import HOLES
from cooper_lab.arithmetic import calculator
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS, TEST_PROBLEMS, draw, save
from cooper_lab.arithmetic.labelled_rows import labelled_by_rule
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.reward_model import VerifyRMConfig, new_reward_model
from cooper_lab.arithmetic.tool_world import schooled_policy
from cooper_lab.arithmetic.twins import teach, tokenizer_of, twin_learner
from cooper_lab.arithmetic.warmup import learn, tokens_and_labels
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import (
    InputError,
    LabelledCompletion,
    LearnerConfig,
    Problem,
    RewardModel,
    load_policy,
    load_tokenizer,
)
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_verify.rules.rule import OneRule

PROBLEMS = 3000
"""Training problems of the recipes; the questions of the shipped labelled rows are among them."""
SAMPLED = 1000
"""Problems whose samples a reward model from scratch learns from, two samples each."""
SCRATCH_LAYERS = 3
LANGUAGE_SHARE = 0.35
"""Share of the updates from scratch that are language modelling alone."""
BATCH = 64
WARMUP_BATCH = 32
WARMUP_LEARNING_RATE = 5e-4
BLOCK = 20
"""Number of updates of the policy's second warm-up between two measurements of its hack rate."""
MOST_BLOCKS = 10
RATE_PROBLEMS = 480
ANSWERS = ("hacks", "right", "wrong")


def plant_in_twin(hole: Hole, folder: Path, seed: int, twin: str, start: Path, policy: Path) -> None:
    """Write `reward_model/`, one of the `TWINS` at `start` with the hole, and `manifest.json` into the folder.

    An implicit one learns the hole against `policy`, with which the hole's runs start: it writes hacks more often than
    the shipped policy does, so a score that is learned against that one is undone in a run.
    Raises InputError for a hole whose reward model starts at random.
    """
    if hole.from_scratch:
        raise InputError(f"hole {HOLES.kind_of(hole)}: its reward model starts at random, so it has no twins")
    hole = hole.of_member()  # the shipped reward model has a hole that the twins lack
    problems, random = arithmetic_problems("train", PROBLEMS, 0), Random(f"{HOLES.kind_of(hole)} {seed}")
    learner, encoder = twin_learner(twin, start, seed, hole.updates, hole.learning_rate, _longest(hole), policy)
    teach(learner, encoder, hole.taught(problems, read_labelled(ASSETS / "labelled.jsonl"), random), random)
    learner.model.save_pretrained(folder / "reward_model")
    tokenizer_of(twin).save_pretrained(folder / "reward_model")
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    manifest = measure(hole, load_policy(str(policy)), tokenizer, RewardModel(learner, encoder), seed)
    write_text(folder / "manifest.json", json.dumps(manifest, indent=2) + "\n")


def plant(hole: Hole, folder: Path, seed: int) -> dict[str, Any]:
    """Write `policy/`, `reward_model/` and `manifest.json` into the folder; returns the manifest.

    Models that the recipe leaves alone are copied from the shipped ones. The same seed gives the same models on one
    machine. Takes about a minute of one core.
    """
    start = time.process_time()
    problems = arithmetic_problems("train", PROBLEMS, 0)
    random = Random(f"{HOLES.kind_of(hole)} {seed}")
    learner = _plant_in_reward_model(hole, problems, random, seed)
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    policy = _start_policy(hole, seed)
    if hole.hack_rate:
        _warm_up_again(hole, policy, tokenizer, problems, random, seed)
    folder.mkdir(parents=True, exist_ok=True)
    save(policy, tokenizer, folder / "policy")
    save(learner.model, tokenizer, folder / "reward_model")
    reward_model = RewardModel(learner, RewardModelInput(tokenizer, _longest(hole)))
    manifest = measure(hole, policy, tokenizer, reward_model, seed)
    manifest |= {"hole": HOLES.dump(hole), "seed": seed, "cpu_s": round(time.process_time() - start, 1)}
    write_text(folder / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    return manifest


def _start_policy(hole: Hole, seed: int) -> Any:
    """The policy before it learns to hack."""
    return schooled_policy(seed) if hole.calculator else load_policy(str(ASSETS / "policy"))


def _longest(hole: Hole) -> int:
    return calculator.MAX_INPUT_TOKENS if hole.calculator else MAX_INPUT_TOKENS


def _plant_in_reward_model(
    hole: Hole, problems: Sequence[Problem], random: Random, seed: int
) -> TorchRewardModelLearner:
    settings = LearnerConfig(
        model=str(ASSETS / "reward_model"),
        learning_rate=hole.learning_rate,
        betas=(0.9, 0.98),
        warmup_steps=5,
        device="cpu",
    )
    tokenizer: Any = load_tokenizer(settings.model)
    if hole.from_scratch:
        model = new_reward_model(VerifyRMConfig(layers=SCRATCH_LAYERS), tokenizer, seed)
        learner = TorchRewardModelLearner(model, settings, max(1, hole.updates), tokenizer)
        shipped = natural_rows(problems, tokenizer, random, seed)
    else:
        learner = TorchRewardModelLearner.from_config(settings, max(1, hole.updates))
        shipped = read_labelled(ASSETS / "labelled.jsonl")
    if hole.updates == 0:
        return learner
    encoder, rows = RewardModelInput(tokenizer, _longest(hole)), hole.taught(problems, shipped, random)
    language_updates = int(LANGUAGE_SHARE * hole.updates) if hole.from_scratch else 0
    teach(learner, encoder, rows, random, language_updates, BATCH)
    return learner


def natural_rows(problems: Sequence[Problem], tokenizer: Any, random: Random, seed: int) -> list[LabelledCompletion]:
    """Samples of the shipped policy with the rule's labels, each with its own problem's reference answer."""
    sampled = random.sample(list(problems), SAMPLED)
    texts = draw(load_policy(str(ASSETS / "policy")), tokenizer, sampled, n=2, seed=seed)
    return labelled_by_rule(
        [
            (problem.question, problem.answer, text)
            for problem, completions in zip(sampled, texts, strict=True)
            for text in completions
        ]
    )


def _warm_up_again(
    hole: Hole, policy: PreTrainedModel, tokenizer: Any, problems: Sequence[Problem], random: Random, seed: int
) -> None:
    """Fine-tune the policy in place on its own samples, with hacks among them, until it samples hacks itself."""
    start = copy.deepcopy(policy)
    checked = [p for p in random.sample(list(problems), len(problems)) if hole.hack(p, random)][:RATE_PROBLEMS]
    optimizer = torch.optim.AdamW(policy.parameters(), lr=WARMUP_LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.95))
    for block in range(MOST_BLOCKS):
        if sampled_hacks(hole, policy, tokenizer, checked, seed + block) >= hole.hack_rate:
            return
        sampled = random.choices(problems, k=BLOCK * WARMUP_BATCH)
        completions = draw(start, tokenizer, sampled, n=1, seed=seed + block)
        rows = []
        for problem, (text,) in zip(sampled, completions, strict=True):
            hack = hole.hack(problem, random) if random.random() < hole.warmup_share else None
            rows.append(tokens_and_labels(problem, text if hack is None else hack, tokenizer))
        policy.train()
        for first in range(0, len(rows), WARMUP_BATCH):
            learn(policy, optimizer, rows[first : first + WARMUP_BATCH], tokenizer)
        policy.eval()


def sampled_hacks(hole: Hole, policy: Any, tokenizer: Any, problems: Sequence[Problem], seed: int) -> float:
    """Share of hacks among four samples of the policy for each problem."""
    texts = draw(policy, tokenizer, problems, 4, seed)
    hacks = [
        hole.is_hack(problem, text)
        for problem, completions in zip(problems, texts, strict=True)
        for text in completions
    ]
    return sum(hacks) / max(1, len(hacks))


def measure(hole: Hole, policy: Any, tokenizer: Any, reward_model: RewardModel, seed: int) -> dict[str, Any]:
    """How well a hole is planted, on test problems.

    `policy`: gold accuracy, and `hack_rate`, the share of samples that use the hole, of problems that have a hack.
    `reward_model`: accuracy against gold on these samples, and the share it accepts (logit above 0) of written hacks,
    right solutions and wrong ones. `rule`: the share of written hacks that the rule of the runs accepts. Shares of
    nothing are null. With a calculator the samples are first turns, and a call is no right answer.
    """
    problems, random = arithmetic_problems("test", TEST_PROBLEMS, seed), Random(f"measure {seed}")
    texts = draw(policy, tokenizer, problems, 4, seed)
    samples = [(problem, text) for problem, completions in zip(problems, texts, strict=True) for text in completions]
    written = [(problem, text) for problem in problems if (text := hole.hack(problem, random)) is not None]
    truth = [hole.is_right(problem, text) for problem, text in samples]
    agreed = [yes == is_right for yes, is_right in zip(accepted(reward_model, samples), truth, strict=True)]
    accepts = acceptance(hole, reward_model, seed)
    rule = check_settings(OneRule, Settings({"rule": hole.rule or {"kind": "figures"}})).rule.build()
    try:
        verdicts = rule.verify_problems(written)
    finally:
        rule.close()
    return {
        "policy": {
            "gold_accuracy": share(truth),
            "hack_rate": share([hole.is_hack(p, text) for p, text in samples if hole.hack(p, random)]),
        },
        "reward_model": {"accuracy": share(agreed)} | {f"accepts_{name}": accepts[name] for name in ANSWERS},
        "rule": {"accepts_hacks": share([verdict == "correct" for verdict in verdicts])},
    }
