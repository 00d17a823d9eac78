"""The assistant rewrites completions: by default, right ones into plausible wrong ones.

The rule checks every text; what the rule does not confirm is rejected.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, Protocol, get_args

from cooper_base.config.base import Config, Kinds
from cooper_base.config.user_functions import load_function
from cooper_base.data.problem import Problem
from cooper_base.data.text import has_content, normalise
from cooper_base.data.transcript import escaped, split_reply
from cooper_rl.reward.pairs.base import MadePairs, Pair, PairGroup, PairSource
from cooper_rl.reward.pairs.rewriting_prompt import rewriting_chat
from cooper_verify.clients.chat import ChatReply, FailureKind, Message
from cooper_verify.rules.other_answers import states_another
from cooper_verify.rules.rule import Rule

if TYPE_CHECKING:
    from cooper_rl.reward.context import StepContext

TRIES = 3
"""Texts to ask for until one is a valid negative."""
UNSURE = ("unparsed", "timeout", "silent")
REJECTIONS = [f"rejected_{reason}" for reason in ("empty", "equals_positive", "overlong", "correct", *UNSURE)]
"""Names of the counts in `Rewrites` that say why a wrong version was rejected. The count `attempts` is the sum of
these, of `failures_<kind>` and of `accepted`."""


@dataclass(frozen=True)
class RewriteRequest:
    """A completion to rewrite.

    Of a run of several turns, `text` is the final reply and `before` all that stays. Equal seeds ask for equal
    rewritings.
    """

    problem: Problem
    text: str
    seed: int
    before: str = ""

    @classmethod
    def of(cls, problem: Problem, transcript: str, seed: int) -> RewriteRequest:
        """To rewrite a completion as a reward model reads it."""
        before, text = split_reply(transcript)
        return cls(problem, text, seed, before)

    def whole(self, text: str) -> str:
        """The completion with this reply, as a reward model reads it."""
        return self.before + (escaped(text) if self.before else text)


@dataclass(frozen=True)
class Rewrites:
    """One accepted text (or None) per request, and counts of attempts, failures and rejections by kind."""

    texts: list[str | None]
    counts: dict[str, int]


@dataclass(frozen=True)
class RewritingTask:
    """What becomes of a completion, and which texts are accepted."""

    chat: Callable[[Problem, str], list[Message]]
    """The chat that asks for it, from the problem and the completion's text."""
    accepts: Callable[[RewriteRequest, str, str], bool]
    """Whether a text is what was asked for: (request, text, the rule's verdict on the text)."""
    rejection_of_copies: str = "rejected_equals_positive"
    """The name of the count of texts that are the completion itself."""


_OPENER = re.compile(
    r"\A\s*(?:sure|certainly|of course|okay|ok|here(?:'s| is| are))\b[^\n]{0,200}:[ \t]*\n+", re.IGNORECASE
)
_FENCE = re.compile(r"\A\s*```[^\n`]*\n((?:(?!```).)*?)\n?```\s*\Z", re.DOTALL)


def unframe(reply: str, like: str) -> str:
    """The reply without the chat frames around the solution, except for frames that `like` (the positive) has too.

    The frames are an opening line ("Sure, here is …:") and a code fence around everything
    that is left. A frame that the positive has is the policy's style, so it stays. The result is normalised,
    which leaves out thoughts.
    """
    reply = normalise(reply)
    for frame in (_OPENER, _FENCE):
        if not frame.match(like):
            reply = frame.sub(r"\1" if frame.groups else "", reply)
    return normalise(reply)


def _is_wrong_version(request: RewriteRequest, text: str, verdict: str) -> bool:
    """Whether the rule rejects the text. Where it is silent, the text must state another answer than the right one."""
    return verdict == "wrong" or (verdict == "silent" and states_another(request.text, text))


WRONG_VERSION = RewritingTask(rewriting_chat, _is_wrong_version)
"""A right completion becomes a plausible wrong one."""


class Attempts:
    """The requests of one step on their way to accepted texts.

    The caller obtains one reply for each request in `pending`, passes them to `take`, and repeats this until nothing is
    pending.
    """

    def __init__(
        self, requests: Sequence[RewriteRequest], verifier: Rule, tries: int, task: RewritingTask = WRONG_VERSION
    ):
        self._requests, self._verifier, self._tries = list(requests), verifier, tries
        self._task = task
        self._accepted: list[str | None] = [None] * len(requests)
        self._given_up: set[int] = set()
        self._counts: Counter[str] = Counter()
        self.attempt = 0

    @property
    def pending(self) -> list[RewriteRequest]:
        """Requests without an accepted text that are not given up; empty once the tries are used up."""
        return [self._requests[i] for i in self._open()] if self.attempt < self._tries else []

    def take(self, replies: Sequence[ChatReply]) -> None:
        """Check one reply per pending request, by the rule and the task.

        A request that failed at the server is given up, because the client has already retried it.
        """
        to_verify: list[tuple[int, str]] = []
        for i, reply in zip(self._open(), replies, strict=True):
            self._counts["attempts"] += 1
            given = self._requests[i].text
            text = unframe(reply.text, like=given)
            if reply.failure is not None:
                self._counts[f"failures_{reply.failure}"] += 1
                if not reply.heard:
                    self._given_up.add(i)
            elif not has_content(text):
                self._counts["rejected_empty"] += 1
            elif text == given:
                self._counts[self._task.rejection_of_copies] += 1
            elif len(text) > 4 * len(given) + 400:  # the length alone would tell the two apart; a bare answer may grow
                self._counts["rejected_overlong"] += 1
            else:
                to_verify.append((i, text))
        verdicts = self._verifier.verify_problems([(self._requests[i].problem, text) for i, text in to_verify])
        for (i, text), verdict in zip(to_verify, verdicts, strict=True):
            accepted = self._task.accepts(self._requests[i], text, verdict)
            if accepted:
                self._accepted[i] = text
            self._counts["accepted" if accepted else f"rejected_{verdict}"] += 1
        self.attempt += 1

    def result(self) -> Rewrites:
        """The texts accepted so far, in the order of the requests, and the counts."""
        return Rewrites(list(self._accepted), dict(self._counts))

    def _open(self) -> list[int]:
        return [i for i, text in enumerate(self._accepted) if text is None and i not in self._given_up]


