"""Training a VerifyRM: labelled completions in, a plain Hugging Face reward model out."""

import json
import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from cooper_rl.errors import InputError
from cooper_rl.learning.device import set_threads
from cooper_rl.learning.learner import LabelledBatch, Metrics
from cooper_rl.learning.reward_learner import TorchRewardModelLearner
from cooper_rl.learning.reward_losses import BinaryCrossEntropyLoss
from cooper_rl.rewards.labelled import LabelledCompletion
from cooper_rl.rewards.reward_model_input import RewardModelInput
from cooper_rl.verifyrm.config import VerifyRMConfig
from cooper_rl.verifyrm.metrics import classification_metrics
from cooper_rl.verifyrm.split import split_by_problem

logger = logging.getLogger(__name__)

METRICS_FILE = "verifyrm.json"
_SORTED_BATCHES = 32
"""Rows are sorted by length within this many batches: little padding, and still a random order."""

Progress = Callable[[int, Metrics, int], None]
"""Called with the updates done, the last update's metrics, and the number of updates in all."""


@dataclass(frozen=True)
class EncodedRow:
    """A reward-model input with its label."""

    token_ids: list[int]
    label: float


def train_verifyrm(
    config: VerifyRMConfig, rows: Sequence[LabelledCompletion], output_dir: Path, progress: Progress | None = None
) -> dict[str, Any]:
    """Train a reward model on labelled rows and keep the weights with the lowest held-out loss in `output_dir`.

    The folder loads with plain `AutoModelForSequenceClassification`; `verifyrm.json` beside the weights holds what
    is returned: settings, row counts, the held-out metrics of the kept weights and of every evaluation.
    `progress` is called after every update.

    Raises InputError, before training, for an output folder in use, rows of one class only, or a base that cannot
    become a reward model.
    """
    start = time.perf_counter()
    _check_folder(output_dir)
    set_threads(config.threads)
    chosen = _draw(rows, config)
    train_rows, held_out_rows = split_by_problem(chosen, config.held_out, config.seed)
    updates = max(1, round(config.epochs * len(train_rows) / config.batch_size))
    learner = TorchRewardModelLearner.from_config(config, updates)
    freeze_layers(learner.model, config.frozen_layers)
    encoder = RewardModelInput(learner.tokenizer, config.max_input_tokens)
    train, held_out = _encode(encoder, train_rows), _encode(encoder, held_out_rows)
    weights = class_weights([row.label for row in train]) if config.balance_classes else {0.0: 1.0, 1.0: 1.0}

    history: list[Metrics] = []
    best: Metrics | None = None
    for update, batch in zip(range(1, updates + 1), _batches(train, config), strict=False):
        metrics = learner.forward_backward(_labelled_batch(batch, weights), BinaryCrossEntropyLoss())
        metrics |= learner.optim_step()
        if update % config.evaluate_every == 0 or update == updates:
            measured = evaluate(learner, held_out)
            metrics |= {f"held_out_{name}": value for name, value in measured.items()}
            measured["update"] = float(update)
            history.append(measured)
            if best is None or measured["loss"] < best["loss"]:
                best = measured
                _save(learner, output_dir)
        if progress is not None:
            progress(update, metrics, updates)
    result = {
        "config": config.model_dump(mode="json"),
        "rows": {"train": len(train), "held_out": len(held_out), "given": len(rows)},
        "right_share": {"train": _right_share(train), "held_out": _right_share(held_out)},
        "held_out": best,
        "history": history,
        "seconds": time.perf_counter() - start,
    }
    (output_dir / METRICS_FILE).write_text(json.dumps(result, indent=2), encoding="utf-8")
    return result


def evaluate(learner: TorchRewardModelLearner, rows: Sequence[EncodedRow]) -> Metrics:
    """Accuracy, recall of each class, ROC-AUC and cross-entropy of the learner on labelled rows."""
    logits = learner.score([row.token_ids for row in rows])
    return classification_metrics(logits, torch.tensor([row.label for row in rows]))


