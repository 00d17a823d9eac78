"""The embedded world with a calculator: a policy that has learned to call it."""

from pathlib import Path
from random import Random
from typing import Any

import torch

from cooper_lab.arithmetic.build_models import save
from cooper_lab.arithmetic.calculator import calls_of, computed, reply_to, shown
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.warmup import (
    IGNORED,
    TokensAndLabels,
    WarmupConfig,
    learn,
    learning_rate_share,
    noisy_solution,
    prompt_text,
    tokens_and_labels,
)
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import Problem, load_policy, load_tokenizer

TOOLS, WRONG_TOOLS = 0.45, 0.15
"""Shares of the training data: rollouts with the calculator, and rollouts with a slip in the reply; the rest uses no
tool."""
LEARNING_RATE = 1e-3


def policy_with_calls(folder: Path, seed: int = 0, updates: int = 240) -> None:
    """Write `schooled_policy` as a plain Hugging Face folder."""
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    save(schooled_policy(seed, updates), tokenizer, folder)


def schooled_policy(seed: int = 0, updates: int = 240) -> Any:
    """The shipped policy after training in calls. Takes a minute of one core."""
    torch.manual_seed(seed)
    problems, random = arithmetic_problems("train", 3000, 0), Random(f"calls {seed}")
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    policy: Any = load_policy(str(ASSETS / "policy")).train()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.95))
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * learning_rate_share(update, updates)
        rows = [_row(problem, tokenizer, random) for problem in random.choices(problems, k=32)]
        learn(policy, optimizer, rows, tokenizer)
    return policy.eval()


def _row(problem: Problem, tokenizer: Any, random: Random) -> TokensAndLabels:
    """A run with the calculator, right or with a slip, or a solution without it."""
    luck = random.random()
    if luck < TOOLS + WRONG_TOOLS:
        return run_row(problem, reply_to(problem, random, right=luck < TOOLS), tokenizer)
    return tokens_and_labels(problem, noisy_solution(problem, WarmupConfig(), random), tokenizer)


def run_row(problem: Problem, reply: str, tokenizer: Any) -> TokensAndLabels:
    """A run with the calculator as the policy learns it: the calculator's words are read, not learned."""
    ids: list[int] = list(tokenizer(prompt_text(problem))["input_ids"])
    labels = [IGNORED] * len(ids)
    for call in calls_of(problem):
        written = [*tokenizer(f"[{call}]")["input_ids"], tokenizer.eos_token_id]
        answered = tokenizer(f"={shown(computed(call))}")["input_ids"]
        ids += written + answered
        labels += written + [IGNORED] * len(answered)
    last = [*tokenizer(reply)["input_ids"], tokenizer.eos_token_id]
    return ids + last, labels + last
