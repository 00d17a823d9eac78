"""Turns an assistant's attempts into trusted texts: accepts, rejects, retries and counts them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from cooper_rl.clients.chat import ChatReply
from cooper_rl.cooptimization.negatives.framing import unframe
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content

REJECTIONS = tuple(
    f"rejected_{reason}" for reason in ("empty", "equals_positive", "overlong", "correct", "unparsed", "timeout")
)
"""Names of the counts in `Rewrites` that say why a wrong version was rejected. The count `attempts` is the sum of
these, of `failures_<kind>` and of `accepted`. The counts of repairs have the prefix `repair_`."""
REPAIR_REJECTIONS = tuple(
    f"rejected_{reason}" for reason in ("empty", "unchanged", "overlong", "wrong", "unparsed", "timeout")
)
"""The same for repairs."""
Goal = Literal["wrong", "right"]
WANTED = {"wrong": "wrong", "right": "correct"}
"""The verdict with which a text is accepted."""
UNCHANGED = {"wrong": "rejected_equals_positive", "right": "rejected_unchanged"}


class AnswerVerifier(Protocol):
    """The rule. It gives one verdict (`correct`, `wrong`, `unparsed`, `timeout`) per problem and completion.

    Safe to use from several threads.
    """

    def verify_problems(self, asked: Sequence[tuple[Problem, str]], /) -> Sequence[str]: ...


@dataclass(frozen=True)
class Request:
    """A right completion to rewrite into a wrong one or, if the goal is `right`, a wrong one to repair.

    Equal seeds ask for equal rewritings.
    """

    problem: Problem
    text: str
    seed: int
    goal: Goal = "wrong"


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

    def __init__(self, requests: Sequence[Request], verifier: AnswerVerifier, tries: int):
        self._requests = list(requests)
        self._verifier = verifier
        self._tries = tries
        self._accepted: list[str | None] = [None] * len(requests)
        self._given_up: set[int] = set()
        self._counts: Counter[str] = Counter()
        self.attempt = 0

    @property
    def pending(self) -> list[Request]:
        """Requests without an accepted text that are not given up; empty once the tries are used up."""
        return [self._requests[i] for i in self._open()] if self.attempt < self._tries else []

    def take(self, replies: Sequence[ChatReply]) -> None:
        """Check one reply per pending request. It is accepted only if the rule says of it what the request's goal is.

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
            if verdict == WANTED[self._requests[i].goal]:
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
