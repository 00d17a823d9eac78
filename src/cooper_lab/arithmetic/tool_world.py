"""The embedded world with a calculator: its settings, and a policy that has learned to call it."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from cooper_lab.arithmetic.build_models import save
from cooper_lab.arithmetic.calculator import computed, shown
from cooper_lab.arithmetic.corruption import corrupt
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.solutions import BOX, MARKER, draw_solution
from cooper_lab.arithmetic.warmup import (
    IGNORED,
    Row,
    WarmupConfig,
    learning_rate_share,
    noisy_solution,
    padded,
    prompt_text,
    tokens_and_labels,
)
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import Problem, load_policy, load_tokenizer

ENVIRONMENT = {
    "environment": "cooper_lab.arithmetic.calculator:Calculator",
    "tool_syntax": "cooper_lab.arithmetic.calculator:Brackets",
    "max_turns": 4,
    "max_tokens": 64,
}
"""Settings of `rollout`."""
TOOLS, WRONG_TOOLS = 0.45, 0.15
"""Shares of the schooling: runs with the calculator, and such with a slip in the reply; the rest uses no tool."""
LEARNING_RATE = 1e-3


def policy_with_calls(folder: Path, seed: int = 0, updates: int = 240) -> None:
    """Write the shipped policy after some schooling in calls: a plain Hugging Face folder."""
    torch.manual_seed(seed)
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    random = Random(f"calls {seed}")
    save(_schooled(arithmetic_problems("train", 3000, 0), tokenizer, random, updates), tokenizer, folder)


def _schooled(problems: Sequence[Problem], tokenizer: Any, random: Random, updates: int) -> Any:
    policy: Any = load_policy(str(ASSETS / "policy")).train()
    optimizer = torch.optim.AdamW(policy.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.95))
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * learning_rate_share(update, updates)
        rows = [_row(problem, tokenizer, random) for problem in random.choices(problems, k=32)]
        tokens_BT, labels_BT = padded(rows, tokenizer)
        policy(input_ids=tokens_BT, labels=labels_BT).loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return policy.eval()


def _row(problem: Problem, tokenizer: Any, random: Random) -> Row:
    """A run with the calculator, right or with a slip, or a solution without it."""
    luck = random.random()
    if luck < TOOLS + WRONG_TOOLS:
        return run_row(problem, reply_to(problem, random, right=luck < TOOLS), tokenizer)
    return tokens_and_labels(problem, noisy_solution(problem, WarmupConfig(), random), tokenizer)


def run_row(problem: Problem, reply: str, tokenizer: Any) -> Row:
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


def calls_of(problem: Problem) -> list[str]:
    """What the calculator is asked: `12+7` for the work `12+7=19`."""
    return [step.partition("=")[0] for step in problem.metadata["work"].split(", ")]


def reply_to(problem: Problem, random: Random, right: bool = True) -> str:
    """The turn after the calculator's last answer: ` answer: 19`, or with a slip."""
    text = draw_solution(problem, random)
    if not right:
        text = corrupt(problem, text, seed=random.getrandbits(31))
    return text[max(text.find(f" {MARKER}"), text.find(" " + BOX)) :]
