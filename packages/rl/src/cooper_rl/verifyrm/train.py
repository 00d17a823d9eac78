"""Trains a VerifyRM: labelled completions in, a plain Hugging Face reward model out."""

import json
import logging
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cooper_audit.attack.wrong_answers import robustness_rows
from cooper_base.data.labelled import LabelledCompletion, problem_folds, split_by_problem
from cooper_base.errors import InputError
from cooper_base.files.durable import write_text
from cooper_base.files.owned_folder import new_folder
from cooper_base.progress import part
from cooper_rl.engines.base import LabelledBatch, Metrics
from cooper_rl.engines.local.adapter import adapted_layers, plain_weights
from cooper_rl.engines.local.device import set_threads
from cooper_rl.engines.local.models import disk_errors
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss
from cooper_rl.engines.reward_input import EncodedRow, RewardModelInput, encode_rows
from cooper_rl.record.model_cards import write_model_card
from cooper_rl.reward.monitor import classification_metrics
from cooper_rl.verifyrm.calibration import FEWEST_ROWS, Calibration, calibrate_folder
from cooper_rl.verifyrm.config import VerifyRMConfig

_SORTED_BATCHES = 32
"""Rows are sorted by length within this many batches, which saves padding and keeps the order almost random."""


def batches(rows: Sequence[EncodedRow], weights: dict[float, float], size: int, seed: int) -> Iterator[LabelledBatch]:
    """An endless stream of batches, one shuffled pass after another. A row's share of the loss depends on its label."""
    order = random.Random(seed)
    while True:
        for indices in length_grouped_batches([len(row.token_ids) for row in rows], size, order):
            batch = [rows[i] for i in indices]
            shares = [weights[row.label] / len(batch) for row in batch]
            yield LabelledBatch([row.token_ids for row in batch], [row.label for row in batch], shares)


def class_weights(labels: Sequence[float]) -> dict[float, float]:
    """A weight for each label: mean 1 over the rows, equal sums of the classes. Raises InputError for one class."""
    right = sum(label > 0.5 for label in labels)
    wrong = len(labels) - right
    if not right or not wrong:
        raise InputError(
            f"of {len(labels)} training rows {right} are right and {wrong} wrong, but a reward model needs both; "
            "give rows of the other kind too, or raise max_rows"
        )
    return {1.0: len(labels) / (2 * right), 0.0: len(labels) / (2 * wrong)}


def length_grouped_batches(lengths: Sequence[int], batch_size: int, order: random.Random) -> list[list[int]]:
    """Row indices in random batches of similar length, each exactly once. The last batch of a pool may be smaller."""
    rows = list(range(len(lengths)))
    order.shuffle(rows)
    pool = batch_size * _SORTED_BATCHES
    batches: list[list[int]] = []
    for start in range(0, len(rows), pool):
        alike = sorted(rows[start : start + pool], key=lambda row: lengths[row])
        batches += [alike[i : i + batch_size] for i in range(0, len(alike), batch_size)]
    order.shuffle(batches)
    return batches


logger = logging.getLogger(__name__)

METRICS_FILE = "verifyrm.json"
WELL_RANKED = 0.75
"""ROC-AUC above which a model that accepts all or nothing has a wrong threshold rather than learned nothing."""
FEWEST_SHARE = 0.1
"""A class with a smaller share of the training rows is said to be the cause."""


def train_verifyrm(
    config: VerifyRMConfig,
    rows: Sequence[LabelledCompletion],
    output_dir: Path,
    progress: Callable[[int, Metrics, int], None] | None = None,
) -> dict[str, Any]:
    """Train a reward model on labelled rows and keep the weights with the lowest held-out loss in `output_dir`.

    The result, also in its `verifyrm.json`, holds settings, row counts and the held-out metrics of the kept weights and
    of every evaluation. `progress` is called after every update with their number, its metrics, and the total number.
    Until everything is done, the model lies in a hidden folder beside `output_dir`, where the next call begins anew.
    Raises InputError, before training, for an output folder in use, for rows of only one class, and for a base that
    cannot become a reward model; after training, if the held-out loss was never finite.
    """
    with new_folder(output_dir) as aside:
        result = _trained(config, rows, aside, progress)
        write_text(aside / METRICS_FILE, json.dumps(result, indent=2))
        write_model_card(aside, output_dir.name, result, FEWEST_ROWS)
    return result


