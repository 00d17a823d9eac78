"""A `Sampler` that draws with vLLM."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol
from uuid import uuid4

from transformers import PreTrainedTokenizerBase

from cooper_rl.engines.base import EngineLost, Metrics, PolicyLearner, sample_at_once
from cooper_rl.engines.local.stops import StopRule
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.engines.vllm.handover import Handover
from cooper_rl.engines.vllm.requests import Drawn, Request, check_versions, requests, samples
from cooper_rl.engines.vllm.transfer import WeightPushError
from cooper_rl.rollouts import Samples

logger = logging.getLogger(__name__)


class InferenceEngine(Protocol):
    """What draws: one vLLM engine, or several behind one call."""

    elsewhere: bool
    """Whether it draws in another process, so that this one can do something else meanwhile."""
    restarts: int
    """How many engines this side has started in place of lost ones."""

    @property
    def context(self) -> int:
        """Tokens that a prompt and its completion may have together."""
        ...

    def generate(self, requests: list[Request]) -> list[Drawn]:
        """Draw every completion, in the order of the requests. Raises EngineLost where it is gone."""
        ...

    def wait_until_back(self) -> None:
        """Wait for an engine that is being started again. Raises EngineLost where it does not come back."""

    def weight_versions(self) -> list[str]:
        """See `Receiver`."""
        ...


class VllmSampler:
    """Draws with the weights that were handed over last, and with no others.

    `load_weights` copies the learner's weights into the engine and gives them a version, which every completion names.
    An engine that has lost them is noticed, by then or by the next `load_weights`, which brings them back.
    """

    def __init__(
        self,
        engine: InferenceEngine,
        tokenizer: PreTrainedTokenizerBase,
        end_of_sequence: set[int],
        handover: Handover,
    ):
        self.tokenizer = tokenizer
        self.version: str | None = None
        """Of the weights in the engine; None where they are not the learner's."""
        self.reconnections = 0
        """How often the engine had lost its weights or its connection."""
        self.failed_pushes = 0
        """How many hand-overs failed."""
        self._engine = engine
        self._end_of_sequence = end_of_sequence
        self._handover = handover
        self._name = uuid4().hex[:8]  # another run's weights in the same engine have other versions
        self._pushes = 0
        self._learner: PolicyLearner | None = None
        self._push_seconds = 0.0
        self._told: Metrics = {"engine/restarts": float(engine.restarts)}  # those before belong to another sampler
        self._thread = ThreadPoolExecutor(1, "vllm-sampler")

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        """See `Sampler`. `min_p` is applied before the other filters.

        Log-probabilities are NaN where some tokens could not be drawn (`SamplingParams.truncations`). An engine that
        was lost meanwhile gets its weights again, once, and draws from the beginning. Raises InputError for a prompt
        that is empty or leaves no room, FloatingPointError for a model without finite logits, and EngineLost where the
        engine does not come back.
        """
        try:
            return self._draw(prompts, n, params, seed)
        except EngineLost as lost:
            logger.warning("engine lost while it drew, it gets its weights again: %s", lost)
            assert self._learner is not None
            self.load_weights(self._learner)
            return self._draw(prompts, n, params, seed)

    def submit(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> "Future[Samples]":
        """See `AheadSampler`. Where the engine is lost, the future raises EngineLost: the learner may have moved on."""
        if not self._engine.elsewhere:
            return sample_at_once(self, prompts, n, params, seed)
        return self._thread.submit(self._draw, prompts, n, params, seed)

    def _draw(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, seed: int) -> Samples:
        if self.version is None:
            raise RuntimeError("the engine does not hold the policy's weights: call load_weights first")
        rule = StopRule(self.tokenizer, params, self._end_of_sequence)
        drawn = self._engine.generate(requests(prompts, n, params, rule, self._engine.context, seed))
        check_versions(drawn, self.version)
        return samples(drawn, params, rule)

    def load_weights(self, learner: PolicyLearner) -> None:
        """Hand the learner's weights over, and check that the engine has them.

        A hand-over that fails is made once more, over a new connection. Raises TypeError for a learner whose weights
        cannot be sent from here, and WeightPushError where it fails again (EngineLost if the engine is elsewhere); the
        engine is not sampled from then until another one succeeds.
        """
        start = time.perf_counter()
        try:
            self._hand_over(learner)
        except WeightPushError as first:
            logger.warning("a hand-over of weights failed and is made again: %s", first)
            self.failed_pushes += 1
            try:
                self._hand_over(learner)
            except WeightPushError as error:
                if self._engine.elsewhere:
                    raise EngineLost(str(error)) from error
                raise
        self._push_seconds += time.perf_counter() - start

    def _hand_over(self, learner: PolicyLearner) -> None:
        self._notice_lost_weights()
        self.version, self._pushes = None, self._pushes + 1
        version = f"{self._name}-{self._pushes}"
        try:
            self._handover.send(learner, version)
        except Exception:
            self._handover.close()
            raise
        self.version, self._learner = version, learner

    def _notice_lost_weights(self) -> None:
        """An engine that was started again has its first weights and no connection to this side."""
        self._engine.wait_until_back()
        if self.version is None:
            return
        found = set(self._engine.weight_versions())
        if found != {self.version}:
            self.reconnections += 1
            logger.warning("engine at weights %s, expected %s: connecting again", ", ".join(found), self.version)
            self._handover.close()

    def take_metrics(self) -> Metrics:
        """See `Measured`: hand-overs of weights, their seconds and their faults, since this was called last."""
        told, self._told = (
            self._told,
            {
                "engine/restarts": float(self._engine.restarts),
                "engine/reconnections": float(self.reconnections),
                "engine/failed_pushes": float(self.failed_pushes),
                "time/push_weights": self._push_seconds,
            },
        )
        return {name: total - told.get(name, 0.0) for name, total in self._told.items()}
