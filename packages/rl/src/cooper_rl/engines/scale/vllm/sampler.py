"""The vLLM sampler: building it, sending it a learner's weights, and turning requests and replies into `Samples`."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from uuid import uuid4

import numpy as np
from transformers import AutoConfig, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from cooper_base.errors import EngineLost
from cooper_rl.data.prompts import prompt_room
from cooper_rl.engines.base import Metrics, PolicyLearner, Prompts, Sampler, WeightSender, sample_at_once
from cooper_rl.engines.config import LearnerConfig, SamplingParams
from cooper_rl.engines.local.device import warn_untried
from cooper_rl.engines.local.models import load_tokenizer
from cooper_rl.engines.scale.vllm import VllmConfig
from cooper_rl.engines.scale.vllm.engines import (
    CompletionRequest,
    DrawnCompletion,
    InferenceEngine,
    OfflineEngine,
    RemoteEngine,
)
from cooper_rl.engines.scale.vllm.weight_sync import WeightPushError, open_sender
from cooper_rl.engines.stop_rule import StopRule, completion_limits, end_of_sequence_ids
from cooper_rl.records import Column, Samples

logger = logging.getLogger(__name__)

FIRST_WEIGHTS = "default"
"""The version that vLLM gives to the weights it starts with."""
COUNTED: tuple[str, ...] = ("engine/reconnections", "engine/failed_pushes", "time/push_weights")

Start = Callable[[str, VllmConfig, str, int], InferenceEngine]
"""Starts an engine, given the model, the settings, the transfer's backend and the rank of adapters that it applies."""
Connect = Callable[[InferenceEngine, VllmConfig, str, PolicyLearner], WeightSender]
"""Connects a learner to an engine. Raises TypeError for one whose weights it cannot send, and WeightPushError."""


def connect_here(engine: InferenceEngine, config: VllmConfig, backend: str, learner: PolicyLearner) -> WeightSender:
    model = getattr(learner, "model", None)
    if not isinstance(model, PreTrainedModel):
        raise TypeError(f"the vLLM sampler needs a learner with a `model` in this process, not {learner!r}")
    return open_sender(engine, config, backend, model)


def build_sampler(
    policy: LearnerConfig,
    config: VllmConfig,
    backend: str,
    start: Start = OfflineEngine,
    connect: Connect = connect_here,
) -> "VllmSampler":
    """Start an engine with the policy's folder or model of the hub, or find the server at `config.url`.

    Weights travel by `backend`: `gloo` on a CPU, `nccl` between GPUs, CUDA `ipc` on one GPU. Of a policy with LoRA, an
    engine on a GPU that can apply adapters is sent only the adapter. All others get merged weights; on a CPU, vLLM
    draws with an adapter 16 times more slowly (benchmarks/gpu/README.md). Raises InputError for what does not serve.
    """
    model = policy.model
    config.check_model(model)
    if backend != "gloo":
        warn_untried(f"engine: vLLM, with weights over {backend},")
    if config.url is None:
        rank = 0 if backend == "gloo" else config.adapter_rank(policy)
        if policy.lora is not None and not rank:
            logger.info("vLLM is sent whole weights, with the adapter merged into them")
        engine = start(model, config, backend, rank)
    else:
        engine = RemoteEngine(config, backend)
        engine.check_serves(model)
    tokenizer = load_tokenizer(model)
    try:
        generation = GenerationConfig.from_pretrained(model)
    except OSError:  # a folder may have none
        generation = GenerationConfig.from_model_config(AutoConfig.from_pretrained(model, trust_remote_code=False))
    ends = end_of_sequence_ids(generation, tokenizer)
    return VllmSampler(engine, tokenizer, ends, lambda learner: connect(engine, config, backend, learner))


