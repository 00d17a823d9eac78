"""The demo's arms, trained by TRL's GRPOTrainer instead of Cooper's own loop.

    python benchmarks/trainers/trl_arms.py --seeds 0 1 2 --output-dir runs/trl-arms
    python benchmarks/trainers/trl_arms.py --output-dir runs/trl-arms --draw picture.png --own runs/demo-0 runs/demo-1

Arms: `rule`, `static` reward model, `cooper` in TRL's process, `service`: the same over HTTP from `cooper serve`. All
of them go through `cooper_rl.adapters.trl`, with the settings of `cooper_lab/arithmetic/arithmetic.yaml` as far as TRL
has them. Gold accuracy is a second reward function of weight 0. Each cell is a process of its own and writes one JSON
line a step, and what it used of the processor to its output; cells that are finished are skipped. `--draw` makes the
picture, and prints the table, of what is there.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from cooper_lab.arithmetic.world import run_settings

ARMS = {"rule": "rule", "static": "static", "cooper": "cooper_light", "service": "cooper_light"}
"""Arm, and the kind of its reward."""
STEPS, PROBLEMS, GROUP, TEST_PROBLEMS, TEST_SAMPLES = 40, 32, 8, 128, 2
PORT = 8377
LABELS = {"rule": "rule", "static": "static reward model", "cooper": "Cooper", "service": "Cooper over HTTP"}
COLOURS = {"rule": "#6b7280", "static": "#d9480f", "cooper": "#2b8a3e", "service": "#1c7ed6"}
DASHES = {"service": "--"}
TRL_KEYS = ("eval_rewards/gold_accuracy/mean", "rewards/cooper/mean")
OWN_KEYS = ("test/gold_avg", "reward/mean")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--output-dir", type=Path, default=Path("runs/trl-arms"))
    parser.add_argument("--draw", type=Path, help="draw what is there into this file instead of running")
    parser.add_argument("--own", nargs="*", type=Path, default=[], help="folders of `cooper demo`, to draw beside")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.draw:
        draw(given.output_dir, given.draw, given.own)
    elif given.cell:
        arm, seed = given.cell.split("-")
        run(arm, int(seed), given.steps, given.output_dir)
    else:
        for cell in [f"{arm}-{seed}" for seed in given.seeds for arm in given.arms]:
            if not (given.output_dir / f"{cell}.jsonl").exists():
                options = ["--cell", cell, "--steps", str(given.steps), "--output-dir", str(given.output_dir)]
                subprocess.run([sys.executable, __file__, *options], check=True)


def run(arm: str, seed: int, steps: int, output_dir: Path) -> None:
    """Train one arm on one seed."""
    import torch
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportPrivateImportUsage]

    from cooper_lab.arithmetic.arms import ASSETS
    from cooper_lab.arithmetic.problems import arithmetic_problems, gold
    from cooper_rl.adapters.rows import Columns

    torch.set_num_threads(1)
    output_dir.mkdir(parents=True, exist_ok=True)
    settings = run_settings(arm, output_dir, seed, {"kind": ARMS[arm]})

    def data_set(split: Any, count: int) -> Dataset:
        problems = arithmetic_problems(split, count)
        rows = [vars(p) | {"prompt": f"{p.question}\n", "metadata": json.dumps(p.metadata)} for p in problems]
        return Dataset.from_list(rows)

    def gold_accuracy(completions: list[str], **columns: Any) -> list[float]:
        rows = [
            {name: columns[name][i] for name in ("question", "answer", "metadata")} for i in range(len(completions))
        ]
        return [float(gold(Columns().problem(row), text)) for row, text in zip(rows, completions, strict=True)]

    args = GRPOConfig(
        output_dir=str(output_dir / f"{arm}-{seed}"),
        seed=seed,
        max_steps=steps,
        per_device_train_batch_size=PROBLEMS * GROUP,
        per_device_eval_batch_size=TEST_PROBLEMS * TEST_SAMPLES,
        num_generations=GROUP,
        num_generations_eval=TEST_SAMPLES,
        max_completion_length=settings["rollout"]["max_tokens"],
        learning_rate=settings["policy"]["learning_rate"],
        weight_decay=0.01,
        lr_scheduler_type="constant",
        max_grad_norm=1.0,
        beta=0.001,
        loss_type="dapo",
        reward_weights=[1.0, 0.0],
        eval_strategy="steps",
        eval_steps=settings["evaluation"]["every"],
        eval_on_start=True,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    with reward_of(arm, settings | {"steps": steps}) as reward:
        trainer = GRPOTrainer(
            model=str(ASSETS / "policy"),
            reward_funcs=[reward, gold_accuracy],  # pyright: ignore[reportArgumentType] - TRL takes both
            callbacks=[reward.callback],
            args=args,
            train_dataset=data_set("train", settings["problems"]["limit"]),
            eval_dataset=data_set("test", TEST_PROBLEMS),
            processing_class=AutoTokenizer.from_pretrained(ASSETS / "policy"),
        )
        before = processor_seconds()
        trainer.train()
        used = [after - start for after, start in zip(processor_seconds(), before, strict=True)]
        print(f"{arm}-{seed}: processor seconds of training: trainer {used[0]:.1f}, its other processes {used[1]:.1f}")
    rows: dict[float, dict[str, Any]] = {}
    for row in trainer.state.log_history:
        rows.setdefault(row["step"], {"step": row["step"]}).update(row)
    target = output_dir / f"{arm}-{seed}.jsonl"
    part = target.with_suffix(".part")
    part.write_text("".join(json.dumps(row) + "\n" for row in rows.values()), encoding="utf-8")
    part.rename(target)


def processor_seconds() -> tuple[float, float]:
    """Used so far by this process, and by those it has started."""
    import psutil

    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    seconds = [one.user + one.system for one in times]
    return seconds[0], sum(seconds[1:])


@contextmanager
def reward_of(arm: str, settings: dict[str, Any]) -> Iterator[Any]:
    """The reward of an arm: here, or in a server that lives as long as the run."""
    from cooper_rl.adapters.trl import GRPOReward
    from cooper_rl.reward.cooper_reward import CooperReward
    from cooper_rl.run_config import build_config

    if arm == "service":
        with served(settings) as client:
            yield GRPOReward(client)
    else:
        with CooperReward.from_config(build_config(settings)) as reward:
            yield GRPOReward(reward)


@contextmanager
def served(settings: dict[str, Any]) -> Iterator[Any]:
    """A client of `cooper serve` with the reward of these settings."""
    from cooper_rl.service.client import RewardClient

    kept = ("kind", "seed", "reward_model", "cooptimization", "threads")
    with TemporaryDirectory() as folder:
        serve = {"port": PORT, "folder": folder, "batch_rows": 0}
        file = Path(folder) / "serve.yaml"
        file.write_text(yaml.safe_dump({name: settings[name] for name in kept} | {"serve": serve}), encoding="utf-8")
        start = "from cooper_base.cli.main import app; app()"
        server = subprocess.Popen([sys.executable, "-c", start, "serve", str(file)])
        try:
            with RewardClient(f"http://127.0.0.1:{PORT}") as client:
                client.info()  # waits until the server has started
                yield client
        finally:
            server.terminate()
            server.wait()


def draw(output_dir: Path, picture: Path, own: Sequence[Path]) -> None:
    """Print the table, and draw held-out gold accuracy and reward: mean of the seeds, TRL above, our own loop below."""
    from matplotlib.figure import Figure

    rows = [("TRL", {arm: _cells(output_dir.glob(f"{arm}-*.jsonl"), TRL_KEYS) for arm in ARMS})]
    if own:
        arms = ("rule", "static", "cooper")
        rows.append(
            ("Cooper's own loop", {arm: _cells([d / arm / "metrics.jsonl" for d in own], OWN_KEYS) for arm in arms})
        )
    figure = Figure(figsize=(10, 3.6 * len(rows)), layout="constrained")
    for (trainer, cells), pair in zip(rows, figure.subplots(len(rows), 2, squeeze=False), strict=True):
        for arm, runs in cells.items():
            for axes, curves in zip(pair, zip(*runs, strict=True), strict=False):
                steps = sorted(curves[0])
                means = [mean(curve[step] for curve in curves) for step in steps]
                axes.plot(steps, means, label=LABELS[arm], color=COLOURS[arm], linestyle=DASHES.get(arm, "-"))
            for seed, (gold, reward) in enumerate(runs):
                ends = [gold[0], gold[max(gold)], max(gold.values()), reward[min(reward)], reward[max(reward)]]
                print(f"| {trainer} | {arm} | {seed} | " + " | ".join(f"{value:.3f}" for value in ends) + " |")
        for axes, title in zip(pair, ("gold accuracy on test problems", "training reward"), strict=True):
            axes.set(title=f"{trainer}: {title}", xlabel="step", ylim=(0, 1))
            axes.grid(alpha=0.25)
        pair[0].legend(frameon=False, fontsize=8)
    figure.savefig(picture, dpi=130)


def _cells(files: Iterable[Path], keys: tuple[str, str]) -> list[list[dict[int, float]]]:
    """Of every run, gold accuracy by step and reward by step."""
    found = []
    for file in sorted(files):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        found.append([{row["step"]: row[key] for row in rows if key in row} for key in keys])
    return found


if __name__ == "__main__":
    main()
