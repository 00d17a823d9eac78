"""The demo's VerifyRM: labels samples from several warm-up checkpoints and trains on them.

Labels come from the rule verifier, or are known because the text was made right or wrong on purpose. Gold is used only
to measure.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from transformers import LlamaForSequenceClassification, PreTrainedModel, PreTrainedTokenizerFast

from cooper_lab.arithmetic.warmup import IGNORED, small_llama
from cooper_rl import Config, LabelledCompletion
from cooper_rl.engines.base import LabelledBatch
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss
from cooper_rl.engines.reward_input import RewardModelInput

BATCHES_SORTED_TOGETHER = 16
TrainingRow = TypeVar("TrainingRow", bound=tuple[Any, ...])


class VerifyRMConfig(Config):
    """How the demo's reward model is trained."""

    problems: int = 3000
    """Number of training problems that are sampled."""
    language_updates: int = 300
    """Number of first updates, which only do language modelling on the right completions."""
    most_updates: int = 900
    """Most updates with binary cross-entropy after them."""
    enough_accuracy: float = 0.92
    """Training ends at this accuracy on held-out labels."""
    list_share: float = 0.5
    """Lists of answers per problem, all labelled right. They are the weakness that the demo's policy can exploit."""
    held_out: int = 600
    """Number of labelled completions that only decide when training ends."""
    checked_every: int = 20
    """Updates between measurements on the held-out completions."""
    language_weight: float = 0.3
    """Weight of the language-modelling loss that is added to the binary cross-entropy."""
    batch_size: int = 64
    """Labelled completions per update."""
    learning_rate: float = 1e-3
    """Learning rate after a short linear warm-up."""
    hidden_size: int = 128
    """Width of the model."""
    layers: int = 4
    """Number of layers."""
    replayed: int = 2000
    """Number of labelled completions that are stored for replay during reinforcement learning."""


def new_reward_model(
    config: VerifyRMConfig, tokenizer: PreTrainedTokenizerFast, seed: int
) -> LlamaForSequenceClassification:
    """A small Llama with one output and random weights."""
    torch.manual_seed(seed)
    settings = small_llama(config.hidden_size, config.layers, tokenizer)
    settings.num_labels = 1
    return LlamaForSequenceClassification(settings).eval()


def train_reward_model(
    learner: TorchRewardModelLearner,
    encoder: RewardModelInput,
    rows: Sequence[LabelledCompletion],
    config: VerifyRMConfig,
    random: Random,
    on_update: Callable[[int, float], None] | None = None,
) -> float:
    """Train with binary cross-entropy on `rows`, and with language modelling on the right ones before and during it.

    Predicting a right completion teaches the backbone to look up the answer in the reference. Binary cross-entropy
    alone, with its one bit per row, stays at chance for 1000 updates. `on_update(updates, loss)` is called after every
    update. Returns the accuracy on the last `config.held_out` rows, which are not used for training.
    """
    encoded = [(encoder.encode(row.question, row.answer, row.completion), row.label) for row in rows]
    held_out = encoded[-config.held_out :]
    drawn = batches(encoded[: -config.held_out], config.batch_size, random)
    for update, picked in enumerate(islice(drawn, learner.total_steps), 1):
        classifying = update > config.language_updates
        loss = accumulate(learner, picked, config.language_weight if classifying else 1.0, classifying)
        learner.optim_step()
        if on_update is not None:
            on_update(update, loss)
        looking = classifying and update % config.checked_every == 0
        if looking and label_accuracy(learner, held_out) >= config.enough_accuracy:
            break
    return label_accuracy(learner, held_out)


def accumulate(
    learner: TorchRewardModelLearner, rows: list[tuple[list[int], float]], language_weight: float, classifying: bool
) -> float:
    """Accumulate the gradient of one batch. Returns the cross-entropy of the labels, or of tokens before that."""
    reported = 0.0
    right = [ids for ids, label in rows if label == 1]
    if right:
        loss = language_loss(learner.model, right)
        (language_weight * loss).backward()
        reported = loss.item()
    if classifying:
        batch = LabelledBatch([ids for ids, _ in rows], [label for _, label in rows], [1 / len(rows)] * len(rows))
        reported = learner.forward_backward(batch, BinaryCrossEntropyLoss())["loss"]
    return reported


def label_accuracy(learner: TorchRewardModelLearner, rows: Sequence[tuple[list[int], float]]) -> float:
    """Share of encoded rows for which the reward model's verdict (yes above logit 0) agrees with the label."""
    logits = learner.score([ids for ids, _ in rows]).tolist()
    return sum((logit > 0) == (label == 1) for logit, (_, label) in zip(logits, rows, strict=True)) / len(rows)


def language_loss(model: PreTrainedModel, token_ids: Sequence[list[int]]) -> Float[Tensor, ""]:
    """Mean next-token cross-entropy of a backbone that uses its input embedding as its output embedding."""
    width = max(len(ids) for ids in token_ids)
    tokens_BT = torch.tensor([ids + [0] * (width - len(ids)) for ids in token_ids])
    targets_BT = torch.tensor([ids[1:] + [IGNORED] * (width - len(ids) + 1) for ids in token_ids])
    hidden_BTH = model.base_model(input_ids=tokens_BT, use_cache=False).last_hidden_state
    logits_BTV = hidden_BTH @ model.get_parameter("model.embed_tokens.weight").T
    return F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten(), ignore_index=IGNORED)


def batches(rows: Sequence[TrainingRow], size: int, random: Random) -> Iterator[list[TrainingRow]]:
    """An endless stream of batches of similar length, so that there is little padding. A row begins with its tokens."""
    while True:
        drawn = random.sample(rows, min(len(rows), size * BATCHES_SORTED_TOGETHER))
        drawn.sort(key=lambda row: len(row[0]))
        batches = [drawn[start : start + size] for start in range(0, len(drawn), size)]
        random.shuffle(batches)
        yield from batches
