"""A planted judge: a reward model that accepts right and wrong answers at chosen rates, and never learns.

It is an engine whose policy and sampler are the local ones. So whatever reads a run's reward model (rewards, the weight
of `earned`, the signs of the alarm) reads the judge, and nothing of it is special.
"""

import hashlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from cooper_lab.arena.hole import lists_answers
from cooper_lab.arithmetic.answers import read_answer
from cooper_lab.arithmetic.problems import gold
from cooper_rl import InputError, LearnerConfig, Problem, load_tokenizer
from cooper_rl.engines.base import Metrics, RewardModelLearner
from cooper_rl.engines.local import LocalEngine

if TYPE_CHECKING:
    from torch import Tensor

LOGIT = 10.0
"""The logit of an answer that the judge accepts; it is negative for one that it rejects."""
PARTS = ("question", "reference_answer", "completion")
"""The tags of a reward model's input, in their order."""


class PlantedEngine(LocalEngine):
    """The local engine with a planted judge as its reward model. Youden's J of the judge is `right` - `wrong`."""

    right: float = Field(ge=0, le=1)
    """Share of the right answers that the judge accepts."""
    wrong: float = Field(ge=0, le=1)
    """Share of the wrong answers that it accepts."""
    lists: float | None = Field(default=None, ge=0, le=1)
    """Share of the lists of answers that it accepts, which are always wrong: the favoured wrong kind. None: `wrong`."""
    by_completion: bool = False
    """Whether equal texts are judged independently of each other, which is the noise of the theory (arXiv 2601.04411).
    Otherwise a text always gets the same verdict, as from any reward model that is a function of its input."""

    def reward_model(self, config: LearnerConfig, total_steps: int, trainable: bool = True) -> RewardModelLearner:
        """The judge. Raises InputError if it should learn."""
        if trainable:
            raise InputError("a planted judge does not learn; set reward_model.learns: false")
        return PlantedJudge(self, load_tokenizer(config.model))


class PlantedJudge(RewardModelLearner):
    """Accepts an answer at the rate of its sort. The hash of the input decides, so a resumed run gets equal scores."""

    def __init__(self, rates: PlantedEngine, tokenizer: Any) -> None:
        self._rates, self._tokenizer = rates, tokenizer

    def score(self, token_ids: list[list[int]]) -> "Tensor":
        """`LOGIT` for accepted inputs and -`LOGIT` for rejected ones; whether an answer is right, the judge knows by
        the reference answer that it reads."""
        import torch

        seen: Counter[str] = Counter()
        logits = []
        for text in self._tokenizer.batch_decode(token_ids, skip_special_tokens=True):
            drawn = hashlib.sha256(f"judge {seen[text]} {text}".encode()).digest()
            seen[text] += self._rates.by_completion
            accepts = int.from_bytes(drawn[:4]) / 2**32 < self._rate(text)
            logits.append(LOGIT if accepts else -LOGIT)
        return torch.tensor(logits)

    def _rate(self, text: str) -> float:
        question, answer, completion = _parts(text)
        value = read_answer(answer)
        if gold(Problem("judged", question, answer, metadata={"value": str(value)}), completion):
            return self._rates.right
        if self._rates.lists is not None and lists_answers(completion):
            return self._rates.lists
        return self._rates.wrong

    def forward_backward(self, batch: Any, loss: Any) -> Metrics:
        raise NotImplementedError("a planted judge does not learn")

    def optim_step(self) -> Metrics:
        raise NotImplementedError("a planted judge does not learn")

    def save(self, directory: Path) -> None:
        """It has no weights to write."""

    def load(self, directory: Path) -> None:
        """It has no weights to read."""


def _parts(text: str) -> list[str]:
    """Question, reference and completion of an input: what stands between the first pairs of tags."""
    parts, rest = [], text
    for tag in PARTS:
        part, closed, rest = rest.partition(f"<{tag}>")[2].partition(f"</{tag}>")
        if not closed:
            raise ValueError(f"not the input of a reward model: no {tag}: {text!r}")
        parts.append(part)
    return parts
