"""The problems of the real runs, their start policy, and what a person would call right.

The problems are those of the embedded arithmetic world whose answers are whole numbers. The start policy is the world's
own, taught for a while on solutions in many forms: a share of `ODD` of them are written in forms that people write now
and then (tags, lists, several boxes, steps, remarks), each equally often. All runs of a size start at one policy.

    python -m benchmarks.real_runs.world OUT/start
    python -m benchmarks.real_runs.world OUT/start-135m --base SMOLLM2      # the same, taught to SmolLM2-135M
"""

import argparse
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random

import torch
from transformers import AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from cooper_lab.arithmetic.answers import read_answer, render_answer
from cooper_lab.arithmetic.corruption import wrong_value
from cooper_lab.arithmetic.problems import Split, arithmetic_problems
from cooper_lab.arithmetic.solutions import exact_value
from cooper_lab.arithmetic.warmup import WarmupConfig, learning_rate_share, noisy_solution, padded, tokens_and_labels
from cooper_lab.arithmetic.world import ASSETS
from cooper_rl import Problem

EMBEDDED = ASSETS / "policy"

ODD = 0.4
"""Share of the warm-up's solutions in one of `FORMS`, so 2.5 % each."""
UPDATES, BATCH, LEARNING_RATE = 700, 32, 1e-3
"""Of the warm-up of the world's policy."""
BASE_UPDATES, BASE_LEARNING_RATE = 150, 1e-4
"""Of the warm-up of a base model, in bfloat16 as it is trained."""
MAX_TOKENS = 56
"""Tokens of a completion, which are characters for the world's policy: the longest form fits."""
TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
"""The chat template, which writes a prompt as the world's policy knows it."""

FORMS: dict[str, Callable[[str, str, str], str]] = {
    "#### line": lambda work, answer, other: f"{work}\n#### {answer}",
    "answer tag": lambda work, answer, other: f"{work} <answer>{answer}</answer>",
    "thought": lambda work, answer, other: f"<think>{work}</think> answer: {answer}",
    "thought and box": lambda work, answer, other: f"<think>{work}</think> \\boxed{{{answer}}}",
    "thought and tag": lambda work, answer, other: f"<think>{work}</think><answer>{answer}</answer>",
    "box": lambda work, answer, other: f"\\boxed{{{answer}}}",
    "bare answer": lambda work, answer, other: answer,
    "answer first": lambda work, answer, other: f"{answer}, because {work}",
    "steps": lambda work, answer, other: f"First, {work}\nFinally, answer: {answer}",
    "items": lambda work, answer, other: f"\n- {work}\n- answer: {answer}",
    "or": lambda work, answer, other: f"{work} answer: {answer} or {other}",
    "commas": lambda work, answer, other: f"answer: {other}, {answer}",
    "two boxes": lambda work, answer, other: f"\\boxed{{{other}}} \\boxed{{{answer}}}",
    "list in a tag": lambda work, answer, other: f"<answer>{answer} or {other}</answer>",
    "worked twice": lambda work, answer, other: f"{work}, {work} answer: {answer}",
    "remark": lambda work, answer, other: f"{work} answer: {answer}. I checked it.",
}
"""Odd forms of a solution, from its work, its answer and another number."""


def problems(split: Split, count: int) -> list[Problem]:
    """Problems of the world whose answer is a whole number below 1000, asked for in figures."""
    drawn = arithmetic_problems(split, 2 * count + 100)
    whole = [problem for problem in drawn if re.fullmatch(r"-?\d{1,3}", problem.answer)]
    return [problem for problem in whole if problem.metadata["form"] == "plain"][:count]


def training_problems() -> list[Problem]:
    """Those of every run, in their order."""
    return problems("train", 2000)


def write_problems(path: Path) -> None:
    """Write question and answer of every training problem as JSON lines."""
    rows = [{"question": problem.question, "answer": problem.answer} for problem in training_problems()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def solution(problem: Problem, random: Random) -> str:
    """A solution of the warm-up: as the world writes it, with its slips, or in an odd form with as many slips."""
    config = WarmupConfig()
    if random.random() >= ODD:
        return noisy_solution(problem, config, random)
    value = exact_value(problem)
    wrong = render_answer(wrong_value(value, "plain", random), "plain")
    answer, other = (wrong, problem.answer) if random.random() < config.slip_rate else (problem.answer, wrong)
    return FORMS[random.choice(list(FORMS))](problem.metadata["work"], answer, other)


def make_start_policy(folder: Path, base: Path = EMBEDDED, seed: int = 0) -> None:
    """Teach a policy, the world's or a larger one, the odd forms, and write it with a chat template. Reseeds torch.

    Its generation settings have no `top_k`. With the default of transformers, 50, `retrain` 0.3.0 reads log
    probabilities of minus infinity for the padding behind a completion, and its first step makes the weights NaN.
    """
    torch.manual_seed(seed)
    random = Random(f"real runs {seed}")
    larger = base != EMBEDDED
    updates, rate = (BASE_UPDATES, BASE_LEARNING_RATE) if larger else (UPDATES, LEARNING_RATE)
    tokenizer: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(base)
    model = LlamaForCausalLM.from_pretrained(base, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01, betas=(0.9, 0.95))
    drawn = training_problems()
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = rate * learning_rate_share(update, updates)
        rows = [tokens_and_labels(each, solution(each, random), tokenizer) for each in random.choices(drawn, k=BATCH)]
        tokens, labels = padded(rows, tokenizer)
        with torch.autocast("cpu", torch.bfloat16, enabled=larger):
            loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    tokenizer.chat_template = TEMPLATE
    model.generation_config.update(do_sample=True, top_k=0)
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


MARKS = re.compile(r"\\boxed\{|<answer>|####+|answer:")


def right(problem: Problem, text: str) -> bool:
    """Whether a person would call the completion right: it states one final answer, and that is the value.

    The answer stands in a box, a tag, after `####` or `answer:`, or else after the last `=`, or is all there is. A
    remark without figures may follow, and stray marks behind a box or a tag. Several final answers, and an answer with
    anything else in it, are wrong.
    """
    text = re.sub(r"^<think>.*?</think>", "", text, flags=re.DOTALL)
    marks = list(MARKS.finditer(text))
    if len(marks) > 1:
        return False
    stated = text[marks[0].end() :] if marks else text.rpartition("=")[2]
    closing = {"\\boxed{": "}", "<answer>": "</answer>"}.get(marks[0].group() if marks else "", "")
    if closing:
        stated, closed, after = stated.partition(closing)
        if not closed or re.search(r"\w", after):
            return False
    first, _, remark = stated.strip().partition(". ")
    if not re.search(r"\d", remark):
        stated = first
    return read_answer(stated) == Fraction(problem.answer)


def strict(problem: Problem, completion_text: str) -> str:
    """`right` as a rule, for an audit whose check reads as a person does."""
    return "correct" if right(problem, completion_text) else "wrong"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--base", type=Path, default=EMBEDDED, help="the folder of a base model (default: the world's)")
    given = parser.parse_args()
    make_start_policy(given.folder, given.base)
