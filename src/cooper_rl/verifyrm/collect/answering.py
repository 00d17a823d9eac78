"""Models that write the completions for `collect`, in this process or behind a server."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cooper_rl.clients.chat import ChatClient
from cooper_rl.data.config import PromptConfig
from cooper_rl.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder, chat_messages
from cooper_rl.engines.local.sampler import NativeSampler
from cooper_rl.verifyrm.collect.config import ChatModelConfig, LocalModelConfig, ModelConfig


@dataclass(frozen=True)
class Answered:
    """One completion, or the reason for its absence. `outcome` is `stop`, `length`, `too_long` or a `FailureKind`."""

    text: str | None
    outcome: str


class AnsweringModel(Protocol):
    """Draws completions. A failure is an `Answered` without text and never an exception."""

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """`n` completions for each problem."""
        ...

    def check(self) -> None:
        """Raises InputError if the model cannot be reached."""
        ...

    def close(self) -> None:
        """Release connections and threads."""
        ...


def open_model(config: ModelConfig) -> AnsweringModel:
    """Load the model, or connect to its server. Raises InputError for an unusable folder or a missing key."""
    return LocalModel(config) if isinstance(config, LocalModelConfig) else ChatModel(config)


def batch_seed(seed: int, *names: str) -> int:
    """A seed for one unit of work. It differs between units and is the same in every run."""
    return zlib.crc32("\n".join([str(seed), *names]).encode())


class LocalModel:
    """A model in this process, with the native sampler."""

    def __init__(self, config: LocalModelConfig) -> None:
        self._config = config
        self._sampler = NativeSampler.from_folder(
            config.model, device=config.device, max_rows=config.max_rows, autocast=config.autocast
        )

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """See `AnsweringModel`. A prompt that leaves no room for the completion is `too_long`."""
        sampling = self._config.sampling
        encoder = PromptEncoder(self._sampler.tokenizer, prompt)
        prompts = [encoder.encode(problem) for problem in problems]
        room = self._sampler.room(sampling.max_tokens)
        fits = [i for i, ids in enumerate(prompts) if room is None or len(ids) <= room]
        answers = [[Answered(None, "too_long")] * n for _ in problems]
        drawn = list(self._sampler.sample([prompts[i] for i in fits], n, sampling, seed).answers())
        for place, i in enumerate(fits):
            own = drawn[place * n : (place + 1) * n]
            answers[i] = [Answered(answer.text, "stop" if answer.stopped else "length") for answer in own]
        return answers

    def check(self) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Does nothing."""


class ChatModel:
    """A model behind a chat server. The user message is the dataset's prompt template, filled in."""

    def __init__(self, config: ChatModelConfig) -> None:
        self._client = ChatClient(config)

    def answer(self, problems: Sequence[Problem], prompt: PromptConfig, n: int, seed: int) -> list[list[Answered]]:
        """See `AnsweringModel`. A reply cut off at `max_tokens` counts as a completion, as with a local model."""
        chats = [chat_messages(prompt, problem) for problem in problems for _ in range(n)]
        seeds = [(seed + number) % 2**31 for number in range(len(chats))]
        replies = self._client.submit(chats, seeds).result()
        answers = []
        for reply in replies:
            if reply.failure is None:
                answers.append(Answered(reply.text, "stop"))
            elif reply.failure == "truncated" and reply.text.strip():
                answers.append(Answered(reply.text, "length"))
            else:
                answers.append(Answered(None, reply.failure))
        return [answers[start : start + n] for start in range(0, len(answers), n)]

    def check(self) -> None:
        """See `AnsweringModel`."""
        self._client.check()

    def close(self) -> None:
        """See `AnsweringModel`."""
        self._client.close()