ASSISTANTS = Kinds("assistant", "cooper_rl.reward.pairs.chat_assistant", ["build"])
"""The kinds of `cooptimization.assistant`."""


class Assistant(Protocol):
    """Writes negatives. Bad replies are counted and never raise."""

    def submit(self, requests: Sequence[RewriteRequest]) -> Future[Rewrites]:
        """Start rewriting and return at once."""
        ...

    def check(self) -> None:
        """Raises InputError when the assistant cannot be reached."""

    def close(self) -> None:
        """Release connections and threads, and cancel requests under way."""


class AssistantSettings(Protocol):
    """The settings of an assistant."""

    def build(self, verifier: Rule) -> Assistant:
        """The assistant; `verifier` checks its texts. Raises InputError if it cannot work with these settings."""
        ...


AssistantConfig = Annotated[AssistantSettings, ASSISTANTS]


Corrupter = Callable[[Problem, str, int, int], str]
"""(problem, completion text, attempt from 0, seed) -> a wrong solution in the same style."""
CORRUPTER_PARAMETERS = ("problem", "completion_text", "attempt", "seed")


@ASSISTANTS.register
class CorrupterConfig(Config):
    """A function that replaces the assistant."""

    kind: Literal["corrupter"] = "corrupter"
    function: str
    """`package.module:function`, called as `function(problem, completion_text, attempt, seed)`. It returns the text of
    a wrong solution, at the third attempt (0, 1, 2) at the latest."""

    def build(self, verifier: Rule, task: RewritingTask = WRONG_VERSION) -> CorrupterAssistant:
        """Raises InputError if the function is not found."""
        return CorrupterAssistant(load_function(self.function, CORRUPTER_PARAMETERS), verifier, task=task)


@dataclass
class CorrupterAssistant:
    """A deterministic function that computes the wrong solutions."""

    corrupter: Corrupter
    verifier: Rule
    tries: int = TRIES
    task: RewritingTask = WRONG_VERSION

    def submit(self, requests: Sequence[RewriteRequest]) -> Future[Rewrites]:
        """Rewrite at once and return a finished future. Exceptions of the function propagate: they are bugs."""
        attempts = Attempts(requests, self.verifier, self.tries, self.task)
        while pending := attempts.pending:
            attempts.take([self._reply(request, attempts.attempt) for request in pending])
        future: Future[Rewrites] = Future()
        future.set_result(attempts.result())
        return future

    def check(self) -> None:
        """There is nothing to reach."""

    def close(self) -> None:
        """There is nothing to release."""

    def _reply(self, request: RewriteRequest, attempt: int) -> ChatReply:
        text = self.corrupter(request.problem, request.text, attempt, request.seed)
        return ChatReply(text) if text.strip() else ChatReply(failure="empty")


Started = tuple[Mapping[str, Sequence[RewriteRequest]], "Future[Rewrites] | None"]
"""The requests for some groups, by the group's id, and what becomes of them; None if there are none."""


class RewritingSource(PairSource):
    """A source whose pairs an assistant writes, while the policy is updated.

    Its metrics are `assistant/<prefix><count>`, for every count of `Rewrites` with these `rejections`.
    """

    def __init__(self, assistant: Assistant, rejections: Sequence[str], prefix: str = "") -> None:
        self._assistant, self._rejections, self._prefix = assistant, rejections, prefix

    @abstractmethod
    def requests(self, groups: Sequence[PairGroup], context: StepContext) -> Mapping[str, Sequence[RewriteRequest]]:
        """What to ask for, by the group's id."""

    @abstractmethod
    def pair(self, group: PairGroup, request: RewriteRequest, text: str) -> Pair:
        """The pair of a request and the text that was accepted for it."""

    def start(self, groups: Sequence[PairGroup], context: StepContext) -> Started:
        requests = self.requests(groups, context)
        everything = [request for group in groups for request in requests[group.id]]
        return requests, self._assistant.submit(everything) if everything else None

    def pairs(self, groups: Sequence[PairGroup], started: Sequence[Started]) -> MadePairs:
        """Wait for the assistant, as long as its settings allow. The counts are of all requests of the step."""
        written: dict[str, list[tuple[RewriteRequest, str | None]]] = {}
        counts = Counter[str]()
        for requests, future in started:
            rewrites = future.result() if future is not None else Rewrites([], {})
            counts.update(rewrites.counts)
            texts = iter(rewrites.texts)
            written |= {id: [(request, next(texts)) for request in of_group] for id, of_group in requests.items()}
        pairs = [
            self.pair(group, request, text)
            for group in groups
            for request, text in written[group.id]
            if text is not None
        ]
        names = ["attempts", "accepted", *(f"failures_{kind}" for kind in get_args(FailureKind)), *self._rejections]
        metrics = {f"assistant/{self._prefix}{name}": float(counts.get(name, 0)) for name in names}
        return MadePairs(pairs, metrics)
