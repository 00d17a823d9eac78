"""A reward model whose head has an auxiliary language-modelling loss: on a working, a text after the tagged input.

The working names the completion's answer, the reference's value and the verdict, as a judge would write them before it
decides. The head reads the last token of the tagged input, which comes before the working, so a score costs no more
than without it. Such a loss is only for training: the saved folder is an ordinary reward model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from cooper_lab.arithmetic.answers import read_answer, render_answer
from cooper_lab.arithmetic.solutions import find_answer
from cooper_lab.arithmetic.tokenizer import END
from cooper_rl import LabelledCompletion
from cooper_rl.engines.reward_input import RewardModelInput

Order = Literal["values_first", "verdict_first"]
"""What a working begins with. The state that the head reads predicts the first token of the working."""
UNREADABLE = "?"


class WorkedRow(NamedTuple):
    """A labelled completion, encoded. The head reads at the last of `token_ids`; the working follows it."""

    token_ids: list[int]
    working_ids: list[int]
    label: float


@dataclass(frozen=True)
class LossWeights:
    """Weights of the three terms of `combined_loss`."""

    label: float
    """Of the binary cross-entropy of the head."""
    language: float
    """Of the language-modelling loss on the inputs of right completions."""
    working: float
    """Of the language-modelling loss on the workings of all completions."""


def working_of(row: LabelledCompletion, order: Order) -> str:
    """The working of a row: `19 18 n`, the completion's value, the reference's and whether they agree.

    The values are read from the two texts (`?` for one that states no single value). The verdict is the row's label, so
    that the working says nothing about right and wrong that the label does not say.
    """
    values = " ".join(map(_value, (find_answer(row.completion).text, row.answer)))
    verdict = "y" if row.label == 1 else "n"
    return (f"{values} {verdict}" if order == "values_first" else f"{verdict} {values}") + END


def worked_rows(
    rows: Sequence[LabelledCompletion],
    encoder: RewardModelInput,
    tokenizer: PreTrainedTokenizerFast,
    order: Order | None,
) -> list[WorkedRow]:
    """The rows with their workings; without an order, with empty ones."""
    inputs = encoder.encode_all([(row.question, row.answer, row.completion) for row in rows])
    workings = [[] if order is None else tokenizer(working_of(row, order))["input_ids"] for row in rows]
    return [WorkedRow(ids, work, row.label) for ids, work, row in zip(inputs, workings, rows, strict=True)]


def combined_loss(model: PreTrainedModel, rows: Sequence[WorkedRow], weights: LossWeights) -> Float[Tensor, ""]:
    """The weighted sum of three means: over rows the binary cross-entropy of the head, over tokens the cross-entropy of
    right completions' inputs and that of workings. One forward pass computes all three.

    `model` is a causal backbone with the head `score`, whose input embedding is also its output embedding.
    """
    inputs_B = torch.tensor([len(row.token_ids) for row in rows])
    ends_B = inputs_B + torch.tensor([len(row.working_ids) for row in rows])
    labels_B = torch.tensor([row.label for row in rows])
    width = int(ends_B.max())
    # Padding is on the right, so causal attention needs no mask.
    tokens_BT = torch.tensor([ids + work + [0] * (width - len(ids) - len(work)) for ids, work, _ in rows])
    hidden_BTH = model.base_model(input_ids=tokens_BT, use_cache=False).last_hidden_state
    logits_B = model.get_submodule("score")(hidden_BTH[torch.arange(len(rows)), inputs_B - 1]).squeeze(-1)
    loss = weights.label * F.binary_cross_entropy_with_logits(logits_B, labels_B.to(logits_B))
    places_BT = torch.arange(1, width).expand(len(rows), -1)  # of the tokens that a state before them predicts
    in_input_BT = places_BT < inputs_B[:, None]
    terms = (
        (weights.language, in_input_BT & (labels_B == 1)[:, None]),
        (weights.working, ~in_input_BT & (places_BT < ends_B[:, None])),
    )
    embedding_VH = model.get_input_embeddings().weight
    for weight, predicted_BT in terms:
        if weight and predicted_BT.any():
            logits_NV = hidden_BTH[:, :-1][predicted_BT] @ embedding_VH.T
            loss = loss + weight * F.cross_entropy(logits_NV, tokens_BT[:, 1:][predicted_BT])
    return loss


def _value(text: str) -> str:
    value = read_answer(text)
    return UNREADABLE if value is None else render_answer(value, "plain")
