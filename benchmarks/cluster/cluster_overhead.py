"""What the driver itself costs: real rollouts, rewards, pairs and record around an engine that computes nothing.

    python -m benchmarks.cluster.cluster_overhead driver models/SmolLM2-135M
    python -m benchmarks.cluster.cluster_overhead step models/SmolLM2-135M

`driver` gives the driver's seconds a step at 64, 512 and 4,096 completions of 1,024 tokens. `step` has the engine sleep
a tenth of what the parts of a step of 2,048 completions take on paper. The folder gives a tokenizer and the shape of
both models; its weights are not read.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from benchmarks.cluster.fake_engine import DRAWN, SPANS, FakeEngine, Parts, Span
from benchmarks.speed.measure import cpu_seconds

from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.local.models import load_tokenizer

PAPER = {
    "8 devices, all shared, lag 0": (0, Parts(38, 3, 12, 43, 4, 2), False),
    "8 devices, 5 learn and 3 sample, lag 0": (0, Parts(101, 5, 20, 69, 6, 2), False),
    "8 devices, 5 learn and 3 sample, lag 1": (1, Parts(101, 5, 20, 69, 6, 2), False),
    "64 devices, 8 of them the reward model's, lag 0": (0, Parts(100, 13, 29, 102, 17, 18), True),
    "64 devices, 8 of them the reward model's, lag 1": (1, Parts(100, 13, 29, 102, 17, 18), True),
}
"""Lag, seconds of the parts by published rates, and whether the reward model has devices of its own."""
TOKENS = 1024
COMPLETIONS_A_PROBLEM = 8
STEPS = 4
SENTENCES = (
    "We add {} and {} to get {}. ",
    "Then {} times {} is {}, so we carry the {}. ",
    "Let x = {}; then 2x + {} = {}. ",
    "Since {} is less than {}, the remainder is {}. ",
)


def text_of(random: Random, answer: str, tokens: int) -> str:
    """Worked arithmetic of about so many tokens, with an answer in a box at its end."""
    parts: list[str] = []
    while sum(map(len, parts)) < 1.85 * tokens:
        sentence = random.choice(SENTENCES)
        parts.append(sentence.format(*(random.randrange(1000) for _ in range(sentence.count("{}")))))
    return "".join(parts) + f"The answer is \\boxed{{{answer}}}."


@dataclass(frozen=True)
class Step:
    """One step: when it began and ended, the driver's CPU seconds, the engine's calls, and the recorded metrics."""

    begin: float
    end: float
    cpu: float
    spans: list[Span]
    metrics: dict[str, float]

    @property
    def wall(self) -> float:
        return self.end - self.begin

    @property
    def waits(self) -> float:
        """Seconds that the reward model's devices work after the policy's update has ended."""
        begin = max(span.end for span in self.spans if span.name == "update policy")
        late = [span for span in self.spans if span.name in ("score", "update reward model") and span.end > begin]
        return sum(span.end - max(span.begin, begin) for span in late)


def prepare(settings: dict[str, Any]) -> None:
    """Fill DRAWN for the steps of a run. A third of the answers is wrong."""
    DRAWN.clear()
    random, tokenizer = Random(0), load_tokenizer(settings["policy"]["model"])
    for problem in arithmetic_problems("train", settings["problems"]["limit"]):
        answers = [problem.answer if i % 3 else str(i) for i in range(settings["rollout"]["n"])]
        prompt = tokenizer.encode(problem.question + "\n")
        texts = [text_of(random, answer, TOKENS) for answer in answers]
        DRAWN[tuple(prompt)] = [(np.full(TOKENS, random.randrange(100), np.int32), text) for text in texts]


def stand_ins(folder: Path, model: Path) -> dict[str, str]:
    """Folders of a policy and a reward model with this model's shape and tokenizer, and no weights."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    backbone = config["architectures"][0].partition("For")[0]
    for name, head in (("policy", "ForCausalLM"), ("reward_model", "ForSequenceClassification")):
        (folder / name).mkdir()
        for file in (*model.glob("*token*"), *model.glob("vocab*"), *model.glob("merges*")):
            shutil.copy(file, folder / name)
        told = config | {"architectures": [backbone + head], "num_labels": 1}
        (folder / name / "config.json").write_text(json.dumps(told), encoding="utf-8")
        (folder / name / "model.safetensors").touch()
    return {name: str(folder / name) for name in ("policy", "reward_model")}