def _trained(
    config: VerifyRMConfig,
    rows: Sequence[LabelledCompletion],
    folder: Path,
    progress: Callable[[int, Metrics, int], None] | None,
) -> dict[str, Any]:
    """Write the weights with the lowest held-out loss into the folder, and return the result of `train_verifyrm`."""
    start = time.perf_counter()
    set_threads(config.threads)
    train_rows, held_out_rows = _chosen_rows(config, rows)
    class_weights([row.label for row in train_rows])  # robustness rows do not make up for a missing class
    calibrated = config.calibrate and len(held_out_rows) >= FEWEST_ROWS
    count = round(config.robustness * sum(bool(row.answer) for row in train_rows))
    extra = robustness_rows(train_rows, count, config.robustness_kinds, config.seed)
    config, updates = fitted(config, len(train_rows) + len(extra))
    counts = len(train_rows) + len(held_out_rows), len(train_rows) + len(extra), len(extra), len(held_out_rows)
    logger.info(
        "%d rows: %d to train on, %d of them added for robustness, and %d held out; %d updates of %d rows, evaluated "
        "every %d",
        *(*counts, updates, config.batch_size, config.evaluate_every),
    )
    learner = TorchRewardModelLearner.from_config(config, updates, new_head_seed=0)
    _bound_memory(learner)
    encoder = RewardModelInput.of(config, learner.tokenizer)
    honest, robustness = encode_rows(encoder, train_rows), encode_rows(encoder, extra)
    train, held_out = honest + robustness, encode_rows(encoder, held_out_rows)

    keeper = _BestWeights(learner, folder, config.patience)
    _train(config, updates, train, held_out, keeper, progress)
    if keeper.logits is None:
        raise InputError(f"the held-out loss was never finite; lower learning_rate: {config.learning_rate}")
    measured, calibration = (
        _calibrate(keeper.logits, held_out, folder, config.seed) if calibrated else (keeper.best, {})
    )
    if fault := one_sided(measured, [row.label for row in train]):
        logger.warning("%s", fault)
    return {
        "config": config.model_dump(mode="json"),
        "rows": {"train": len(honest), "robustness": len(robustness), "held_out": len(held_out), "given": len(rows)},
        "right_share": {"train": _right_share(train), "held_out": _right_share(held_out)},
        "held_out": measured,
        "calibration": calibration,
        "history": keeper.history,
        "seconds": time.perf_counter() - start,
    }


def _chosen_rows(
    config: VerifyRMConfig, rows: Sequence[LabelledCompletion]
) -> tuple[list[LabelledCompletion], list[LabelledCompletion]]:
    """The rows to train on and the held-out ones, at most `max_rows` together."""
    chosen = list(rows)
    if config.max_rows is not None and config.max_rows < len(rows):
        chosen = random.Random(config.seed).sample(chosen, config.max_rows)
    train_rows, held_out_rows = split_by_problem(chosen, config.held_out, config.seed)
    if config.calibrate and len(held_out_rows) < FEWEST_ROWS:
        logger.warning(
            "the model will not be calibrated: %d rows are held out, and at least %d are needed; give more rows or "
            "raise held_out, if sigmoid(logit) must be a probability",
            *(len(held_out_rows), FEWEST_ROWS),
        )
    return train_rows, held_out_rows


