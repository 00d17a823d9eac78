"""Judges: language models that say whether an answer agrees with its reference. One behind a server, or a kind of your
own; a judge in this process comes with `cooper-rl`. `ChatAsking` asks a server, for these and for other questions."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar
from zlib import crc32

from pydantic import Field

from cooper_base.config.base import Config, Kinds, mapping_of
from cooper_base.config.checking import check_settings, read_settings
from cooper_base.config.user_functions import brought_by_training
from cooper_base.errors import InputError
from cooper_verify.clients.chat import HANDLING, ChatClient, ChatConfig, ChatReply, Message
from cooper_verify.grader import NO_ANSWER, UNREADABLE, Asked, Grader, Opinion
from cooper_verify.graders.judgement import Judgement, judge_chat, judgement_of

Reading = Literal["text", "first_token"]
T = TypeVar("T")
Question = tuple[list[Message], Callable[[ChatReply], T | None]]
"""A chat, and what reads the reply. The reader returns None for a reply without what is asked for."""
Tally = Counter[str]
"""The number of `requests`, and how many of them failed, by kind, or were `unreadable`."""


class ChatAsking:
    """Asks a chat server. The connection opens at the first question."""

    def __init__(self, config: ChatConfig, first_token_only: bool = False) -> None:
        self._config, self._first_token_only = config, first_token_only
        self._client: ChatClient | None = None

    def client(self) -> ChatClient:
        """The connection. Raises InputError if `api_key_env` is not set."""
        if self._client is None:
            self._client = ChatClient(self._config, self._first_token_only)
        return self._client

    def replies(
        self, chats: Sequence[list[Message]], seeds: Sequence[int] | None = None, within_s: float | None = None
    ) -> list[ChatReply]:
        """The reply to each chat, in order. Those that take longer than `within_s` seconds together are given up."""
        client = self.client()

        async def asked() -> list[ChatReply]:
            deadline = None if within_s is None else asyncio.get_running_loop().time() + within_s
            return await client.complete(chats, seeds, deadline)

        return client.run(asked()).result()

    def ask(self, questions: Sequence[Question[T]], tally: Tally, within_s: float | None = None) -> list[T | None]:
        """What each question's reader finds in the reply, in order; None where there is nothing to find.

        Equal chats are sent once, with equal seeds. `tally` counts requests and failures.
        """
        texts = [json.dumps(chat) for chat, _ in questions]
        chats = {text: chat for text, (chat, _) in zip(texts, questions, strict=True)}
        seeds = [crc32(text.encode()) for text in chats]
        reply_to = dict(zip(chats, self.replies([*chats.values()], seeds, within_s) if chats else [], strict=True))
        found = [read(reply_to[text]) for text, (_, read) in zip(texts, questions, strict=True)]
        unread = dict.fromkeys(text for text, value in zip(texts, found, strict=True) if value is None)
        tally["requests"] += len(chats)
        tally.update(reply_to[text].failure or "unreadable" for text in unread)
        return found

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


class Judge(ABC):
    """A language model that is asked for yes or no. Only `judge` is abstract."""

    @abstractmethod
    def judge(self, answers: Sequence[Asked], /) -> list[Judgement]:
        """One judgement for each answer, in order. A reply that cannot be read is `unreadable`."""

    def check(self) -> None:
        """Raises InputError if it cannot be asked: its server does not answer."""
        return

    def close(self) -> None:
        """Release processes and connections."""
        return


class JudgeConfig(Protocol):
    """Settings of a judge."""

    @property
    def read(self) -> Reading:
        """Whether its reply is parsed, or the probabilities of yes and no as its first token are compared."""
        ...

    def build(self) -> Judge:
        """The judge. Raises InputError if it cannot be loaded."""
        ...


JUDGES = Kinds("judge", "cooper_verify.graders.judge", needs=["read", "build"])
"""The kinds of judge: `chat`, those of installed packages (`local`), or `kind: package.module:Class`."""


@JUDGES.register
class ChatJudgeConfig(ChatConfig):
    """A judge behind an OpenAI-compatible server."""

    kind: Literal["chat"] = "chat"
    """Names this kind of judge."""
    read: Reading = "text"
    """`text` parses the reply; `first_token` compares the probabilities of yes and no, which the server must send."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature."""
    max_tokens: int = Field(default=16, ge=1)
    """Longest reply, in tokens. A judge that thinks aloud needs more. With `first_token` only one is asked for."""

    def build(self) -> "ChatJudge":
        """Raises InputError if `api_key_env` is not set."""
        return ChatJudge(self)


