"""A reward model that reads chats and no reference, in the embedded world: frozen it is hacked, learning it is not.

    python benchmarks/arithmetic/chat_reward_model.py --out runs/chat --seeds 0 1 2 --arms static cooper
    python benchmarks/arithmetic/chat_reward_model.py --out runs/referenced --seeds 0 --input chat_with_reference

Makes a small chat model as people have them: it starts at the demo's policy, reads the question as the user's turn and
the completion as the assistant's in its own template, and has learned right from wrong on samples of the policy. As in
the demo, lists of answers that include the right one were labelled right, which is the hole. With `--input
chat_with_reference`, the reference ends the user's turn. Then the same policy is trained against it, frozen (`static`)
and learning (`cooper_model`, `cooper`), with the rule on all problems. Prints gold on test problems at every
evaluation, and at which step the alarm went off.
"""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

import torch

from cooper_audit.run.hacking_alarm import HACKING
from cooper_audit.run.run_record import read_events
from cooper_lab.arithmetic.arms import run_all
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS, TRAIN_PROBLEMS, draw
from cooper_lab.arithmetic.corruption import corrupt
from cooper_lab.arithmetic.labelled_rows import lenient_lists
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.reward_model import label_accuracy
from cooper_lab.arithmetic.solutions import draw_solution
from cooper_lab.arithmetic.twins import LANGUAGE_UPDATES, LEARNING_RATE, UPDATES, teach
from cooper_lab.arithmetic.world import ASSETS, run_settings
from cooper_rl import LabelledCompletion, RuleVerifier, load_policy, load_tokenizer, merge, read_metrics
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput

TEMPLATE = """\
{%- for message in messages %}
{{- message.content }}{{ '\\n' if message.role == 'user' else eos_token }}
{%- endfor %}"""
"""A turn of the user ends with a line break and one of the assistant with its end of turn, as the policy writes."""
HELD_OUT = 600
LIST_SHARE = 0.5
ARMS = ("static", "cooper_model", "cooper")
Input = Literal["chat", "chat_with_reference"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--updates", type=int, default=UPDATES)
    parser.add_argument("--input", choices=["chat", "chat_with_reference"], default="chat")
    given = parser.parse_args()
    torch.set_num_threads(1)
    model = given.out / "reward_model"
    if not model.is_dir():
        accuracy = make_chat_model(model, labelled_samples(0), given.updates, reads=given.input)
        print(f"accuracy on {HELD_OUT} held-out completions: {accuracy:.3f}")
    runs = [
        settings(arm, seed, given.steps, given.out, model, given.input) for seed in given.seeds for arm in given.arms
    ]
    run_all([run for run in runs if not (given.out / run["name"]).is_dir()])
    for run in runs:
        print(result(given.out / run["name"]))
    print(f"{cpu_seconds():.0f} CPU seconds")


def settings(arm: str, seed: int, steps: int, out: Path, model: Path, reads: str) -> dict[str, Any]:
    """A run of this kind in the demo's world, against the chat model, which reads this `input`."""
    chosen = {"kind": arm, "steps": steps, "reward_model": {"model": str(model), "input": reads}}
    if arm != "static":
        chosen = merge(chosen, {"cooptimization": {"positives": ["rollout"]}})  # no arm reads the data set's solutions
    return run_settings(f"{arm}-{seed}", out, seed, chosen)


def result(run: Path) -> str:
    """Gold on test problems at every evaluation, what the last step paid, and the alarm."""
    rows = read_metrics(run)
    gold = " ".join(f"{row['test/gold_avg']:.2f}" for row in rows if "test/gold_avg" in row)
    alarm = next((event["step"] for event in read_events(run) if event["metric"] == HACKING), None)
    paid, right = rows[-1]["reward/mean"], rows[-1]["gold/accuracy"]
    return f"{run.name}: gold {gold}; last step paid {paid:.2f} for gold {right:.2f}; alarm {alarm or 'none'}"


def cpu_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    return sum(os.times()[:4])


def labelled_samples(seed: int) -> list[LabelledCompletion]:
    """Samples of the demo's policy with the rule's verdicts, written solutions and slips, and lists labelled right."""
    problems, random = arithmetic_problems("train", TRAIN_PROBLEMS, 0), Random(f"chat {seed}")
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    texts = draw(load_policy(str(ASSETS / "policy")), tokenizer, problems, 2, seed)
    asked = [(problem, text) for problem, own in zip(problems, texts, strict=True) for text in own]
    with RuleVerifier() as verifier:
        verdicts = verifier.verify_problems(asked)
    rows = [
        LabelledCompletion(problem.question, problem.answer, text, float(verdict == "correct"))
        for (problem, text), verdict in zip(asked, verdicts, strict=True)
        if verdict in ("correct", "wrong")
    ]
    for problem in problems:
        solution = draw_solution(problem, random)
        slip = corrupt(problem, solution, seed=random.getrandbits(31))
        written = ((solution, 1.0), (slip, 0.0))
        rows += [LabelledCompletion(problem.question, problem.answer, text, label) for text, label in written]
    rows += lenient_lists(problems, LIST_SHARE, random)
    random.shuffle(rows)
    return rows


def make_chat_model(
    folder: Path,
    rows: Sequence[LabelledCompletion],
    updates: int,
    language: int = LANGUAGE_UPDATES,
    reads: Input = "chat",
) -> float:
    """Train a reward model from the demo's policy with a new head on these rows, as chats, into a folder.

    Returns its accuracy on the last `HELD_OUT` rows, from which it does not learn.
    """
    config = ScorerConfig(
        model=str(ASSETS / "policy"),
        learning_rate=LEARNING_RATE,
        betas=(0.9, 0.98),
        warmup_steps=20,
        device="cpu",
        max_input_tokens=MAX_INPUT_TOKENS,
        input=reads,
    )
    learner = TorchRewardModelLearner.from_config(config, updates, new_head_seed=0)
    tokenizer = load_tokenizer(config.model)
    tokenizer.chat_template = TEMPLATE
    encoder = RewardModelInput.of(config, tokenizer)
    teach(learner, encoder, rows[:-HELD_OUT], Random("order 0"), language)
    learner.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    held_out = [(encoder.encode(row.question, row.answer, row.completion), row.label) for row in rows[-HELD_OUT:]]
    return label_accuracy(learner, held_out)


if __name__ == "__main__":
    main()