class VllmSampler(Sampler):
    """Samples only with the weights of the last `sync_weights`. Each transfer has a version, and every completion names
    the version that sampled it."""

    def __init__(
        self,
        engine: InferenceEngine,
        tokenizer: PreTrainedTokenizerBase,
        end_of_sequence: set[int],
        connect: Callable[[PolicyLearner], WeightSender],
    ):
        self.tokenizer = tokenizer
        self.version: str | None = None  # of the engine's weights; None where they are not the learner's
        self._engine, self._end_of_sequence, self._connect = engine, end_of_sequence, connect
        self._sender: WeightSender | None = None
        self._connected: object = None  # the model that it sends, or the learner where that is in other processes
        name = uuid4().hex[:8]  # another run's weights in the same engine have other versions
        self._versions = (f"{name}-{push}" for push in count(1))
        self._learner: PolicyLearner | None = None
        self._restarts = engine.restarts  # those until now belong to another sampler
        self._counts: Metrics = dict.fromkeys(COUNTED, 0.0)  # since the last `take_metrics`
        self._thread = ThreadPoolExecutor(1, "vllm-sampler")

    def sample(self, prompts: Prompts, n: int, params: SamplingParams, seed: int) -> Samples:
        """See `Sampler`. Under a filter logprobs are NaN: vLLM's are those of what the filter leaves over.

        An engine that was lost meanwhile gets its weights again, once, and draws from the beginning. Raises InputError
        for a prompt that is empty or leaves no room, FloatingPointError for logits that are not finite, EngineLost.
        """
        try:
            return self._draw(prompts, n, params, seed)
        except EngineLost as lost:
            if self._learner is None:  # its first weights are not ours to send
                raise
            logger.warning("an engine was lost while it sampled; its weights are sent again: %s", lost)
            self.sync_weights(self._learner)
            return self._draw(prompts, n, params, seed)

    def submit(self, prompts: Prompts, n: int, params: SamplingParams, seed: int) -> "Future[Samples]":
        """See `Sampler`. Where the engine is lost, the future raises EngineLost: the learner may have moved on."""
        if not self._engine.elsewhere:
            return sample_at_once(self, prompts, n, params, seed)
        return self._thread.submit(self._draw, prompts, n, params, seed)

    def _draw(self, prompts: Prompts, n: int, params: SamplingParams, seed: int) -> Samples:
        if self.version is None:
            raise RuntimeError("the engine does not hold the policy's weights: call sync_weights first")
        rule = StopRule(self.tokenizer, params, self._end_of_sequence)
        drawn = self._engine.generate(_requests(prompts, n, params, rule, self._engine.context, seed))
        if others := {version for completion in drawn for version in completion.versions} - {self.version}:
            raise EngineLost(
                f"an engine sampled with weights of version {', '.join(sorted(others))} and not {self.version}: it was "
                "restarted, or its weights were changed from outside this run"
            )
        return _samples(drawn, params, rule, [prompt for prompt in prompts for _ in range(n)])

    def keep_first_weights(self) -> None:
        """Draw with the weights that the engine started with; no learner has sent others."""
        self.version = FIRST_WEIGHTS

    def room(self, max_tokens: int) -> int | None:
        """Most tokens that a prompt may have if `max_tokens` must fit after it; see `prompt_room`."""
        return prompt_room(self._engine.context, max_tokens)

    def sync_weights(self, learner: PolicyLearner) -> None:
        """Send the learner's weights to the engine, and check that the engine has them.

        A transfer that fails is repeated once over a new connection. If that fails too, this raises WeightPushError
        (EngineLost if the engine is in another process), and nothing can be sampled until a transfer succeeds. Raises
        TypeError as `Connect` does.
        """
        start, source = time.perf_counter(), getattr(learner, "model", learner)
        self._engine.wake_up("weights")  # its cache follows when the copies for the transfer are gone
        for attempt in (1, 2):
            self._reconnect_where_lost()
            self.version, version = None, next(self._versions)
            try:
                if self._sender is None or self._connected is not source:
                    self._disconnect()
                    self._sender, self._connected = self._connect(learner), source
                self._sender.sync_weights(version)
                break
            except Exception as error:
                self._disconnect()
                if not isinstance(error, WeightPushError) or (attempt == 2 and not self._engine.elsewhere):
                    raise
                if attempt == 2:
                    raise EngineLost(str(error)) from error
                logger.warning("a transfer of weights failed and is repeated: %s", error)
                self._counts["engine/failed_pushes"] += 1
        self._engine.wake_up("kv_cache")
        self.version, self._learner = version, learner
        self._counts["time/push_weights"] += time.perf_counter() - start

    def rest(self) -> None:
        """See `Sampler`."""
        if self._engine.sleep():
            self.version = None

    def _disconnect(self) -> None:
        if self._sender is not None:
            self._sender.disconnect()
        self._sender = self._connected = None

    def _reconnect_where_lost(self) -> None:
        """Disconnect from an engine that was restarted: it has its first weights, and no connection to this side."""
        self._engine.wait_until_back()
        if self.version is None:
            return
        found = set(self._engine.weight_versions())
        if found != {self.version}:
            self._counts["engine/reconnections"] += 1
            logger.warning(
                "an engine has the weights %s instead of %s; connecting to it again", ", ".join(found), self.version
            )
            self._disconnect()

    def take_metrics(self) -> Metrics:
        taken = {"engine/restarts": float(self._engine.restarts - self._restarts), **self._counts}
        self._restarts, self._counts = self._engine.restarts, dict.fromkeys(COUNTED, 0.0)
        return taken


