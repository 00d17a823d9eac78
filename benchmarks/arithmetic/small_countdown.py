"""Countdown at the size of the embedded world, to see why Cooper without solutions breaks: real_model/countdown.md.

python -m benchmarks.arithmetic.small_countdown OUT --arms graded cooper --seeds 0 1
python -m benchmarks.arithmetic.small_countdown OUT            # only the table of the runs in OUT

`Make 15 from 18, 16, 49` becomes `15=18,16,49`, and a completion is the expression alone: `49-18-16`. What is finished
is kept, so the same command continues after an interruption. The models take 70 CPU seconds, and a run 3 to 8.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import cycle, islice
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import torch
from benchmarks.real_model.countdown import equation
from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from cooper_audit.run.run_record import RunRecord, read_record
from cooper_base.data.verdict import UserVerdict
from cooper_lab.arithmetic.build_models import draw
from cooper_lab.arithmetic.tokenizer import END, MARKUP, PAD, UNKNOWN
from cooper_lab.arithmetic.twins import teach, twin_learner
from cooper_lab.arithmetic.warmup import learning_rate_share, padded, small_llama, tokens_and_labels
from cooper_rl import (
    CooperTrainer,
    LabelledCompletion,
    Problem,
    Ragged,
    ShapingConfig,
    StepContext,
    build_config,
    load_policy,
    merge,
)
from cooper_rl.reward.monitor import roc_auc

LARGEST_NUMBER, LARGEST_TARGET = 12, 24
WARM_UP, LABELLED, TRAINING, TEST = 8000, 800, 1000, 192
"""Problems of the warm-up, of the reward model's labels, of the runs and of their tests."""
POLICY_UPDATES, REWARD_MODEL_UPDATES = 600, 1000
WIDTH, LAYERS = 64, 2
"""Of both models, which have 0.1 M parameters."""
SLIPS = 0.25
"""Share of the warm-up's solutions with a token changed or left out."""
GRADED = 0.25
"""Share of the problems that the rule judges."""
LONGEST = 48
"""Tokens of the reward model's input."""


