"""Where the CPU seconds of a step in the demo's world go, by part; and how stage 2's grow.

    python benchmarks/speed/stage2_parts.py cooper
    python benchmarks/speed/stage2_parts.py cooper --width 384                # a reward model with random weights
    python benchmarks/speed/stage2_parts.py cooper --set cooptimization.epochs=1
    python benchmarks/speed/stage2_parts.py cooper --config benchmarks/real_model/silence.yaml \\
        --steps 1 --frozen 0 12 20
    python benchmarks/speed/stage2_parts.py growth

A part's seconds are those of this process and of the rule's, without those of parts inside it. `growth` updates a
reward model with random weights on random pairs, and fits exponents as growth.py does. `--frozen` makes the last
update again, with so many layers frozen (`frozen_layers`), in rising order.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import yaml

from cooper_base.config.base import merge
from cooper_lab.arithmetic.arms import arm_settings
from cooper_rl import CooperTrainer, build_config
from cooper_rl.engines.base import PairBatch
from cooper_rl.engines.config import LearnerConfig
from cooper_rl.engines.local.learner import freeze_layers
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.engines.losses.reward_model import PairwiseLoss
from cooper_rl.reward import cooper_reward, update
from cooper_rl.reward import health as signs
from cooper_rl.reward.cooptimization import Cooptimizer
from cooper_rl.reward.scored import ProbeSet
from cooper_verify.rules.verifier import Verifier
from growth import exponent
from workload import random_model, scratch

SIZES = {"pairs": (4, 16, 64, 256), "length": (16, 64, 256), "width": (96, 192, 384)}
BASE = {"pairs": 16, "length": 64, "width": 96}


class Parts:
    """CPU seconds by part."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._inside = ["everything else"]
        self._since = time.process_time()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        self._charge()
        self._inside.append(name)
        try:
            yield
        finally:
            self._charge()
            self._inside.pop()

    def _charge(self) -> None:
        now = time.process_time()
        self.seconds[self._inside[-1]] += now - self._since
        self._since = now

    def time(self, owner: Any, function: str, name: str | Callable[[str], str]) -> None:
        """Charge every call of `owner.function` to the part `name`, or to what `name` makes of the part around it."""
        original = getattr(owner, function)

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.part(name if isinstance(name, str) else name(self._inside[-1])):
                return original(*args, **kwargs)

        setattr(owner, function, timed)


def watch(parts: Parts, batches: list[Any]) -> None:
    """Time the parts of every step from now on. `batches` holds what the last update learned from, with its losses."""
    updated = [False]

    def scored_for(around: str) -> str:
        return ("pairs: scores after" if updated[0] else "pairs: scores before") if around == "pairs" else around

    forward_backward = TorchRewardModelLearner.forward_backward
    one_update, train = update._one_update, cooper_reward.CooperReward._train

    def noted(*args: Any, **kwargs: Any) -> Any:
        done = one_update(*args, **kwargs)
        updated[0] = True
        return done

    def begun(*args: Any, **kwargs: Any) -> Any:
        updated[0] = False
        batches.clear()
        return train(*args, **kwargs)

    def kept(learner: TorchRewardModelLearner, batch: Any, loss: Any) -> Any:
        batches.append((batch, loss))
        return forward_backward(learner, batch, loss)

    TorchRewardModelLearner.forward_backward = kept  # type: ignore[method-assign]
    update._one_update, cooper_reward.CooperReward._train = noted, begun  # type: ignore[method-assign]
    parts.time(NativeSampler, "sample", "sampling")
    parts.time(Verifier, "verify_problems", "verdicts, this process")
    parts.time(cooper_reward.CooperReward, "score", "scores of the answers")
    parts.time(cooper_reward.CooperReward, "update_and_rescore", "scores of the answers, again")
    parts.time(Cooptimizer, "start", "negatives and assistant")
    parts.time(Cooptimizer, "finish", "negatives and assistant")
    parts.time(Cooptimizer, "update", "pairs")
    parts.time(ProbeSet, "measure", "probes")
    parts.time(signs, "_kept", "swapped references")
    parts.time(TorchRewardModelLearner, "score", scored_for)
    parts.time(TorchRewardModelLearner, "forward_backward", "pairs: forward and backward")
    parts.time(TorchRewardModelLearner, "optim_step", "pairs: optimizer")
    parts.time(CooperTrainer, "step", "everything else")
    import cooper_rl.step

    parts.time(cooper_rl.step, "update_policy", "policy's update")


