"""The absorbing collapse of a judge that always says yes, by what a group of its verdicts is about.

`python benchmarks/arithmetic/judge_collapse.py` trains a toy judge that starts at logit +8 for every answer, and prints
Youden's J (accepted share of right answers minus that of wrong ones) after 100 and 200 updates, mean and lowest of ten
seeds.

The judge is a logistic regression on features of an answer, which differ between right and wrong ones. A verdict pays 1
if it agrees with the label. Its J is computed exactly on answers that it has not seen; verdicts are only sampled where
a policy gradient needs samples.
"""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

Teaching = Literal["one answer", "right and wrong answers", "summed", "cross-entropy"]
"""What an update is made of: a policy gradient from groups of verdicts on one answer, or on right and wrong answers of
one problem; the gradient of the expected reward, summed over yes and no; or cross-entropy with the label."""
START_LOGIT = 8.0
FEATURES, APART = 8, 2.0
GROUPS, GROUP = 16, 8
LEARNING_RATE = 0.05
AT = (100, 200)


def youdens_j(teaching: Teaching, seed: int) -> list[float]:
    """J after each number of updates in `AT`."""
    random = torch.Generator().manual_seed(seed)
    weights = torch.zeros(FEATURES + 1, dtype=torch.float64)
    weights[-1] = START_LOGIT
    optimizer = torch.optim.Adam([weights], lr=LEARNING_RATE)
    unseen_BF, is_right_B = _answers(torch.arange(4096) % 2 == 0, random)
    curve = []
    for update in range(1, AT[-1] + 1):
        # Half of the answers are right: half of the groups, or half of every group.
        number_GN = torch.arange(GROUPS)[:, None] if teaching == "one answer" else torch.arange(GROUP)[None]
        answers_GNF, is_right_GN = _answers((number_GN % 2 == 0).expand(GROUPS, GROUP), random)
        if teaching == "one answer":
            answers_GNF = answers_GNF[:, :1].expand(GROUPS, GROUP, -1)
        pull_GN = pull((answers_GNF @ weights).sigmoid(), is_right_GN, teaching, random)
        weights.grad = -(pull_GN[..., None] * answers_GNF).mean((0, 1))
        optimizer.step()
        if update in AT:
            accepted_B = (unseen_BF @ weights).sigmoid()
            curve.append((accepted_B[is_right_B].mean() - accepted_B[~is_right_B].mean()).item())
    return curve


def _answers(is_right: Tensor, random: torch.Generator) -> tuple[Tensor, Tensor]:
    """Features of answers, the last of them constant, and whether each is right."""
    features = torch.randn(*is_right.shape, FEATURES, generator=random, dtype=torch.float64)
    features[..., 0] += APART * (2 * is_right.double() - 1)
    return torch.cat([features, torch.ones_like(features[..., :1])], -1), is_right


def pull(
    yes_GN: Float[Tensor, "G N"], is_right_GN: Tensor, teaching: Teaching, random: torch.Generator
) -> Float[Tensor, "G N"]:
    """The direction in which each verdict's logit is pulled."""
    if teaching == "summed":  # the derivative of P(right verdict)
        return (2 * is_right_GN.double() - 1) * yes_GN * (1 - yes_GN)
    if teaching == "cross-entropy":
        return is_right_GN.double() - yes_GN
    says_yes_GN = torch.rand(yes_GN.shape, generator=random, dtype=torch.float64) < yes_GN
    rewards_GN = (says_yes_GN == is_right_GN).double()
    advantages_GN = (rewards_GN - rewards_GN.mean(1, keepdim=True)) / (rewards_GN.std(1, keepdim=True) + 1e-6)
    return advantages_GN * (says_yes_GN.double() - yes_GN)


if __name__ == "__main__":
    for teaching in get_args(Teaching):
        curves = torch.tensor([youdens_j(teaching, seed) for seed in range(10)])
        mean, lowest = (" ".join(f"{j:.2f}" for j in values.tolist()) for values in (curves.mean(0), curves.amin(0)))
        print(f"{teaching:24} mean {mean}, lowest {lowest}")
