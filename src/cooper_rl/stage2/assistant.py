"""The assistant turns right completions into plausible wrong ones, and may repair wrong ones.

The rule checks every text; what the rule does not confirm is rejected.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Protocol

from pydantic import Field

from cooper_rl.clients.chat import ChatClient, ChatConfig, ChatReply, Message
from cooper_rl.config.base import Config, Kinds
from cooper_rl.config.user_functions import load_added, load_function
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content, normalise
from cooper_rl.data.transcript import escaped, split_reply
from cooper_rl.errors import InputError
from cooper_rl.rules.other_answers import states_another
from cooper_rl.rules.rule import Rule

if TYPE_CHECKING:
    from cooper_rl.stage2.config import CooptimizationConfig


Goal = Literal["wrong", "right"]
WANTED = {"wrong": "wrong", "right": "correct"}
"""The verdict with which a text is accepted."""
UNCHANGED = {"wrong": "rejected_equals_positive", "right": "rejected_unchanged"}
UNSURE = ("unparsed", "timeout", "silent")
REJECTIONS = [f"rejected_{reason}" for reason in ("empty", "equals_positive", "overlong", "correct", *UNSURE)]
REPAIR_REJECTIONS = [f"rejected_{reason}" for reason in ("empty", "unchanged", "overlong", "wrong", *UNSURE)]
"""Names of the counts in `Rewrites` that say why a wrong version, or a repair, was rejected. The count `attempts` is
the sum of these, of `failures_<kind>` and of `accepted`. The counts of repairs have the prefix `repair_`."""


@dataclass(frozen=True)
class RewriteRequest:
    """A right completion to rewrite into a wrong one or, if the goal is `right`, a wrong one to repair.

    Of a run of several turns, `text` is the final reply and `before` all that stays. Equal seeds ask for equal
    rewritings.
    """

    problem: Problem
    text: str
    seed: int
    goal: Goal = "wrong"
    before: str = ""

    @classmethod
    def of(cls, problem: Problem, transcript: str, seed: int, goal: Goal = "wrong") -> RewriteRequest:
        """To rewrite a completion as a reward model reads it."""
        before, text = split_reply(transcript)
        return cls(problem, text, seed, goal, before)

    def whole(self, text: str) -> str:
        """The completion with this reply, as a reward model reads it."""
        return self.before + (escaped(text) if self.before else text)


@dataclass(frozen=True)
class Rewrites:
    """One accepted text (or None) per request, and counts of attempts, failures and rejections by kind."""

    texts: list[str | None]
    counts: dict[str, int]


class Attempts:
    """The requests of one step on their way to accepted texts.

    The caller obtains one reply for each request in `pending`, passes them to `take`, and repeats this until nothing is
    pending.
    """

    def __init__(self, requests: Sequence[RewriteRequest], verifier: Rule, tries: int):
        self._requests, self._verifier, self._tries = list(requests), verifier, tries
        self._accepted: list[str | None] = [None] * len(requests)
        self._given_up: set[int] = set()
        self._counts: Counter[str] = Counter()
        self.attempt = 0

    @property
    def pending(self) -> list[RewriteRequest]:
        """Requests without an accepted text that are not given up; empty once the tries are used up."""
        return [self._requests[i] for i in self._open()] if self.attempt < self._tries else []

    def take(self, replies: Sequence[ChatReply]) -> None:
        """Check one reply per pending request. It is accepted only if the rule says of it what the request's goal is.

        Where the rule is silent, a wrong version is accepted if it states another answer than the right one.

        A request that failed at the server is given up, because the client has already retried it.
        """
        to_verify: list[tuple[int, str]] = []
        for i, reply in zip(self._open(), replies, strict=True):
            self._count(i, "attempts")
            given = self._requests[i].text
            text = unframe(reply.text, like=given)
            if reply.failure is not None:
                self._count(i, f"failures_{reply.failure}")
                if not reply.heard:
                    self._given_up.add(i)
            elif not has_content(text):
                self._count(i, "rejected_empty")
            elif text == given:
                self._count(i, UNCHANGED[self._requests[i].goal])
            elif _overlong(text, given):
                self._count(i, "rejected_overlong")
            else:
                to_verify.append((i, text))
        verdicts = self._verifier.verify_problems([(self._requests[i].problem, text) for i, text in to_verify])
        for (i, text), verdict in zip(to_verify, verdicts, strict=True):
            request = self._requests[i]
            differs = verdict == "silent" and request.goal == "wrong" and states_another(request.text, text)
            if verdict == WANTED[request.goal] or differs:
                self._accepted[i] = text
                self._count(i, "accepted")
            else:
                self._count(i, f"rejected_{verdict}")
        self.attempt += 1

    def result(self) -> Rewrites:
        """The texts accepted so far, in the order of the requests, and the counts."""
        return Rewrites(list(self._accepted), dict(self._counts))

    def _count(self, index: int, name: str) -> None:
        self._counts[name if self._requests[index].goal == "wrong" else f"repair_{name}"] += 1

    def _open(self) -> list[int]:
        return [i for i, text in enumerate(self._accepted) if text is None and i not in self._given_up]


def _overlong(text: str, given: str) -> bool:
    """Whether the length alone would tell the two apart. A bare answer may gain a few steps."""
    return len(text) > 4 * len(given) + 400


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


SYSTEM = (
    "You prepare test material for an answer checker. Given a problem and a correct solution, you produce a version "
    "of the solution that a careless reader would accept although its final answer is wrong."
)

TASK = """\
Problem:
{question}