def _requests(
    prompts: Prompts, n: int, params: SamplingParams, rule: StopRule, context: int, seed: int
) -> list[CompletionRequest]:
    """`n` requests for each prompt. Raises InputError for a prompt that is empty or fills the `context`."""
    shared = {
        **params.model_dump(include={"temperature", "top_p", "top_k"}),
        "logprobs": 0,  # of the token drawn alone
        "stop": list(rule.strings),
        "stop_token_ids": sorted(rule.token_ids),
        "ignore_eos": True,  # `stop_token_ids` lists the tokens that end a completion
        "detokenize": bool(rule.strings),
    }
    full = (
        f"the engine's context is {context}: nothing could follow it. "
        "Shorten or drop the prompt, raise max_model_len, or choose a model with a longer context"
    )
    wanted = []
    for index, limit in enumerate(completion_limits(prompts, params.max_tokens, context, full)):
        prompt = [int(token) for token in prompts[index]]
        for sample in range(n):
            own = {"max_tokens": limit, "min_tokens": min(params.min_tokens, limit), "seed": _seed(seed, index, sample)}
            wanted.append(CompletionRequest(prompt, shared | own))
    return wanted


def _seed(seed: int, prompt: int, sample: int) -> int:
    """A seed of 63 bits for each completion, because equal seeds draw equal noise in vLLM."""
    state = np.random.SeedSequence([seed % 2**64, prompt, sample]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


def _samples(
    drawn: Sequence[DrawnCompletion], params: SamplingParams, rule: StopRule, prompts: Sequence[Sequence[int]]
) -> Samples:
    """Raises FloatingPointError for log-probabilities that are not finite, RuntimeError for a completion given up."""
    given_up = next((completion for completion in drawn if completion.finish_reason not in ("stop", "length")), None)
    if given_up is not None:
        raise RuntimeError(f"vLLM ended a completion with finish_reason {given_up.finish_reason!r}")
    cut = [_cut(completion, params, rule) for completion in drawn]
    token_ids = Column.of([np.asarray(ids, np.int32) for ids, _ in cut], np.int32)
    reported = [
        np.asarray(completion.logprobs[: len(ids)], np.float32) for completion, (ids, _) in zip(drawn, cut, strict=True)
    ]
    logprobs = Column.of(reported, np.float32).values
    if not np.isfinite(logprobs).all():
        raise FloatingPointError("the sampled model's logits are not finite: its weights have probably diverged")
    return Samples(
        token_ids=token_ids,
        logprobs=np.full_like(logprobs, np.nan) if params.truncations else logprobs,  # vLLM's are of what may be drawn
        stopped=np.array([stopped for _, stopped in cut], bool),
        texts=rule.texts([ids for ids, _ in cut], prompts),
    )


def _cut(completion: DrawnCompletion, params: SamplingParams, rule: StopRule) -> tuple[list[int], bool]:
    """Tokens, and whether they were stopped. vLLM ignores stop strings before `min_tokens`; here they always stop."""
    ids = list(completion.token_ids)
    early = range(1, min(params.min_tokens, len(ids)) + 1) if rule.strings else ()
    if end := next((length for length in early if rule.reached(ids[:length])), None):
        return ids[:end], True
    return ids, completion.finish_reason == "stop"