def _train(
    config: VerifyRMConfig,
    updates: int,
    train: Sequence[EncodedRow],
    held_out: list[EncodedRow],
    keeper: "_BestWeights",
    progress: Callable[[int, Metrics, int], None] | None,
) -> None:
    """Do so many updates, or fewer if the held-out loss no longer falls; `keeper` keeps the best weights."""
    weights = class_weights([row.label for row in train]) if config.balance_classes else {0.0: 1.0, 1.0: 1.0}
    stream = batches(train, weights, config.batch_size, config.seed)
    for update, batch in zip(range(1, updates + 1), stream, strict=False):
        with part(f"update {update} of {updates}"):
            metrics = keeper.learner.forward_backward(batch, BinaryCrossEntropyLoss())
            metrics |= keeper.learner.optim_step()
        if update % config.evaluate_every == 0 or update == updates:
            metrics |= {f"held_out_{name}": value for name, value in keeper.evaluate(held_out, update).items()}
        if progress is not None:
            progress(update, metrics, updates)
        if keeper.out_of_patience:
            logger.info("stopped after update %d of %d, because the held-out loss no longer falls", update, updates)
            break


LAYER_TENSORS = 26
"""Hidden-sized tensors that a layer keeps for its backward pass, as in `cooper plan`."""
ACTIVATION_BYTES = 1e9
"""Most memory for the activations of a micro-batch on a CPU, whose memory other programs need too."""


def _bound_memory(learner: TorchRewardModelLearner) -> None:
    """On a CPU, lower the default of `tokens_per_microbatch` to what keeps `ACTIVATION_BYTES`; rows stay whole."""
    shape, config = learner.model.config.get_text_config(), learner.config
    chosen = config.gradient_checkpointing or "tokens_per_microbatch" in config.model_fields_set
    if chosen or learner.device.type != "cpu":
        return
    layers, hidden = getattr(shape, "num_hidden_layers", None), getattr(shape, "hidden_size", None)
    if layers is None or hidden is None:  # an architecture with other names
        return
    tokens = int(ACTIVATION_BYTES / (layers * hidden * LAYER_TENSORS * 4))
    if tokens < config.tokens_per_microbatch:
        logger.info(
            "tokens_per_microbatch: %d instead of %d, for about 1 GB of activations; more would not be faster on a CPU",
            *(tokens, config.tokens_per_microbatch),
        )
        learner.config = config.model_copy(update={"tokens_per_microbatch": max(1, tokens)})


FEW_UPDATES = 30
"""Below this number of updates, settings that the user has not set are fitted to the number of rows."""


def fitted(config: VerifyRMConfig, rows: int) -> tuple[VerifyRMConfig, int]:
    """The settings for so many training rows, and the number of updates.

    Where the rows give few updates, the defaults of `batch_size`, `warmup_steps` and `evaluate_every` are lowered, and
    logged; what the user has set stays, with a warning if it does not fit.
    """

    def updates(size: int) -> int:
        return max(1, round(config.epochs * rows / size))

    def free(name: str, value: int) -> int:
        default: int = getattr(config, name)
        return default if name in config.model_fields_set else min(default, value)

    if updates(config.batch_size) < FEW_UPDATES:
        size = free("batch_size", max(8, int(config.epochs * rows / FEW_UPDATES)))
        warmup, every = updates(size) // 10, max(1, updates(size) // 5)
        fits = {"batch_size": size, "warmup_steps": free("warmup_steps", warmup)}
        fits["evaluate_every"] = free("evaluate_every", every)
        changed = [name for name, value in fits.items() if value != getattr(config, name)]
        told = ", ".join(f"{name} {fits[name]} instead of {getattr(config, name)}" for name in changed)
        logger.info("%d training rows are few, so: %s; a setting of your own is kept", rows, told or "as you set it")
        config = config.model_copy(update=fits)
    count = updates(config.batch_size)
    if 2 * config.warmup_steps >= count:
        logger.warning("warmup_steps: %d of %d updates; use fewer, or more epochs", config.warmup_steps, count)
    if config.evaluate_every >= count:
        logger.warning(
            "evaluate_every: %d, but there are %d updates: only the last is measured", config.evaluate_every, count
        )
    return config, count


