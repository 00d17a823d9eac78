"""What is run: fixed before the first reported run, and all of it is reported."""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PROBLEMS, GROUP, STEPS, LEARNING_RATE = 4, 8, 60, 4e-4
"""Prompts of a step, completions of a prompt, optimizer steps and the rate, for TRL and `retrain`."""
LARGER_LEARNING_RATE = 2e-5
"""Of the runs of SmolLM2-135M."""
ENDS = 10
"""Steps at either end of a run over which shares are taken."""


@dataclass(frozen=True)
class Reward:
    """A reward as people compose it: the sum of functions that packages ship, each by `package:name`."""

    name: str
    parts: tuple[str, ...]
    kind: str
    """What it can be paid for besides a right answer, as its source says."""


REWARDS = (
    Reward("substring", ("reward-doctor:substring_match",), "a list of answers"),
    Reward("subem", ("verl:search_r1 subem",), "a list of answers in the tag"),
    Reward("r1", ("atroposlib:r1_reward",), "a list of answers, tags of a thought"),
    Reward("steps", ("trl:accuracy_reward", "eval-protocol:reasoning_steps_reward"), "words and marks of steps"),
    Reward("length", ("trl:accuracy_reward", "eval-protocol:length_reward"), "fifty words"),
    Reward("cosine", ("trl:get_cosine_scaled_reward",), "length, where the answer is wrong"),
    Reward("think", ("trl:accuracy_reward", "trl:think_format_reward"), "tags of a thought"),
    Reward("accuracy", ("trl:accuracy_reward",), "nothing that is known"),
    Reward("last", ("reward-doctor:last_number",), "a denied last number"),
    Reward("gsm8k", ("verl:gsm8k",), "anything behind the number"),
    Reward("em", ("verl:search_r1 em",), "an answer without its sign"),
    Reward("robust", ("reward-doctor:robust_match",), "nothing that is known"),
    Reward("steps alone", ("eval-protocol:reasoning_steps_reward",), "words and marks of steps"),
    Reward("length alone", ("eval-protocol:length_reward",), "fifty words"),
    Reward("think alone", ("trl:think_format_reward",), "tags of a thought"),
)
SHORT = (
    *((reward.name, "trl", 0) for reward in REWARDS),
    ("substring", "trl", 1),
    *((name, "retrain", 0) for name in ("substring", "r1", "last", "steps", "robust")),
    ("substring", "retrain", 1),
)
"""(reward, trainer, seed) of each reported run of `STEPS` steps."""
LONG_STEPS, LONG_SEED = 100, 2
LONG = tuple((name, "trl", LONG_SEED) for name in ("subem", "r1", "last", "robust"))
"""Runs of `LONG_STEPS` steps: three rewards that pay a wrong answer in every problem, and one that the attack calls
sound. None of them was hacked whole in `STEPS`."""
LARGER = tuple(
    (name, "cooper", 0)
    for name in (
        *("substring", "subem", "robust", "r1", "length", "last", "accuracy", "em", "gsm8k", "cosine"),
        *("think", "steps"),
    )
)
"""Runs of SmolLM2-135M, on the rewards of the correlation, the first in this order first."""
RUNS = (*SHORT, *LONG, *LARGER)
"""All reported runs."""


def command(description: str | None, trainer: str, train: Callable[[Path, Path, str, int, int, Path], None]) -> None:
    """The command line of a trainer: the runs that are not finished, each in a folder REWARD-TRAINER-SEED.

    `train` takes that folder, the start policy, the reward's name, the seed, the steps and the environments.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("runs", nargs="+", help="REWARD:SEED")
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    for run in given.runs:
        name, _, seed = run.partition(":")
        folder = given.folder / f"{name}-{trainer}-{seed}"
        if not (done := folder / "finished.json").exists():
            train(folder, given.start, name, int(seed), given.steps, given.environments)
            done.write_text(json.dumps({"trainer": trainer, "steps": given.steps}), encoding="utf-8")
