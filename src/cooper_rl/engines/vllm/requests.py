"""What vLLM is asked for, and its answers as `Samples`: one request a completion, with a seed of its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cooper_rl.engines.base import EngineLost
from cooper_rl.engines.local.stops import StopRule
from cooper_rl.engines.sampling import SamplingParams
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Column, Samples


@dataclass(frozen=True)
class Request:
    """One completion that is wanted; `params` are vLLM's SamplingParams as plain data."""

    prompt: list[int]
    params: dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """One completion as vLLM reports it: the tokens it drew, `stop` or `length`, and whose weights drew it."""

    token_ids: Sequence[int]
    logprobs: Sequence[float]
    finish_reason: str | None
    versions: Sequence[str]


def requests(
    prompts: Sequence[Sequence[int]], n: int, params: SamplingParams, rule: StopRule, context: int, seed: int
) -> list[Request]:
    """`n` requests for each prompt. Raises InputError for a prompt that is empty or fills the `context`.

    Equal seeds draw equal noise in vLLM, so every completion has one of its own, from the step's seed and its place.
    """
    shared = {
        "temperature": params.temperature,
        "top_p": params.top_p,
        "top_k": params.top_k,
        "min_p": params.min_p,
        "min_tokens": params.min_tokens,
        "logprobs": 0,  # of the token drawn alone
        "stop": list(rule.strings),
        "stop_token_ids": sorted(rule.token_ids),
        "ignore_eos": True,  # what ends a completion stands in `stop_token_ids`
        "detokenize": bool(rule.strings),
    }
    wanted = []
    for index, prompt in enumerate(prompts):
        limit = completion_limit(context, index, prompt, params)
        for sample in range(n):
            own = {"max_tokens": limit, "min_tokens": min(params.min_tokens, limit), "seed": _seed(seed, index, sample)}
            wanted.append(Request([int(token) for token in prompt], shared | own))
    return wanted


def completion_limit(context: int, index: int, prompt: Sequence[int], params: SamplingParams) -> int:
    """Most tokens that may follow a prompt. Raises InputError as the native sampler does."""
    if len(prompt) == 0:
        raise InputError(f"prompt {index} is empty: the model needs at least one token to continue from")
    if len(prompt) >= context:
        raise InputError(
            f"prompt {index} has {len(prompt)} tokens and the engine's context is {context}: nothing could follow it. "
            "Shorten or drop the prompt, raise max_model_len, or choose a model with a longer context"
        )
    return min(params.max_tokens, context - len(prompt))


def samples(drawn: Sequence[Drawn], params: SamplingParams, rule: StopRule) -> Samples:
    """The answers in the learner's conventions.

    vLLM's `processed_logprobs` are of logits / temperature, of the tokens that may be drawn: those of a learner where
    every token may be. Otherwise they compare with nothing, and are NaN here. Raises FloatingPointError for
    log-probabilities that are not finite, RuntimeError for a completion that was given up.
    """
    given_up = next((one for one in drawn if one.finish_reason not in ("stop", "length")), None)
    if given_up is not None:
        raise RuntimeError(f"vLLM ended a completion with finish_reason {given_up.finish_reason!r}")
    cut = [_cut(one, params, rule) for one in drawn]
    token_ids = Column.of([np.asarray(ids, np.int32) for ids, _ in cut], np.int32)
    reported = [np.asarray(one.logprobs[: len(ids)], np.float32) for one, (ids, _) in zip(drawn, cut, strict=True)]
    logprobs = Column.of(reported, np.float32).values
    if not np.isfinite(logprobs).all():
        raise FloatingPointError("the sampled model's logits are not finite: its weights have probably diverged")
    return Samples(
        token_ids=token_ids,
        logprobs=np.full_like(logprobs, np.nan) if params.truncations else logprobs,
        stopped=np.array([stopped for _, stopped in cut], bool),
        texts=rule.texts([ids for ids, _ in cut]),
    )


def check_versions(drawn: Iterable[Drawn], version: str) -> None:
    """Raises EngineLost where other weights than those of `version` drew a token."""
    others = {found for one in drawn for found in one.versions} - {version}
    if others:
        raise EngineLost(
            f"an engine drew with weights of version {', '.join(sorted(others))} and not {version}: it was restarted, "
            "or somebody else has changed its weights"
        )


def _cut(one: Drawn, params: SamplingParams, rule: StopRule) -> tuple[list[int], bool]:
    """Tokens and whether they were stopped. vLLM looks for no stop string before `min_tokens`; here they end all."""
    ids = list(one.token_ids)
    if rule.strings and params.min_tokens:
        for length in range(1, min(params.min_tokens, len(ids)) + 1):
            if rule.reached(ids[:length]):
                return ids[:length], True
    return ids, one.finish_reason == "stop"


def _seed(seed: int, prompt: int, sample: int) -> int:
    """63 bits, as different for neighbouring seeds and places as for distant ones."""
    state = np.random.SeedSequence([seed % 2**64, prompt, sample]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))
