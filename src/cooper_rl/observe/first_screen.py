"""The first screen of a run: what the policy is asked and what it is rewarded for, shown before the run costs much."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from cooper_rl.data.problem import Problem
from cooper_rl.data.text import printable

LONGEST_TEXT = 2000
"""Most characters of a prompt or completion on the screen. The rollout files hold the whole text."""


def describe_prompt(problem: Problem, prompt: str) -> str:
    """The prompt as the policy reads it, special tokens included, with the reference answer."""
    return f"Problem {problem.id}, reference answer {_answer(problem.answer)}. The policy reads:\n{_block(prompt)}"


def best_example(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The completion with the highest reward in a step's rollouts, with its problem. None if there are no completions.

    `rows` are lines of `rollouts/*.jsonl`. For a line without `prompt` the question is shown instead.
    """
    examples = [
        {name: row.get(name, row["question"]) for name in ("problem", "prompt", "answer")} | completion
        for row in rows
        for completion in row["completions"]
    ]
    return max(examples, key=lambda one: one["reward"] if math.isfinite(one["reward"]) else -math.inf, default=None)


def describe_example(example: Mapping[str, Any]) -> str:
    """A completion with its prompt, every reward and the rule's verdict."""
    parts = [f"{name} {value:.4g}" for name, value in reward_parts(example).items()]
    return (
        f"Highest reward of the first step: {example['reward']:.4g} ({', '.join(parts)}; "
        f"the rule says {example['verdict']}).\n"
        f"Problem {example['problem']}, reference answer {_answer(example['answer'])}. The policy read:\n"
        f"{_block(example['prompt'])}\n"
        f"and wrote {example['tokens']} tokens, ended by {example['stop_reason']}:\n"
        f"{_block(example['text'])}"
    )


def reward_parts(example: Mapping[str, Any]) -> dict[str, float]:
    """The scores that make up the reward of a completion, by name."""
    return {k: value for k, value in example.items() if isinstance(value, float) and k not in ("reward", "advantage")}


def _answer(answer: str) -> str:
    return printable(answer) if answer else "none"


def _block(text: str) -> str:
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters]\n{text[-half:]}"
    return "\n".join(f"  | {line}" for line in printable(text).split("\n"))