def reward_model(folder: Path, width: int) -> str:
    """The same random weights every time."""
    torch.manual_seed(0)
    return str(random_model(folder, width, "reward_model")[0])


def step_parts(options: argparse.Namespace) -> None:
    changes: dict[str, Any] = {"kind": options.kind, "evaluation": {"every": 0}, "threads": 1}
    if options.width:
        changes["reward_model"] = {"model": reward_model(scratch(), options.width)}
    for setting in options.set:
        key, _, value = setting.partition("=")
        *path, last = key.split(".")
        inside = changes
        for name in path:
            inside = inside.setdefault(name, {})
        inside[last] = yaml.safe_load(value)
    parts = Parts()
    if options.config:
        given = yaml.safe_load(options.config.read_text(encoding="utf-8"))
        run = {"checkpoint": {"every": 0}, "output_dir": str(scratch()), "seed": options.seed}
        settings = merge(given, run | changes)
    else:
        arm = options.kind if options.kind in ("static", "rule") else "cooper"
        settings = arm_settings(arm, scratch(), options.seed, changes)
    batches: list[Any] = []
    with CooperTrainer.from_config(build_config(settings)) as trainer:
        if options.steps > 1:
            trainer.step()
        trainer.parts.reward.verifier.metrics()
        watch(parts, batches)
        parts.seconds.clear()
        for _ in range(options.steps):
            trainer.step()
        rules = trainer.parts.reward.verifier.metrics().get("time/verify_cpu", 0.0)
        learner: Any = trainer.parts.reward.learning and trainer.parts.reward.learning.learner
    parts.seconds["verdicts, the rule's process"] = rules
    whole = sum(parts.seconds.values())
    print(f"{options.kind} {' '.join(options.set)}: {whole / options.steps:.3f} CPU s a step")
    for name, seconds in sorted(parts.seconds.items(), key=lambda part: -part[1]):
        print(f"| {name} | {seconds / options.steps:.3f} | {seconds / whole:.2f} |")
    last = list(batches)
    for layers in options.frozen:
        freeze_layers(learner.model, layers)
        print(f"{layers} frozen: {again(learner, last)}", flush=True)


def again(learner: TorchRewardModelLearner, batches: list[Any]) -> str:
    """CPU seconds of an update on these batches, and of what it is made of."""
    clock = [time.process_time()]
    for batch, _ in batches:
        learner.score(batch.inputs)
    clock.append(time.process_time())
    for batch, loss in batches:
        learner.forward_backward(batch, loss)
    clock.append(time.process_time())
    learner.optim_step()
    clock.append(time.process_time())
    spent = [after - before for before, after in pairwise(clock)]
    rows = sum(len(batch.weights) for batch, _ in batches)
    return "scores {:.2f}, passes {:.2f}, optimizer {:.2f} CPU s; {} rows".format(*spent, rows)


def growth(_: argparse.Namespace) -> None:
    folder, found = scratch(), {}
    for what, sizes in SIZES.items():
        found[what] = [{"size": size, "cpu": one_update(folder, **(BASE | {what: size}))} for size in sizes]
        shown = ", ".join(f"{point['size']}: {point['cpu']:.3f}" for point in found[what])
        print(f"{what}: {shown}; exponent {exponent(found[what], 'cpu'):.2f}", flush=True)
    print(json.dumps(found))


def one_update(folder: Path, pairs: int, length: int, width: int) -> float:
    """CPU seconds of scoring, an update and scoring again, the middle one of three."""
    settings = LearnerConfig(model=reward_model(folder, width), device="cpu")
    learner = TorchRewardModelLearner.from_config(settings, 10, True)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(5, 60, (2, pairs, length), generator=generator).tolist()
    batch, seconds = PairBatch(rows[0], rows[1], [1 / pairs] * pairs), []
    for _ in range(3):
        since = time.process_time()
        learner.score(rows[0] + rows[1])
        learner.forward_backward(batch, PairwiseLoss())
        learner.optim_step()
        learner.score(rows[0] + rows[1])
        seconds.append(time.process_time() - since)
    return sorted(seconds)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["cooper", "cooper_light", "paper", "static", "rule", "growth"])
    parser.add_argument("--width", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--frozen", type=int, nargs="*", default=[])
    parser.add_argument("--config", type=Path, help="another run than the demo's")
    options = parser.parse_args()
    (growth if options.kind == "growth" else step_parts)(options)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
