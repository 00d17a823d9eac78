"""Measures a reward model while it learns: held-out accuracy and attack rate during a run."""

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import torch
from jaxtyping import Float
from torch import Tensor

from cooper_rl.data.labelled import LabelledCompletion
from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.evaluation.attacks import ATTACKS, CONTROLS, attack_rows
from cooper_rl.evaluation.config import MonitorConfig
from cooper_rl.evaluation.metrics import classification_metrics
from cooper_rl.rewards.input import EncodedRow, RewardModelInput, encode_rows


class Monitor:
    """Labelled completions and attacks on which a reward model is measured. It never learns from them.

    `config.rows` of the `rows` (from `read_held_out`) are drawn at random.
    """

    def __init__(
        self,
        config: MonitorConfig,
        rows: Sequence[LabelledCompletion],
        learner: RewardModelLearner,
        encoder: RewardModelInput,
        seed: int = 0,
    ) -> None:
        self.every = config.every
        self._swaps = swapped_references(encoder, rows, config.consistency_pairs, seed)
        self._learner = learner
        drawn = Random(f"monitor {seed}").sample(rows, min(config.rows, len(rows)))
        self._held_out: list[EncodedRow] = encode_rows(encoder, drawn)
        self._attacks = [
            (attack.pattern, encoder.encode(attack.row.question, attack.row.answer, attack.row.completion))
            for attack in attack_rows(drawn, config.attacked_problems, seed)
        ]

    def measure(self) -> Metrics:
        """The metrics of the reward model as it is now.

        `monitor/accuracy`, `precision`, `recall`, `specificity`, `roc_auc`, `ece` and `loss` are taken on the held-out
        rows. `monitor/attack_<pattern>` is the share of attack completions that are accepted, and
        `monitor/attack_rate` the mean over the patterns. `monitor/bare_right_rate` is the share of right answers
        without a derivation that are accepted. `reward_model/consistency` is that of `consistency`.
        """
        logits = self._learner.score([row.token_ids for row in self._held_out])
        measured = classification_metrics(logits, torch.tensor([row.label for row in self._held_out]))
        metrics = {f"monitor/{name}": value for name, value in measured.items()}
        if self._attacks:
            accepted: dict[str, list[bool]] = defaultdict(list)
            scores = self._learner.score([token_ids for _, token_ids in self._attacks])
            for (pattern, _), score in zip(self._attacks, scores.tolist(), strict=True):
                accepted[pattern].append(score > 0)
            rates = {pattern: sum(values) / len(values) for pattern, values in accepted.items()}
            metrics |= {f"monitor/attack_{pattern}": rates[pattern] for pattern in ATTACKS}
            metrics["monitor/attack_rate"] = sum(rates[pattern] for pattern in ATTACKS) / len(ATTACKS)
            metrics["monitor/bare_right_rate"] = sum(rates[pattern] for pattern in CONTROLS) / len(CONTROLS)
        if self._swaps:
            logits = self._learner.score([token_ids for swap in self._swaps for token_ids in swap])
            metrics["reward_model/consistency"] = consistency(logits.reshape(-1, 4))
        return metrics


def consistency(logits: Float[Tensor, "K 4"]) -> float:
    """Share of K pairs of problems in which each right completion scores higher with its own reference.

    The columns are r(q, a, c), r(q, a', c), r(q', a', c'), r(q', a, c') for right completions c and c' of problems
    (q, a) and (q', a'). A tie counts against the model: one that ignores the reference has 0, one that scores at random
    1/4. After Contrast Instructions (arXiv 2309.16155).
    """
    own, swapped = logits[:, 0::2], logits[:, 1::2]
    return (own > swapped).all(dim=1).double().mean().item()


def swapped_references(
    encoder: RewardModelInput, rows: Sequence[LabelledCompletion], pairs: int, seed: int
) -> list[list[list[int]]]:
    """Four inputs for each of up to `pairs` pairs of right rows, in the order of `consistency`'s columns.

    Rows are paired with their neighbour in the order of their references, so that numbers meet numbers. Both questions
    and both references of a pair differ.
    """
    first_of = {row.question: row for row in reversed(rows) if row.label > 0.5}
    ordered = sorted(first_of.values(), key=lambda row: (len(row.answer), row.answer, row.question))
    near = [(a, b) for a, b in zip(ordered[::2], ordered[1::2], strict=False) if a.answer.strip() != b.answer.strip()]
    drawn = Random(f"consistency {seed}").sample(near, min(pairs, len(near)))
    return [
        [
            encoder.encode(a.question, a.answer, a.completion),
            encoder.encode(a.question, b.answer, a.completion),
            encoder.encode(b.question, b.answer, b.completion),
            encoder.encode(b.question, a.answer, b.completion),
        ]
        for a, b in drawn
    ]
