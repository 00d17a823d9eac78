"""Turns an assistant's attempts into trusted negatives: accepts, rejects, retries and counts them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cooper_rl.clients.chat_reply import ChatReply
from cooper_rl.cooptimization.negatives.framing import unframe
from cooper_rl.data.problem import Problem
from cooper_rl.data.text import has_content

REJECTIONS = tuple(
    f"rejected_{reason}" for reason in ("empty", "equals_positive", "overlong", "correct", "unparsed", "timeout")
)
"""Names of the counts in `Rewrites` that say why a reply was rejected. The count `attempts` is the sum of these, of
`failures_<kind>` and of `accepted`."""


class AnswerVerifier(Protocol):
    """The rule. It gives one verdict (`correct`, `wrong`, `unparsed`, `timeout`) per problem and completion.

    Safe to use from several threads.
    """

    def verify_problems(self, asked: Sequence[tuple[Problem, str]], /) -> Sequence[str]: ...


@dataclass(frozen=True)
class Request:
    """A right completion to rewrite into a wrong one. Equal seeds ask for equal rewritings."""

    problem: Problem
    positive: str
    seed: int


@dataclass(frozen=True)
class Rewrites:
    """One accepted negative (or None) per request, and counts of attempts, failures and rejections by kind."""

    negatives: list[str | None]
    counts: dict[str, int]


class Attempts:
    """The requests of one step on their way to accepted negatives.

    The caller obtains one reply for each request in `pending`, passes them to `take`, and repeats this until nothing is
    pending.
    """

    def __init__(self, requests: Sequence[Request], verifier: AnswerVerifier, tries: int):
        self._requests = list(requests)
        self._verifier = verifier
        self._tries = tries
        self._negatives: list[str | None] = [None] * len(requests)
        self._given_up: set[int] = set()
        self._counts: Counter[str] = Counter()
        self.attempt = 0

    @property
    def pending(self) -> list[Request]:
        """Requests without an accepted negative that are not given up; empty once the tries are used up."""
        return [self._requests[i] for i in self._open()] if self.attempt < self._tries else []

    def take(self, replies: Sequence[ChatReply]) -> None:
        """Check one reply per pending request. It is accepted only if the rule's verdict on it is `wrong`.

        A request that failed at the server is given up, because the client has already retried it.
        """
        to_verify: list[tuple[int, str]] = []
        for i, reply in zip(self._open(), replies, strict=True):
            self._counts["attempts"] += 1
            positive = self._requests[i].positive
            text = unframe(reply.text, like=positive)
            if reply.failure is not None:
                self._counts[f"failures_{reply.failure}"] += 1
                if not reply.heard:
                    self._given_up.add(i)
            elif not has_content(text):
                self._counts["rejected_empty"] += 1
            elif text == positive:
                self._counts["rejected_equals_positive"] += 1
            elif _overlong(text, positive):
                self._counts["rejected_overlong"] += 1
            else:
                to_verify.append((i, text))
        verdicts = self._verifier.verify_problems([(self._requests[i].problem, text) for i, text in to_verify])
        for (i, text), verdict in zip(to_verify, verdicts, strict=True):
            if verdict == "wrong":
                self._negatives[i] = text
                self._counts["accepted"] += 1
            else:
                self._counts[f"rejected_{verdict}"] += 1
        self.attempt += 1

    def result(self) -> Rewrites:
        """The negatives accepted so far, in the order of the requests, and the counts."""
        return Rewrites(list(self._negatives), dict(self._counts))

    def _open(self) -> list[int]:
        return [i for i, text in enumerate(self._negatives) if text is None and i not in self._given_up]


def _overlong(text: str, positive: str) -> bool:
    """Whether the length alone would tell the negative from the positive. A bare answer may gain a few steps."""
    return len(text) > 4 * len(positive) + 400
