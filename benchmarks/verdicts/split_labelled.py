"""Draws a training and a test file from labelled completions, evenly over models and data sets. No problem is in both.

    python benchmarks/verdicts/split_labelled.py real_completions.parquet MODEL_FOLDER OUT_DIR --train 2000 --test 800

The tokenizer of `MODEL_FOLDER` measures the inputs; those longer than `--max-tokens` are left out.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

from cooper_base.data.labelled import problem_folds
from cooper_base.data.readers import read_file
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.reward_input import RewardModelInput


def draw_evenly(rows: list[dict[str, Any]], count: int, random: Random) -> list[dict[str, Any]]:
    """Draw `count` rows as evenly as possible over the pairs of data set and model."""
    groups = defaultdict(list)
    for row in rows:
        groups[row["dataset"], row["model"]].append(row)
    drawn: list[dict[str, Any]] = []
    for number, group in enumerate(sorted(groups.values(), key=len)):
        share = (count - len(drawn)) // (len(groups) - number)
        drawn += random.sample(group, min(share, len(group)))
    random.shuffle(drawn)
    return drawn


def fitting_rows(path: Path, tokenizer: str, max_tokens: int) -> list[dict[str, Any]]:
    """The rows with a reference answer whose input has at most `max_tokens` tokens. Prints how many there are."""
    encoder = RewardModelInput(load_tokenizer(tokenizer), 1 << 20)
    rows = [row.fields for row in read_file(path) if row.fields["reference_answer"].strip()]
    fitting = [
        row
        for row in rows
        if len(row["question"] + row["completion"]) < 8 * max_tokens
        and len(encoder.encode(row["question"], row["reference_answer"], row["completion"])) <= max_tokens
    ]
    print(f"{len(fitting)} of {len(rows)} rows have at most {max_tokens} tokens")
    return fitting


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("tokenizer")
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=800)
    parser.add_argument("--max-tokens", type=int, default=320)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    fitting = fitting_rows(options.data, options.tokenizer, options.max_tokens)
    folds = problem_folds([row["question"] for row in fitting], 4, options.seed)
    random = Random(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    for name, count, part in (("train", options.train, (1, 2, 3)), ("test", options.test, (0,))):
        inside = [row for row, fold in zip(fitting, folds, strict=True) if fold in part]
        drawn = draw_evenly(inside, count, random)
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in drawn]
        (options.out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        right = sum(row["label"] for row in drawn) / len(drawn)
        print(f"{name}: {len(drawn)} rows, {100 * right:.0f} % right")


if __name__ == "__main__":
    main()
