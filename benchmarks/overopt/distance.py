"""How far apart reward models are for a policy that learns from them, and from the labels: the STARC distance.

    python -m benchmarks.overopt.distance labelled.jsonl --reward-model before=models/before \\
        --reward-model after=models/after

Only differences between completions of the same question count, so the rows need several for a question.
"""

import argparse

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from rich.table import Table

from cooper_base.cli.console import named_models, stdout
from cooper_base.data.labelled import read_labelled
from cooper_base.errors import InputError
from cooper_rl.engines.config import ScorerConfig

LABEL = "label"


def distances(data: list[str], folders: dict[str, str]) -> dict[str, dict[str, float]]:
    """The distance of each reward model, and of the labels, to each. Raises InputError if no question has two rows."""
    rows = [row for path in data for row in read_labelled(path)]
    questions = [row.question for row in rows]
    if len(set(questions)) == len(questions):
        raise InputError(f"{', '.join(data)}: no question has two completions, so there is nothing to compare")
    from cooper_rl.reward.scorer import load_scorer

    rewards = {LABEL: np.array([row.label for row in rows])}
    for name, folder in folders.items():
        model = load_scorer(ScorerConfig(model=folder))
        inputs = model.encoder.encode_all([(row.question, row.answer, row.completion) for row in rows])
        rewards[name] = model.learner.score(inputs).numpy()
    groups = np.array(questions, dtype=object)
    return {a: {b: starc_distance(rewards[a], rewards[b], groups) for b in rewards} for a in rewards}


def starc_distance(a: Float[ndarray, " B"], b: Float[ndarray, " B"], groups: ndarray) -> float:
    """STARC distance of two rewards on the same B completions, between 0 (same order and gaps) and 1 (opposite).

    `groups` names each completion's problem. The rewards are canonicalised, scaled to norm 1 and subtracted; the result
    is half the norm (2) of their difference (Skalse et al. 2023, arXiv 2309.15257, definitions 1 to 5). For completions
    of one turn, the canonical reward is the reward minus its mean over the problem's completions, which is Dr. GRPO's
    advantage. Adding a constant per problem or multiplying by a positive number thus changes nothing. The result is
    sqrt((1 - rho) / 2), where rho is the Pearson correlation of the canonical rewards: the EPIC distance (Gleave et al.
    2020, arXiv 2006.13900). A reward without any difference inside a problem has norm 0 and stays 0: its distance to
    another such reward is 0, to any other reward 1/2. Raises ValueError for numbers that are not finite.
    """
    if not (len(a) == len(b) == len(groups)):
        raise ValueError(f"{len(a)} and {len(b)} rewards for {len(groups)} completions")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("a distance needs finite rewards")
    difference = _standardised(a, groups) - _standardised(b, groups)
    return float(np.linalg.norm(difference) / 2)


def _standardised(rewards: Float[ndarray, " B"], groups: ndarray) -> Float[ndarray, " B"]:
    """The canonical reward with norm 1, or zeros if it is constant inside every problem up to rounding."""
    rewards = np.asarray(rewards, dtype=float)
    _, group = np.unique(groups, return_inverse=True)
    centred = rewards - (np.bincount(group, rewards) / np.bincount(group))[group]
    if np.abs(centred).max(initial=0.0) <= 1e-12 * np.abs(rewards).max(initial=0.0):
        return np.zeros_like(centred)
    return centred / np.linalg.norm(centred)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+", help="labelled completions, several for each question")
    parser.add_argument("--reward-model", action="append", required=True, help="a folder, or NAME=FOLDER")
    given = parser.parse_args()
    matrix = distances(given.data, named_models(given.reward_model, taken=[LABEL]))
    table = Table("distance", *matrix)
    for name, row in matrix.items():
        table.add_row(name, *(f"{distance:.4f}" for distance in row.values()))
    stdout().print(table)


if __name__ == "__main__":
    main()