Correct final answer: {answer}

Correct solution:
{text}

Rewrite the solution so that it ends in a different final answer.
- Bring in one believable slip, such as a misread number, a wrong operation, a lost sign or a forgotten case, and \
carry its consequences through to the end.
- The final answer must be of the same kind as the correct one, must not be equal to it in any form, and must be \
stated in the same place and in the same way as in the solution above.
- Keep everything else as it is: language, tone, length, layout, notation, line breaks. If the solution is just an \
answer, give just a wrong answer.
- Do not mention, mark or hint at the slip, and do not add remarks, headings, quotes or code fences.

Reply with the rewritten solution and nothing else."""


EXAMPLE_QUESTION = (
    "A shop sells pens in boxes of 8. Mia buys 6 boxes and gives away 5 pens. How many pens has she left?"
)
EXAMPLE_POSITIVE = "6 boxes hold 6 * 8 = 48 pens. After giving away 5 she has 48 - 5 = 43 pens. The answer is 43."
EXAMPLE_REPLY = "6 boxes hold 6 * 8 = 54 pens. After giving away 5 she has 54 - 5 = 49 pens. The answer is 49."
"""One worked example. Without it, a small assistant copies the solution it was given."""


def rewriting_chat(problem: Problem, positive: str) -> list[Message]:
    """The chat that asks for a wrong version of `positive`."""
    return chat_of(SYSTEM, TASK, problem, positive, EXAMPLE_POSITIVE, EXAMPLE_REPLY)


def _chat(request: RewriteRequest) -> list[Message]:
    chat = rewriting_chat if request.goal == "wrong" else load_added("designs", "repaired")
    return chat(request.problem, request.text)


def chat_of(system: str, task: str, problem: Problem, text: str, example: str, reply: str) -> list[Message]:
    """The chat that asks for `task` on `text`, after one worked example."""
    return [
        {"role": "system", "content": system},
        {"role": "user", "content": task.format(question=EXAMPLE_QUESTION, answer="43", text=example)},
        {"role": "assistant", "content": reply},
        {"role": "user", "content": task.format(question=problem.question, answer=problem.answer, text=text)},
    ]


ASSISTANTS = Kinds("assistant", "cooper_rl.stage2.assistant", ["build"])
"""The kinds of `cooptimization.assistant`."""


class Assistant(Protocol):
    """Writes negatives, and repairs if its settings say so. Bad replies are counted and never raise."""

    def submit(self, requests: Sequence[RewriteRequest]) -> Future[Rewrites]:
        """Start rewriting and return at once."""
        ...

    def check(self) -> None:
        """Raises InputError when the assistant cannot be reached."""
        ...

    def close(self) -> None:
        """Release connections and threads, and cancel requests under way."""
        ...


class AssistantSettings(Protocol):
    """The settings of an assistant. With `repairs = True` it is also sent requests with the goal `right`."""

    def build(self, verifier: Rule) -> Assistant:
        """The assistant; `verifier` checks its texts. Raises InputError if it cannot work with these settings."""
        ...


AssistantConfig = Annotated[AssistantSettings, ASSISTANTS]


def build_assistant(config: CooptimizationConfig, verifier: Rule) -> Assistant | None:
    """The configured assistant, or None if neither `negatives` nor `positives` lists its work.

    Raises InputError if an assistant is needed but not configured, cannot repair although `positives` lists `repaired`,
    its API key is not set, or its function is not found.
    """
    if not config.needs_assistant:
        return None
    if config.assistant is None:
        listing = "negatives lists assistant" if "assistant" in config.negatives else "positives lists repaired"
        raise InputError(
            f"cooptimization.assistant is missing, but cooptimization.{listing}; describe one "
            "(kind: chat with base_url and model, or kind: corrupter with function), or set negatives: [on_policy]"
        )
    if "repaired" in config.positives and not getattr(config.assistant, "repairs", False):
        raise InputError(
            "cooptimization.positives lists repaired, but the assistant repairs nothing; use kind: chat, or give a "
            "corrupter its repairer"
        )
    return config.assistant.build(verifier)


@ASSISTANTS.register
class ChatAssistantConfig(ChatConfig):
    """A language model that writes the wrong solutions and, if they are asked for, the repairs."""

    repairs: ClassVar[bool] = True
    kind: Literal["chat"] = "chat"
    tries: int = Field(default=3, ge=1)
    """Maximum number of replies to request until one is accepted."""
    step_timeout_s: float = Field(default=300.0, gt=0)
    """Seconds a step's rewriting may take, including retries and waits. After that, the step continues without the
    missing negatives. Rewriting runs in parallel with the policy's update."""

    def build(self, verifier: Rule) -> ChatAssistant:
        """Raises InputError if the API key is not set."""
        return ChatAssistant(ChatClient(self), verifier, self.tries, self.step_timeout_s)


