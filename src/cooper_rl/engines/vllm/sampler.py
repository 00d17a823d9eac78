"""A `Sampler` that draws with vLLM."""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol
from uuid import uuid4

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cooper_rl.engines.base import EngineLost, PolicyLearner, sample_at_once
from cooper_rl.engines.local.stops import StopRule
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.engines.vllm.config import VllmConfig
from cooper_rl.engines.vllm.requests import Drawn, Request, check_versions, requests, samples
from cooper_rl.engines.vllm.transfer import ModelWeights, Receiver, WeightPushError, WeightSender
from cooper_rl.rollouts.samples import Samples

logger = logging.getLogger(__name__)


class InferenceEngine(Receiver, Protocol):
    """One vLLM engine, or several behind one call."""

    elsewhere: bool
    """Whether it draws in another process, so that this one can do something else meanwhile."""

    context: int
    """Tokens that a prompt and its completion may have together."""
    dtype: torch.dtype
    """Of its weights."""

    def generate(self, requests: list[Request]) -> list[Drawn]:
        """Draw every completion, in the order of the requests. Raises EngineLost where it is gone."""
        ...

    def wait_until_back(self) -> None:
        """Wait for an engine that is being started again. Raises EngineLost where it does not come back."""


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
        config: VllmConfig,
        backend: str,
    ):
        self.tokenizer = tokenizer
        self.version: str | None = None
        """Of the weights in the engine; None where they are not the learner's."""
        self.reconnections = 0
        """How often the engine had lost its weights or its connection."""
        self._engine = engine
        self._end_of_sequence = end_of_sequence
        self._config = config
        self._backend = backend
        self._name = uuid4().hex[:8]  # another run's weights in the same engine have other versions
        self._pushes = 0
        self._sender: WeightSender | None = None
        self._sends: PreTrainedModel | None = None
        self._learner: PolicyLearner | None = None
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

        Raises TypeError for a learner without a Hugging Face model in this process, and WeightPushError where the
        hand-over fails; the engine is not sampled from then until another one succeeds.
        """
        model = getattr(learner, "model", None)
        if not isinstance(model, PreTrainedModel):
            raise TypeError(f"the vLLM sampler needs a learner with a `model` in this process, not {learner!r}")
        self._notice_lost_weights()
        self.version, self._pushes = None, self._pushes + 1
        version = f"{self._name}-{self._pushes}"
        try:
            self._sender_of(model).send(version)
        except Exception as error:
            self._disconnect()
            if isinstance(error, WeightPushError):
                raise
            raise WeightPushError(f"the engine could not be reached for version {version}: {error}") from error
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
            self._disconnect()

    def _sender_of(self, model: PreTrainedModel) -> WeightSender:
        if self._sender is None or self._sends is not model:
            self._disconnect()
            self._sender = WeightSender(
                self._backend,
                ModelWeights(model, self._engine.dtype),
                self._engine,
                host=self._config.transfer_host,
                timeout_s=self._config.timeout_s,
            )
            self._sends = model
        return self._sender

    def _disconnect(self) -> None:
        if self._sender is not None:
            self._sender.close()
        self._sender = self._sends = None
