"""Turns a sampler's columns into records, for tests that look at single completions."""

from dataclasses import dataclass

from cooper_rl.engines.base import Sampler
from cooper_rl.engines.config import SamplingParams
from cooper_rl.records import Column


@dataclass(frozen=True)
class Drawn:
    """One completion."""

    text: str
    token_ids: list[int]
    logprobs: list[float]
    stopped: bool


def draw(sampler: Sampler, prompts: list[list[int]], n: int, params: SamplingParams, seed: int) -> list[list[Drawn]]:
    """Sample `n` completions of each prompt."""
    samples = sampler.sample(prompts, n, params, seed)
    logprobs_of = Column(samples.logprobs, samples.token_ids.offsets)
    columns = zip(samples.texts, samples.token_ids, logprobs_of, samples.stopped, strict=True)
    rows = [Drawn(text, ids.tolist(), logprobs.tolist(), bool(stopped)) for text, ids, logprobs, stopped in columns]
    return [rows[start : start + n] for start in range(0, len(rows), n)]
