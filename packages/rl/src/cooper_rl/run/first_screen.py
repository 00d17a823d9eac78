"""What a run says of itself before and in its first step: its size, a prompt, and the best completion."""

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cooper_base.clock import VERIFY_S
from cooper_base.data.problem import Problem
from cooper_base.data.text import printable
from cooper_base.packages import loggers, set_log_level
from cooper_rl.run_config import RunConfig

if TYPE_CHECKING:
    from cooper_rl.step import Parts

TRAINING_METRICS = (
    ("reward/mean", "reward"),
    ("rule/accuracy", "rule"),
    ("gold/accuracy", "gold"),
    ("test/rule_avg", "test"),
    ("test/gold_avg", "test gold"),
    ("reward_model/pair_accuracy_before", "pairs"),
    ("rollout/cut_off_rate", "cut off"),
    ("time/step", "s"),
)
"""The metrics of a training step shown beside its number, each with a short name."""
LONGEST_BLOCK = 2000
"""Most characters of a prompt or completion on the screen. The rollout files hold the whole text."""


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Show our packages' log from level INFO on, unless the program has set up logging itself."""
    ours = loggers()
    if any(logger.hasHandlers() or logger.level != logging.NOTSET for logger in ours):
        yield
        return
    handler = logging.StreamHandler()
    for logger in ours:
        logger.addHandler(handler)
    set_log_level(logging.INFO)
    try:
        yield
    finally:
        for logger in ours:
            logger.removeHandler(handler)
        set_log_level(logging.NOTSET)


def describe_size(config: RunConfig, completed: int, test_problems: Sequence[int]) -> str:
    """The size of a run, before it begins: `test_problems` are the sizes of its test sets."""
    if completed == config.steps:
        return f"{config.name}: all {completed} steps are done; raise steps to go on"
    problems, n, most = config.problems_per_step, config.rollout.n, config.rollout.max_tokens
    text = (
        f"{config.name}: {config.steps - completed} of {config.steps} steps, each sampling {problems * n} completions "
        f"({problems} problems, {n} each) of at most {most} tokens: at most {problems * n * most:,} tokens a step"
    )
    if test_problems:
        sampled = sum(test_problems) * config.evaluation.k
        text += f"; evaluations of {sampled:,} completions before, every {config.evaluation.every} steps and after"
    return text


def describe_learners(parts: "Parts") -> list[str]:
    """One line per learner: on which device and how it computes."""
    model = parts.reward.model
    learners = {"policy": parts.policy} | ({} if model is None else {"reward model": model.learner})
    return [f"{name}: {description}" for name, learner in learners.items() if (description := learner.describe())]


def describe_prompt(problem: Problem, prompt: str) -> str:
    """The prompt as the policy reads it, special tokens included, with the reference answer."""
    return f"{_about(problem.id, problem.answer)}. The policy reads:\n{_block(prompt)}"


def best_example(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The completion with the highest reward in lines of `rollouts/*.jsonl`, with its problem; None without any."""
    examples = [
        {name: row.get(name, row["question"]) for name in ("problem", "prompt", "answer")} | completion
        for row in rows
        for completion in row["completions"]
    ]
    return max(
        examples,
        key=lambda completion: completion["reward"] if math.isfinite(completion["reward"]) else -math.inf,
        default=None,
    )


def describe_example(example: Mapping[str, Any]) -> str:
    rest = {name: value for name, value in example.items() if name not in ("reward", "advantage", VERIFY_S)}
    parts = [f"{k} {v:.4g}" for k, v in rest.items() if isinstance(v, float) and not k.endswith("_after")]
    learned = "reward_after" in example  # recorded if the reward model learned first, because the rule contradicted it
    reward = example["reward"]
    best = f"Highest reward of the first step: {reward:.4g}"
    if math.isnan(reward):
        best = "There is no opinion on any completion of the first step"
    after = f" Paid, once the reward model had learned from it: {example['reward_after']:.4g}." if learned else ""
    return (
        f"{best} ({', '.join(parts)}; "
        f"the rule says {example['verdict']}).{after}\n"
        f"{_about(example['problem'], example['answer'])}. The policy read:\n{_block(example['prompt'])}\n"
        f"and wrote {example['tokens']} tokens, ended by {example['stop_reason']}:\n{_block(example['text'])}"
    )


def _about(problem: str, answer: str) -> str:
    return f"Problem {problem}, reference answer {printable(answer) or 'none'}"


def _block(text: str) -> str:
    if len(text) > LONGEST_BLOCK:
        half = LONGEST_BLOCK // 2
        text = f"{text[:half]}\n[{len(text) - 2 * half} characters]\n{text[-half:]}"
    return "\n".join(f"  | {line}" for line in printable(text).split("\n"))
