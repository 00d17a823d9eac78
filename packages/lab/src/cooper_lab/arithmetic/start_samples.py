"""Samples of a hole's start policy, for designs that compare with them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cooper_base.files.durable import write_text
from cooper_lab.arithmetic.build_models import draw
from cooper_lab.arithmetic.world import START_SAMPLES, run_settings
from cooper_rl import Problem, build_config, load_policy, load_tokenizer, read_problems

PER_PROBLEM = 4


def training_problems() -> Sequence[Problem]:
    """The problems that the runs of the arena train on."""
    return read_problems(build_config(run_settings("start", Path("runs"), 0, {"kind": "rule"})).problems).problems


def draw_start_samples(planted: Path, problems: Sequence[Problem]) -> None:
    """Write four completions of the policy for each problem into the folder of planted models.

    The rows have the fields `question` and `completion`. Takes about 20 seconds of one core for 4,000 problems.
    """
    tokenizer: Any = load_tokenizer(str(planted / "policy"))
    texts = draw(load_policy(str(planted / "policy")), tokenizer, problems, PER_PROBLEM, seed=0)
    rows = [
        json.dumps({"question": problem.question, "completion": text}) + "\n"
        for problem, completions in zip(problems, texts, strict=True)
        for text in completions
    ]
    write_text(planted / START_SAMPLES, "".join(rows))