def class_weights(labels: Sequence[float]) -> dict[float, float]:
    """A weight for each label, 1 on average over the rows, with the same sum over both classes.

    Raises InputError where a class is empty: nothing could be learnt.
    """
    right = sum(label > 0.5 for label in labels)
    wrong = len(labels) - right
    if not right or not wrong:
        raise InputError(
            f"{len(labels)} training rows, {right} right and {wrong} wrong: a reward model needs both; "
            "give more rows, or raise max_rows"
        )
    return {1.0: len(labels) / (2 * right), 0.0: len(labels) / (2 * wrong)}


def length_grouped_batches(lengths: Sequence[int], batch_size: int, order: random.Random) -> list[list[int]]:
    """Row indices in random batches of like length, each row exactly once; the last of a pool may be smaller."""
    rows = list(range(len(lengths)))
    order.shuffle(rows)
    pool = batch_size * _SORTED_BATCHES
    batches: list[list[int]] = []
    for start in range(0, len(rows), pool):
        alike = sorted(rows[start : start + pool], key=lambda row: lengths[row])
        batches += [alike[i : i + batch_size] for i in range(0, len(alike), batch_size)]
    order.shuffle(batches)
    return batches


def freeze_layers(model: PreTrainedModel, layers: int) -> None:
    """Exclude the embeddings and the lowest `layers` layers from training. Raises InputError if there are fewer."""
    if not layers:
        return
    stack = getattr(model.base_model, "layers", None)
    if not isinstance(stack, nn.ModuleList) or layers > len(stack):
        found = f"{len(stack)} layers" if isinstance(stack, nn.ModuleList) else "no list of layers"
        raise InputError(f"frozen_layers: {layers}, but this model has {found}; use frozen_layers: 0")
    model.get_input_embeddings().requires_grad_(False)
    stack[:layers].requires_grad_(False)


def _check_folder(output_dir: Path) -> None:
    if output_dir.exists() and (not output_dir.is_dir() or any(output_dir.iterdir())):
        raise InputError(f"{output_dir}: already in use; choose another output folder or remove it")


def _draw(rows: Sequence[LabelledCompletion], config: VerifyRMConfig) -> list[LabelledCompletion]:
    if config.max_rows is None or config.max_rows >= len(rows):
        return list(rows)
    return random.Random(config.seed).sample(list(rows), config.max_rows)


def _encode(encoder: RewardModelInput, rows: Sequence[LabelledCompletion]) -> list[EncodedRow]:
    """Encode rows; those whose question alone fills the input are left out and counted."""
    encoded: list[EncodedRow] = []
    left_out: list[str] = []
    for row in rows:
        try:
            encoded.append(EncodedRow(encoder.encode(row.question, row.answer, row.completion), row.label))
        except InputError as error:
            left_out.append(f"{row.location}: {error}")
    if left_out:
        logger.warning("%d of %d rows do not fit and are left out; first: %s", len(left_out), len(rows), left_out[0])
    if not encoded:
        raise InputError(f"no row fits; first: {left_out[0]}")
    return encoded


def _batches(rows: Sequence[EncodedRow], config: VerifyRMConfig) -> Iterator[list[EncodedRow]]:
    """Batches without end: one shuffled pass after another."""
    order = random.Random(config.seed)
    while True:
        for batch in length_grouped_batches([len(row.token_ids) for row in rows], config.batch_size, order):
            yield [rows[i] for i in batch]


def _labelled_batch(rows: Sequence[EncodedRow], weights: dict[float, float]) -> LabelledBatch:
    return LabelledBatch(
        [row.token_ids for row in rows],
        [row.label for row in rows],
        [weights[row.label] / len(rows) for row in rows],
    )


def _right_share(rows: Sequence[EncodedRow]) -> float:
    return sum(row.label for row in rows) / len(rows)


def _save(learner: TorchRewardModelLearner, output_dir: Path) -> None:
    """The model alone: `learner.save` would add the optimizer, three times the size, which nobody continues from."""
    learner.model.save_pretrained(output_dir)
    if learner.tokenizer is not None:
        learner.tokenizer.save_pretrained(output_dir)