class _BestWeights:
    """Measures the learner on the held-out rows and keeps the weights with the lowest loss in a folder."""

    def __init__(self, learner: TorchRewardModelLearner, folder: Path, patience: int | None) -> None:
        self.learner = learner
        self._folder = folder
        self._patience = patience
        self._since_best = 0
        self.history: list[Metrics] = []
        self.best: Metrics = {}
        self.logits: Tensor | None = None
        """Logits of the held-out rows with the best weights."""

    def evaluate(self, held_out: Sequence[EncodedRow], update: int) -> Metrics:
        with part("evaluate"):
            logits = self.learner.score([row.token_ids for row in held_out])
        measured = classification_metrics(logits, torch.tensor([row.label for row in held_out]))
        self.history.append({**measured, "update": float(update)})
        if measured["loss"] < self.best.get("loss", math.inf):
            self.best, self.logits, self._since_best = self.history[-1], logits, 0
            # `learner.save` would add the optimizer, three times the size, which nobody continues from.
            model, tokenizer = self.learner.model, self.learner.tokenizer
            weights = dict(plain_weights(model)) if adapted_layers(model) else None
            with disk_errors(self._folder):
                model.save_pretrained(self._folder, state_dict=weights)
                if tokenizer is not None:
                    tokenizer.save_pretrained(self._folder)
        else:
            self._since_best += 1
        return measured

    @property
    def out_of_patience(self) -> bool:
        return self._patience is not None and self._since_best >= self._patience


def _calibrate(
    logits: Tensor, held_out: Sequence[EncodedRow], output_dir: Path, seed: int
) -> tuple[Metrics, dict[str, float]]:
    """Scale the logits of the saved model if that helps. Returns the held-out metrics after it, and the calibration."""
    labels = torch.tensor([row.label for row in held_out])
    folds = problem_folds([row.question for row in held_out], 2, seed)
    calibration = Calibration.of(logits, labels, folds)
    if calibration.helps:
        calibrate_folder(output_dir, calibration.temperature)
    else:
        logger.warning(
            "the temperature %.3g, fitted on %d held-out rows, does not lower their calibration error (%.3f; "
            "%.3f on the rows of the fit, %.3f on others) and is not applied",
            *(calibration.fitted, len(held_out)),
            *(calibration.ece_before, calibration.ece_after, calibration.ece_cross_fitted),
        )
    return classification_metrics(logits / calibration.temperature, labels), calibration.figures()


def one_sided(held_out: Metrics, trained_on: Sequence[float]) -> str:
    """A warning, with its cause, about a model that accepts all held-out completions or none; else empty."""
    accepts_right, rejects_wrong = held_out.get("recall"), held_out.get("specificity")
    if accepts_right is None or rejects_wrong is None or {accepts_right, rejects_wrong} != {0.0, 1.0}:
        return ""
    does = "accepts every held-out completion" if accepts_right else "accepts no held-out completion, right or wrong"
    right, area = sum(trained_on) / len(trained_on), held_out.get("roc_auc", math.nan)
    if area > WELL_RANKED:
        why = "it ranks them well, so only the threshold is off: leave calibrate on and give it more held-out rows, or "
        why += "train with balance_classes"
    elif not FEWEST_SHARE <= right <= 1 - FEWEST_SHARE:
        why = f"{100 * right:.0f} % of its {len(trained_on)} training rows are right: give rows of both kinds"
    else:
        why = f"it has not learned to tell right from wrong in {len(trained_on)} rows: give more rows or epochs, raise "
        why += "learning_rate, or take a larger base"
    return f"the reward model {does} (ROC-AUC {area:.2f}), and a run learns nothing from such a verdict: {why}"


def _right_share(rows: Sequence[EncodedRow]) -> float:
    return sum(row.label for row in rows) / len(rows)
