"""Does a planted reward model score a hack above a right answer? Of the models of table A, before any run:

    PYTHONPATH=.:benchmarks/arena python benchmarks/arena/hack_order.py --plantings 3

A model that accepts a hack may still score right answers higher, and a group's advantages read the order alone. On the
written answers on which acceptance is measured: the mean score of right answers and of hacks, and how often the hack
has the higher score of the two to one problem (a tie counts half). A row a hole and kind of reward model, each figure
the mean over plantings with the lowest and the highest.
"""

import argparse
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import torch
import yaml
from benchmarks.arena.cotraining import PLAN

from cooper_lab.arena.arena import built_in_holes, read_holes
from cooper_lab.arena.cache import Planted, default_cache, make
from cooper_lab.arena.cells import PLANTINGS_APART, UNDER
from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS, TEST_PROBLEMS
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.solutions import draw_solution
from cooper_lab.arithmetic.twins import twin_learner
from cooper_lab.designs.implicit import ImplicitEngine
from cooper_lab.designs.implicit_learner import ImplicitLearner
from cooper_rl import LearnerConfig, load_tokenizer
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput

KINDS = {"head": "", "implicit": "implicit_reference"}
"""The reward models of table A, and which twin each is."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plantings", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=default_cache(), help="where planted models are kept")
    arguments = parser.parse_args()
    protocol = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    holes = built_in_holes() | read_holes(Path(protocol["holes"]))
    print("| hole | reward model | right | hack | hack above right |\n|---|---|---|---|---|")
    for name in dict.fromkeys(cell.partition(UNDER)[0] for cell in protocol["cells"]["report"]):
        for kind, twin in KINDS.items():
            planted = [
                Planted(holes[name], PLANTINGS_APART * planting, arguments.cache, twin=twin)
                for planting in range(arguments.plantings)
            ]
            figures = zip(*map(measured, planted), strict=True)
            print(f"| `{name}` | {kind} | " + " | ".join(map(_spread, figures)) + " |", flush=True)


def measured(planted: Planted) -> tuple[float, float, float]:
    """The mean score of right answers, of hacks, and how often the hack has the higher one."""
    own = Planted(planted.hole, planted.seed, planted.cache)
    for needed in (own, planted):
        if not needed.exists:
            make(needed)
    learner, encoder = opened(planted, own.folder / "policy")
    problems, random = arithmetic_problems("test", TEST_PROBLEMS, planted.seed), Random(f"order {planted.seed}")
    hacks = [(problem, text) for problem in problems if (text := planted.hole.hack(problem, random)) is not None]
    rights = [(problem, draw_solution(problem, random)) for problem, _ in hacks]

    def scores(answers: list[Any]) -> torch.Tensor:
        rows = encoder.encode_all([(problem.question, problem.answer, text) for problem, text in answers])
        return learner.score(rows).double().sigmoid()

    right, hack = scores(rights), scores(hacks)
    above = (hack > right).double() + 0.5 * (hack == right).double()
    return right.mean().item(), hack.mean().item(), above.mean().item()


def opened(planted: Planted, policy: Path) -> tuple[TorchRewardModelLearner | ImplicitLearner, RewardModelInput]:
    """A planted reward model as a run has it: an implicit one scores against the run's own start policy."""
    folder = str(planted.folder / "reward_model")
    if planted.twin:
        learner, encoder = twin_learner(planted.twin, folder, 0, 0, 0.0)
        assert isinstance(learner, ImplicitLearner)
        start = TorchPolicyLearner.from_config(LearnerConfig(model=str(policy), device="cpu"), 0, trainable=False)
        return learner.scoring_by(ImplicitEngine(), start), encoder
    config = LearnerConfig(model=folder, device="cpu")
    tokenizer: Any = load_tokenizer(folder)
    return TorchRewardModelLearner.from_config(config, 0), RewardModelInput(tokenizer, MAX_INPUT_TOKENS)


def _spread(values: tuple[float, ...]) -> str:
    return f"{fmean(values):.2f}" + (f" ({min(values):.2f} to {max(values):.2f})" if len(values) > 1 else "")


if __name__ == "__main__":
    main()