def number_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each number, operator and string of `MARKUP`."""
    known = [PAD, END, UNKNOWN, *MARKUP, *"=,+-*/()\n", *map(str, range(LARGEST_TARGET + 1))]
    tokenizer = Tokenizer(WordLevel({token: place for place, token in enumerate(known)}, unk_token=UNKNOWN))
    pieces = "|".join([*map(re.escape, MARKUP), r"\d+", r"[\s\S]"])
    tokenizer.pre_tokenizer = Split(Regex(pieces), behavior="isolated")
    tokenizer.decoder = Fuse()
    ends = {"eos_token": END, "pad_token": PAD, "unk_token": UNKNOWN}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, padding_side="left", clean_up_tokenization_spaces=False, model_max_length=64, **ends
    )


def verdict(problem: Problem, completion_text: str) -> UserVerdict:
    """`correct` if the expression uses each number once and makes the target."""
    return equation(problem, f"solution = {completion_text}")


def gold(problem: Problem, completion_text: str) -> bool:
    return verdict(problem, completion_text) == "correct"


def countdown_problems(split: str, seed: int) -> Iterator[dict[str, Any]]:
    """Problems of two and of three numbers in turn, without end. None is in both splits."""
    random = Random(f"countdown {split} {seed}")
    for count in cycle((2, 3)):
        numbers, solution, target = _expression(random, count)
        question = f"{target}={','.join(map(str, random.sample(numbers, count)))}"
        known = " ".join(map(str, [*sorted(numbers), target]))
        if (Random(known).random() < 0.1) == (split == "test"):
            row = {"question": question, "answer": solution, "solution": solution}
            yield row | {"numbers": numbers, "target": target, "graded": random.random() < GRADED}


def _expression(random: Random, count: int) -> tuple[list[int], str, int]:
    """Numbers, an expression of all of them, and its value, which is a whole number from 1 to `LARGEST_TARGET`."""
    while True:
        numbers = [random.randint(1, LARGEST_NUMBER) for _ in range(count)]
        text, value, last = str(numbers[0]), Fraction(numbers[0]), ""
        for number in numbers[1:]:
            operator = random.choice("+-*/")
            if operator in "*/" and last and last in "+-":
                text = f"({text})"
            text, last = f"{text}{operator}{number}", operator
            value = {"+": value + number, "-": value - number, "*": value * number, "/": value / number}[operator]
        if value.denominator == 1 and 1 <= value <= LARGEST_TARGET:
            return numbers, text, int(value)


def _slip(solution: str, random: Random) -> str:
    """The solution with one token changed, or left out."""
    tokens = re.findall(r"\d+|.", solution)
    place = random.randrange(len(tokens))
    others = list(map(str, range(1, LARGEST_NUMBER + 1))) if tokens[place].isdigit() else list("+-*/")
    return "".join([*tokens[:place], random.choice(["", *others]), *tokens[place + 1 :]])


def problem_of(row: Mapping[str, Any]) -> Problem:
    metadata = {name: row[name] for name in ("numbers", "target", "graded")}
    return Problem(row["question"], row["question"], row["answer"], row["solution"], metadata=metadata)


def warm_up(rows: Sequence[Mapping[str, Any]], seed: int) -> Any:
    """The start policy: taught Countdown, with slips."""
    torch.manual_seed(seed)
    tokenizer = number_tokenizer()
    model = LlamaForCausalLM(small_llama(WIDTH, LAYERS, tokenizer))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01, betas=(0.9, 0.95))
    random = Random(f"warm-up {seed}")
    for update in range(POLICY_UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * learning_rate_share(update, POLICY_UPDATES)
        picked = [
            (problem_of(row), _slip(row["solution"], random) if random.random() < SLIPS else row["solution"])
            for row in random.sample(list(rows), 64)
        ]
        tokens, labels = padded([tokens_and_labels(*row, tokenizer) for row in picked], tokenizer)
        loss = model(input_ids=tokens, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if update % 100 == 99:
            print(f"policy: update {update + 1}, loss {loss.item():.3f}", flush=True)
    return model.eval()


def prepare(out: Path, seed: int) -> None:
    """Problems, start policy and reward model in `out`."""
    stream = countdown_problems("train", seed)
    shown, labelled, training = (list(islice(stream, count)) for count in (WARM_UP, LABELLED, TRAINING))
    test = list(islice(countdown_problems("test", seed), TEST))
    for name, some in (("train", training), ("test", test)):
        rows = {row["question"]: row for row in some}.values()
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    if not (out / "policy").exists():
        model = warm_up(shown, seed)
        model.save_pretrained(out / "policy.partial")
        number_tokenizer().save_pretrained(out / "policy.partial")
        (out / "policy.partial").rename(out / "policy")
    if not (out / "reward_model").exists():
        train_reward_model(out, [problem_of(row) for row in labelled], seed)


def train_reward_model(out: Path, problems: Sequence[Problem], seed: int) -> None:
    """A head on the start policy, taught gold's labels of the policy's own completions, of solutions and of slips."""
    policy, tokenizer = load_policy(str(out / "policy")), number_tokenizer()
    texts = draw(policy, tokenizer, problems, n=4, seed=seed)
    rows = [
        LabelledCompletion(problem.question, problem.answer, text, float(gold(problem, text)))
        for problem, of_problem in zip(problems, texts, strict=True)
        for text in dict.fromkeys(of_problem)
    ]
    held_out, taught = rows[:400], rows[400:]
    random = Random(f"reward model {seed}")
    for problem in problems[len(problems) // 5 :]:
        for text in (problem.answer, _slip(problem.answer, random)):
            taught.append(LabelledCompletion(problem.question, problem.answer, text, float(gold(problem, text))))
    random.shuffle(taught)
    learner, encoder = twin_learner("head", out / "policy", seed, REWARD_MODEL_UPDATES, 2e-3, LONGEST)
    teach(learner, encoder, taught, Random(f"order {seed}"), language_updates=300)
    logits = learner.score(encoder.encode_all([(row.question, row.answer, row.completion) for row in held_out]))
    auc = roc_auc(logits, torch.tensor([row.label for row in held_out]))
    print(f"reward model: {len(rows)} completions, {mean(row.label for row in rows):.3f} right, ROC-AUC {auc:.3f}")
    learner.model.save_pretrained(out / "reward_model.partial")
    tokenizer.save_pretrained(out / "reward_model.partial")
    (out / "reward_model.partial").rename(out / "reward_model")


SETTINGS: dict[str, Any] = {
    "steps": 40,
    "problems_per_step": 8,
    "threads": 1,
    "policy": {"learning_rate": 1e-3, "warmup_steps": 2},
    "reward_model": {"learning_rate": 6e-4, "warmup_steps": 2, "max_input_tokens": LONGEST},
    "rollout": {"n": 8, "max_tokens": 16},
    "algorithm": {"kl": None},
    "evaluation": {"every": 20, "k": 1, "temperature": 1.0, "top_p": 1.0, "batch_size": 256},
    "checkpoint": {"every": 0},
    "monitor": None,
}
"""As in real_model/countdown.yaml, but for the learning rates, which are those of the embedded world."""
PAIRS = [{"kind": "on_policy", "unread": ["cut_off", "keeps_score"]}, {"kind": "swapped_reference"}]
STAGE_2 = {"cooptimization": {"pairs": PAIRS, "replay": {"pairs_per_step": 8}}}
VERDICT = "benchmarks.arithmetic.small_countdown:verdict"
QUARTER = {"policy": {"learning_rate": 2.5e-4}}
COOPER = merge({"kind": "cooper", "cooptimization": {"positives": ["rollout"]}}, STAGE_2)
ARMS: dict[str, dict[str, Any]] = {
    "graded": {"kind": "rule"},
    "static": {"kind": "static"},
    "cooper": COOPER,
    "cooper_solutions": merge({"kind": "cooper"}, STAGE_2),
    # One change each.
    "cooper_kl": merge(COOPER, {"algorithm": {"kl": {"coefficient": 0.05}}}),
    "cooper_accepted": merge(COOPER, {"shaping": [{"kind": "benchmarks.arithmetic.small_countdown:AcceptedGroups"}]}),
    "cooper_frozen": {
        "kind": "static",
        "rewards": [{"kind": "earned"}],
        "algorithm": {"advantages": {"kind": "grpo", "std_floor": 0.2}},
    },
    "cooper_quarter": merge(COOPER, QUARTER),
    "graded_quarter": merge({"kind": "rule"}, QUARTER),
    "cooper_batch": merge(COOPER, {"problems_per_step": 32}),
    "graded_batch": {"kind": "rule", "problems_per_step": 32},
    "judged": {"kind": "rule", "rule": {"kind": VERDICT}},
}


class AcceptedGroups(ShapingConfig):
    """No opinion on a group of which neither the rule nor the reward model accepts an answer: the order of answers that
    are all rejected is the reward model's noise."""

    def shape(self, rewards: Ragged, context: StepContext) -> Ragged:
        accepted = (context.logits.flat > 0) | (context.correct.flat == 1)
        of_group = rewards.like(accepted.to(rewards.flat.dtype)).amax() > 0
        return rewards.like(rewards.flat.where(rewards.expand(of_group), math.nan))