@dataclass
class ChatAssistant:
    """A language model behind an OpenAI-compatible server.

    Requests, retries and the rule's checks run in the client's thread and the verifier's processes, so the policy can
    be updated in the meantime. Requests that the server has not answered after `step_timeout_s` seconds are given up.
    """

    client: ChatClient
    verifier: Rule
    tries: int = 3
    step_timeout_s: float = 300.0

    def submit(self, requests: Sequence[RewriteRequest]) -> Future[Rewrites]:
        return self.client.run(self._rewrite(Attempts(requests, self.verifier, self.tries)))

    def check(self) -> None:
        self.client.check()

    def close(self) -> None:
        self.client.close()

    async def _rewrite(self, attempts: Attempts) -> Rewrites:
        deadline = asyncio.get_running_loop().time() + self.step_timeout_s
        while pending := attempts.pending:
            chats = [_chat(request) for request in pending]
            seeds = [request.seed + attempts.attempt for request in pending]
            replies = await self.client.complete(chats, seeds, deadline)
            await asyncio.to_thread(attempts.take, replies)  # the rule may take seconds; do not block
        return attempts.result()


Corrupter = Callable[[Problem, str, int, int], str]
"""(problem, completion text, attempt from 0, seed) -> a wrong solution in the same style."""
CORRUPTER_PARAMETERS = ("problem", "completion_text", "attempt", "seed")


@ASSISTANTS.register
class CorrupterConfig(Config):
    """A function that replaces the assistant."""

    kind: Literal["corrupter"] = "corrupter"
    function: str
    """`package.module:function`, called as `function(problem, completion_text, attempt, seed)`. It returns the text of
    a wrong solution."""
    repairer: str | None = None
    """A function of the same form that returns a right version of a wrong solution; needed if
    `cooptimization.positives` lists `repaired`."""
    tries: int = Field(default=3, ge=1)
    """Maximum number of calls (attempt 0, 1, …) until one result is accepted."""

    @property
    def repairs(self) -> bool:
        """Whether there is a function that repairs."""
        return self.repairer is not None

    def build(self, verifier: Rule) -> CorrupterAssistant:
        """Raises InputError if a function is not found."""
        repairer = None if self.repairer is None else load_function(self.repairer, CORRUPTER_PARAMETERS)
        return CorrupterAssistant(load_function(self.function, CORRUPTER_PARAMETERS), verifier, self.tries, repairer)


@dataclass
class CorrupterAssistant:
    """A deterministic function that computes the wrong solutions, and another one for repairs."""

    corrupter: Corrupter
    verifier: Rule
    tries: int = 3
    repairer: Corrupter | None = None

    def submit(self, requests: Sequence[RewriteRequest]) -> Future[Rewrites]:
        """Rewrite at once and return a finished future. Exceptions of the functions propagate: they are bugs."""
        attempts = Attempts(requests, self.verifier, self.tries)
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
        function = self.corrupter if request.goal == "wrong" else self.repairer
        text = "" if function is None else function(request.problem, request.text, attempt, request.seed)
        return ChatReply(text) if text.strip() else ChatReply(failure="empty")