def settings_of(
    folder: Path, model: Path, engine: FakeEngine, completions: int, lag: int, steps: int
) -> dict[str, Any]:
    models = stand_ins(folder, model)
    problems = completions // COMPLETIONS_A_PROBLEM
    return {
        "name": "run",
        "output_dir": str(folder),
        "kind": "cooper_light",
        "steps": steps,
        "problems_per_step": problems,
        "policy": {"model": models["policy"]},
        "reward_model": {"model": models["reward_model"], "max_input_tokens": 2048},
        "problems": {"source": "arithmetic", "limit": steps * problems, "prompt": {"template": "{question}\n"}},
        "rollout": {"n": COMPLETIONS_A_PROBLEM, "max_tokens": TOKENS, "lag": lag},
        "evaluation": {"every": 0},
        "algorithm": {
            "kl": None,
            "recompute_old_logprobs": True,
            "loss": {"kind": "ppo_clip", "truncated_importance_sampling": 2.0},
        },
        "cooptimization": {
            "assistant": {"kind": "corrupter", "function": "benchmarks.cluster.fake_engine:wrong_answer"}
        },
        "engine": engine,
    }


def run(settings: dict[str, Any]) -> list[Step]:
    """The steps of a run. The first one, which warms up, and the last one, which draws nothing ahead, are left out."""
    steps: list[Step] = []
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        last = [time.monotonic(), cpu_seconds()]

        def note(step: int, metrics: dict[str, float]) -> None:
            begin, (end, cpu) = last[0], (time.monotonic(), cpu_seconds() - last[1])
            spans = [span for span in SPANS if begin < span.end <= end]
            steps.append(Step(begin, end, cpu - sum(span.cpu for span in spans), spans, metrics))
            last[:] = [time.monotonic(), cpu_seconds()]

        trainer.fit(note)
    return steps[1:-1]


def driver(model: Path, sizes: list[int], ranks: int) -> None:
    """Print the driver's seconds a step; the engine answers at once."""
    names = ("reward", "update_reward_model", "verify", "update_policy", "sample", "probe")
    print(f"| completions | CPU s | wall s | of these {', '.join(names)} |\n|---|---|---|---|")
    for completions in sizes:
        with tempfile.TemporaryDirectory() as folder:
            settings = settings_of(Path(folder), model, FakeEngine(ranks=ranks), completions, 0, STEPS)
            prepare(settings)
            steps = run(settings)
        parts = [statistics.median(step.metrics[f"time/{name}"] for step in steps) for name in names]
        told = ", ".join(f"{seconds:.2f}" for seconds in parts)
        cpu, wall = (statistics.median(values) for values in ([s.cpu for s in steps], [s.wall for s in steps]))
        print(f"| {completions:,} | {cpu:.2f} | {wall:.2f} | {told} |", flush=True)


def simulated(model: Path, scale: float) -> None:
    """Print steps whose parts take 1/`scale` of the seconds on paper, multiplied by `scale` again.

    `driver` is the driver's CPU time, whose share of the step counts; it is not scaled, because its work is not.
    """
    print("| layout | parts alone, s | step, s | driver, CPU s | share | policy waits for the reward model, s |")
    print("|---|---|---|---|---|---|")
    for name, (lag, parts, side_by_side) in PAPER.items():
        engine = FakeEngine(parts=parts.scaled(1 / scale), completions=2048, side_by_side=side_by_side)
        with tempfile.TemporaryDirectory() as folder:
            settings = settings_of(Path(folder), model, engine, 2048, lag, STEPS)
            prepare(settings)
            steps = run(settings)
        alone = parts.alone(lag, side_by_side)
        cpu = statistics.median(step.cpu for step in steps)
        wall = statistics.median(step.wall for step in steps)
        waits = statistics.median(step.waits for step in steps) * scale
        step_s, share = alone + wall - alone / scale, cpu / (alone + cpu)
        print(f"| {name} | {alone:.0f} | {step_s:.0f} | {cpu:.1f} | {share:.1%} | {waits:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["driver", "step"])
    parser.add_argument("model", type=Path, help="a model folder; its weights are not read")
    parser.add_argument("--completions", type=int, nargs="+", default=[64, 512, 4096])
    parser.add_argument("--ranks", type=int, default=0, help="processes of Ray that get every call's arguments")
    parser.add_argument("--scale", type=float, default=10, help="`step` sleeps 1/SCALE of the time on paper")
    options = parser.parse_args()
    if options.what == "driver":
        driver(options.model, options.completions, options.ranks)
    else:
        simulated(options.model, options.scale)


if __name__ == "__main__":
    main()