def settings_of(out: Path, arm: str, seed: int) -> dict[str, Any]:
    """The settings of one run. Its problems are those of `prepare`."""
    module = f"benchmarks.{Path(__file__).stem}"
    rule = {"kind": "partial", "rule": {"kind": f"{module}:verdict"}, "only": {"graded": [True]}}
    problems = {"gold": f"{module}:gold", "prompt": {"chat": False, "template": "{question}\n"}}
    run: dict[str, Any] = {"name": f"{arm}-{seed}", "output_dir": str(out / "runs"), "seed": seed, "rule": rule}
    run |= {part: {"model": str(out / part)} for part in ("policy", "reward_model")}
    sources = {"problems": "train", "test_problems": "test"}
    run |= {name: {"source": str(out / f"{file}.jsonl"), **problems} for name, file in sources.items()}
    run["problems"]["solution"] = "solution"
    return merge(merge(run, SETTINGS), ARMS[arm])


def train(settings: Mapping[str, Any]) -> None:
    """One run, unless it is finished. Writes its CPU seconds into the file `finished`."""
    folder = Path(settings["output_dir"]) / settings["name"]
    if (folder / "finished").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    start = time.process_time()
    with CooperTrainer.from_config(build_config(dict(settings))) as trainer:
        trainer.fit()
    (folder / "finished").write_text(f"{time.process_time() - start:.0f}\n", encoding="utf-8")


def table(runs: Sequence[RunRecord]) -> None:
    """By tens of steps, what the completions are like; and gold on the test problems at every evaluation."""
    print("| run | gold, by tens of steps | numbers not as given | trust | gold on test problems |")
    print("|---" * 5 + "|")
    for run in runs:
        columns: list[list[float]] = [[], [], []]
        for first in range(1, run.step + 1, 10):
            steps = range(first, first + 10)
            rows = list(run.rollouts(steps))
            trust = [weight for step, weight in run.series("earned/weight") if step in steps]
            columns[0].append(mean(row["gold"] for row in rows))
            columns[1].append(mean(not uses_the_numbers(row["question"], row["text"]) for row in rows))
            columns[2] += [mean(trust)] if trust else []
        columns.append([gold for _, gold in run.series("test/gold_avg")])
        cells = [", ".join(f"{value:.2f}" for value in column) or "–" for column in columns]
        print(f"| {run.directory.name} | {' | '.join(cells)} |")


def uses_the_numbers(question: str, completion_text: str) -> bool:
    """Whether the completion has each number of the question once and no other, whatever it makes of them."""
    given = question.partition("=")[2].split(",")
    return sorted(re.findall(r"\d+", completion_text)) == sorted(given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=[])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    if not (given.out / "reward_model").exists():
        prepare(given.out, 0)
    for seed in given.seeds:
        for arm in given.arms:
            train(settings_of(given.out, arm, seed))
    table([read_record(path.parent) for path in sorted((given.out / "runs").glob("*/finished"))])


if __name__ == "__main__":
    main()