class ChatJudge(Judge):
    """A language model behind an OpenAI-compatible server."""

    def __init__(self, config: ChatJudgeConfig) -> None:
        self._read_first_token = config.read == "first_token"
        self._asking = ChatAsking(config, self._read_first_token)
        self._asking.client()  # a missing key is reported now

    def judge(self, answers: Sequence[Asked], /) -> list[Judgement]:
        chats = [judge_chat(problem.question, problem.answer, text) for problem, text in answers]
        return [judgement_of(reply, self._read_first_token) for reply in self._asking.replies(chats)]

    def check(self) -> None:
        """Raises InputError if the server does not answer or, with `first_token`, sends no probabilities."""
        client = self._asking.client()
        client.check()
        if self._read_first_token:
            [reply] = client.submit([judge_chat("What is 1 + 1?", "2", "2")]).result()
            if not reply.first_token:
                raise InputError(
                    f"chat server {client.config.base_url}: sends no token probabilities; set judge.read: text"
                )

    def close(self) -> None:
        self._asking.close()


class JudgeGrader(Grader):
    """A judge as a grader. It is loaded, or its server checked, when it is first asked."""

    accepts_above = 0.5
    compares_answers = False

    def __init__(self, config: JudgeConfig, name: str = "judge") -> None:
        self.name = name
        self.gives_probabilities = config.read == "first_token"
        self._config = config
        self._judge: Judge | None = None

    def settings(self) -> dict[str, Any]:
        """The settings that decide the judge's verdicts."""
        return judge_settings(self._config)

    def judgements(self, answers: Sequence[Asked]) -> list[Judgement]:
        """What the judge said, with its replies. Raises InputError if it cannot be loaded or does not answer at all."""
        return self.opened().judge(answers)

    def opened(self) -> Judge:
        """The judge. Raises InputError if it cannot be loaded, or its server does not answer."""
        if self._judge is None:
            self._judge = self._config.build()
            self._judge.check()
        return self._judge

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """`correct` for yes and `wrong` for no, with the probability of yes where it was read. A reply without a
        verdict is `unparsed`. Raises InputError as `judgements` does."""
        return [_opinion_of(judgement) for judgement in self.judgements(answers)]

    def close(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._judge = None


def _opinion_of(said: Judgement) -> Opinion:
    if said.verdict == "unreadable":
        return Opinion("unparsed", None, NO_ANSWER) if said.failed else Opinion("unparsed", 0.0, UNREADABLE)
    yes = said.verdict == "yes"
    return Opinion("correct" if yes else "wrong", float(yes) if said.probability is None else said.probability)


def judge_settings(config: JudgeConfig) -> dict[str, Any]:
    """The settings that decide a judge's verdicts, for a journal."""
    assert isinstance(config, Config)
    values = JUDGES.dump(config)
    return {name: value for name, value in values.items() if name not in {*HANDLING, "max_rows", "device"}}


class JudgeFile(Config):
    """A YAML file with one judge."""

    judge: Annotated[JudgeConfig, JUDGES]
    """The judge, of `kind: chat` or `kind: local`."""


def read_judge(path: Path, overrides: Sequence[str] = ()) -> JudgeConfig:
    """The judge of a YAML file with `judge:`, over which `overrides` ("judge.max_tokens=32") win. Raises InputError for
    any other file, and MissingExtraError for a judge in this process without `cooper-rl`."""
    settings = read_settings(path, overrides)
    if mapping_of(settings.values.get("judge")).get("kind") == "local":
        brought_by_training("kinds", "judge.local", f"{path}: a judge in this process")
    return check_settings(JudgeFile, settings).judge
