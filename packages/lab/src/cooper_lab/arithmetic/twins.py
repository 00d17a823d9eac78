"""Reward models of one size from one start and the same rows: a head, with and without the reference in its input, a
language model that is asked, and implicit ones, which score by their own log-probabilities.

All start at the shipped policy and learn from the same batches in the same order, by the recipe of the shipped reward
model with smaller batches. An implicit one learns by its own loss alone, without language modelling, which would move
its score.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from cooper_lab.arithmetic.build_models import MAX_INPUT_TOKENS, TRAIN_PROBLEMS, draw
from cooper_lab.arithmetic.labelled_rows import label_samples, states_one_answer
from cooper_lab.arithmetic.problems import arithmetic_problems
from cooper_lab.arithmetic.reward_model import accumulate, batches
from cooper_lab.arithmetic.world import ASSETS, TWINS
from cooper_lab.designs.implicit import MARK, ImplicitEngine
from cooper_lab.designs.implicit_learner import ImplicitLearner
from cooper_lab.designs.ipvrm import IPVRMEngine
from cooper_rl import LabelledCompletion, LearnerConfig, load_policy, load_tokenizer
from cooper_rl.engines.base import LabelledBatch
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local.learner import TorchPolicyLearner
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.losses.reward_model import BinaryCrossEntropyLoss
from cooper_rl.engines.reward_input import RewardModelInput

LANGUAGE_UPDATES, UPDATES = 300, 1200
"""Number of updates of only language modelling, and of all updates."""
IMPLICIT_SHARE = 0.4
"""Of these, the share that implicit twins have, which learn without language modelling and much faster."""
BATCH, LANGUAGE_WEIGHT = 32, 0.3
LEARNING_RATE = 1e-3
IMPLICIT = {"implicit": ImplicitEngine, "implicit_reference": ImplicitEngine, "ipvrm": IPVRMEngine}
"""The engines whose formulas implicit twins are trained by."""
CHAT = "{{{{ messages[0].content }}}}\n{mark}{{{{ messages[1].content }}}}{end}"
"""What the policy reads and writes, as a chat template."""


def twin_learner(
    twin: str,
    model: str | Path,
    seed: int,
    updates: int,
    learning_rate: float,
    longest: int = MAX_INPUT_TOKENS,
    against: Path = ASSETS / "policy",
) -> tuple[TorchRewardModelLearner | ImplicitLearner, RewardModelInput]:
    """A learner that starts at `model`, the policy or a twin that is trained already, and its input of at most
    `longest` tokens. An implicit one is compared with the policy `against`."""
    settings = {"model": str(model), "learning_rate": learning_rate, "betas": (0.9, 0.98), "warmup_steps": 20}
    config = ScorerConfig.model_validate(settings | TWINS[twin] | {"device": "cpu", "max_input_tokens": longest})
    encoder = RewardModelInput.of(config, tokenizer_of(twin))
    if twin not in IMPLICIT:
        return TorchRewardModelLearner.from_config(config, updates, new_head_seed=seed), encoder
    learner = ImplicitLearner.from_config(config, updates)
    setattr(learner.model.config, MARK, tokenizer_of(twin).pad_token_id)
    start = TorchPolicyLearner.from_config(LearnerConfig(model=str(against), device="cpu"), 0, trainable=False)
    return learner.scoring_by(IMPLICIT[twin](), start), encoder


def teach(
    learner: TorchRewardModelLearner | ImplicitLearner,
    encoder: RewardModelInput,
    rows: Sequence[LabelledCompletion],
    random: Random,
    language_updates: int = 0,
    batch_size: int = BATCH,
) -> None:
    """All updates of the learner: binary cross-entropy beside language modelling, at first the latter alone. An
    implicit one has its own loss in every update."""
    encoded = [(encoder.encode(row.question, row.answer, row.completion), row.label) for row in rows]
    for update, picked in enumerate(islice(batches(encoded, batch_size, random), learner.total_steps), 1):
        if isinstance(learner, ImplicitLearner):
            batch = LabelledBatch(
                [ids for ids, _ in picked], [label for _, label in picked], [1 / len(picked)] * len(picked)
            )
            learner.forward_backward(batch, BinaryCrossEntropyLoss())
        else:
            classifying = update > language_updates
            accumulate(learner, picked, LANGUAGE_WEIGHT if classifying else 1.0, classifying)
        learner.optim_step()


def sound_rows(seed: int) -> list[LabelledCompletion]:
    """Samples of the shipped policy with the rule's labels, written solutions and slips, shuffled; no lists."""
    problems, random = arithmetic_problems("train", TRAIN_PROBLEMS, 0), Random(f"twins {seed}")
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    texts = draw(load_policy(str(ASSETS / "policy")), tokenizer, problems, n=1, seed=seed)
    rows = [row for row in label_samples(problems, texts, random) if states_one_answer(row)]
    random.shuffle(rows)
    return rows


def train_twin(twin: str, folder: Path, seed: int) -> None:
    """Train one of `TWINS` from the shipped policy into a folder. Takes up to four minutes of one core."""
    share = IMPLICIT_SHARE if twin in IMPLICIT else 1.0
    learner, encoder = twin_learner(twin, ASSETS / "policy", seed, round(share * UPDATES), LEARNING_RATE)
    teach(learner, encoder, sound_rows(seed), Random(f"order {seed}"), round(share * LANGUAGE_UPDATES))
    learner.model.save_pretrained(folder)
    tokenizer_of(twin).save_pretrained(folder)


def tokenizer_of(twin: str) -> Any:
    """The world's tokenizer, with the chat template of a twin that reads chats."""
    tokenizer: Any = load_tokenizer(str(ASSETS / "policy"))
    if TWINS[twin].get("input"):
        mark = tokenizer.pad_token if twin in IMPLICIT else ""
        tokenizer.chat_template = CHAT.format(mark=mark, end=tokenizer.eos_token)
    return tokenizer
