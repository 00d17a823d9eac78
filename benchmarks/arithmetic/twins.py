"""A head against a language model that is asked, from one start and the same rows, in the embedded world.

`python benchmarks/arithmetic/twins.py runs/twins --seed 0` trains both in seven minutes of one core (a folder that is
there is taken as it is) and prints accuracy and ROC-AUC against gold on samples for the test problems, and the share of
attacks that is accepted.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from cooper_audit.attack.wrong_answers import ATTACKS, attack_rows
from cooper_lab.arithmetic.build_models import TEST_PROBLEMS, draw
from cooper_lab.arithmetic.problems import arithmetic_problems, gold
from cooper_lab.arithmetic.twins import train_twin
from cooper_lab.arithmetic.world import ASSETS, TWINS
from cooper_rl import LabelledCompletion, load_policy, load_tokenizer
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.reward.monitor import roc_auc

LONGEST = 200
"""Tokens of an input; attacks are longer than solutions."""


def measure(folder: Path, rows: list[LabelledCompletion], attacks: list[LabelledCompletion]) -> dict[str, float]:
    config = ScorerConfig(model=str(folder), device="cpu", max_input_tokens=LONGEST)
    learner = TorchRewardModelLearner.from_config(config, 0, trainable=False)
    encoder = RewardModelInput.of(config, load_tokenizer(config.model))
    logits, attacked = (
        learner.score(encoder.encode_all([(row.question, row.answer, row.completion) for row in some])).double()
        for some in (rows, attacks)
    )
    labels = torch.tensor([row.label for row in rows], dtype=torch.float64)
    return {
        "parameters": learner.model.num_parameters(),
        "accuracy": ((logits > 0) == (labels > 0.5)).double().mean().item(),
        "roc_auc": roc_auc(logits.sigmoid(), labels),
        "attacks_accepted": (attacked > 0).double().mean().item(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    problems = arithmetic_problems("test", TEST_PROBLEMS, 0)
    texts = draw(load_policy(str(ASSETS / "policy")), tokenizer, problems, 4, 0)
    rows = [
        LabelledCompletion(problem.question, problem.answer, text, float(gold(problem, text)))
        for problem, own in zip(problems, texts, strict=True)
        for text in own
    ]
    attacks = [attack.row for attack in attack_rows(rows, 100, 0) if attack.pattern in ATTACKS]
    folders = {twin: options.folder / f"{twin}-{options.seed}" for twin in TWINS}
    for twin, folder in folders.items():
        if not folder.exists():
            train_twin(twin, folder, options.seed)
    for name, folder in {**folders, "shipped": ASSETS / "reward_model"}.items():
        print(name, measure(folder, rows, attacks))


if __name__ == "__main__":
    main()
