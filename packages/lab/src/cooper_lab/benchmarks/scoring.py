"""A reward model's logits of a benchmark's completions."""

from collections.abc import Callable, Sequence

from cooper_lab.benchmarks.candidates import Candidates
from cooper_rl import InputError, LabelledCompletion
from cooper_rl.engines.config import ScorerConfig
from cooper_rl.engines.local.reward_model import TorchRewardModelLearner
from cooper_rl.engines.reward_input import RewardModelInput

CHUNK = 16
"""Problems scored between two reports of progress."""


class Scorer:
    """A reward model, loaded once."""

    def __init__(self, config: ScorerConfig) -> None:
        self._learner = TorchRewardModelLearner.from_config(config, 0, trainable=False)
        self._encoder = RewardModelInput.of(config, self._learner.tokenizer)

    def logits(self, rows: Sequence[LabelledCompletion]) -> list[float]:
        """One logit per row. Raises InputError naming the row whose question leaves no room for a completion."""
        return self._learner.score(
            [self._encode(r.question, r.answer, r.completion, r.location) for r in rows]
        ).tolist()

    def scores(
        self, items: Sequence[Candidates], progress: Callable[[int, int], None] | None = None
    ) -> list[list[float]]:
        """The logit of every completion of every problem. Raises InputError as `logits` does."""
        scores: list[list[float]] = []
        for start in range(0, len(items), CHUNK):
            chunk = items[start : start + CHUNK]
            rows = [
                self._encode(item.question, item.reference, completion, item.location)
                for item in chunk
                for completion in item.completions
            ]
            logits = iter(self._learner.score(rows).tolist())
            scores += [[next(logits) for _ in item.completions] for item in chunk]
            if progress is not None:
                progress(len(scores), len(items))
        return scores

    def _encode(self, question: str, reference: str, completion: str, location: str) -> list[int]:
        try:
            return self._encoder.encode(question, reference, completion)
        except InputError as error:
            raise InputError(f"{location}: {error}") from error
