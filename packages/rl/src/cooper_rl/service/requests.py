"""A request to score, its limits, and the refusal of one."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from cooper_base.data.answer import AnswerGroup
from cooper_base.errors import InputError, show_users_frames, with_causes
from cooper_rl.service.config import CommitPolicy, ServerConfig

logger = logging.getLogger(__name__)


class Refusal(Exception):
    """An HTTP status and a message with the reason and the remedy."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, dict(headers or {})


@dataclass(frozen=True)
class ScoreAsk:
    """One request to score. `policy` says when to train, for requests without a step."""

    groups: list[AnswerGroup]
    step: int | None = None
    train: bool = True
    run: str | None = None
    policy: CommitPolicy | None = None
    partial: frozenset[str] = frozenset()
    """Ids of the groups that may get more answers from other requests."""

    @property
    def rows(self) -> int:
        return sum(len(group.answers) for group in self.groups)

    @property
    def one_at_a_time(self) -> bool:
        """Whether other requests bring the other answers to the same problems."""
        return bool(self.partial) or (self.train and all(len(group.answers) == 1 for group in self.groups))

    @property
    def names(self) -> set[str]:
        """Groups that it adds to the step."""
        return {group.id for group in self.groups} if self.train else set()


def check_limits(ask: ScoreAsk, config: ServerConfig) -> None:
    """Raises Refusal (413) for too many answers or a text that is too long."""
    most, limit = config.max_rows, config.max_characters
    if ask.rows > most:
        raise Refusal(413, f"{ask.rows} answers in one request, of {most} allowed (serve.max_rows); split it")
    for group in ask.groups:
        problem, texts = group.problem, [answer.transcript for answer in group.answers]
        longest = max(map(len, [*texts, problem.question, problem.answer, problem.solution or ""]))
        if longest > limit:
            message = f"group {group.id}: a text of {longest} characters, {limit} allowed (serve.max_characters)"
            raise Refusal(413, message)


def drop_frames(error: Exception) -> None:
    """Take the frames from an exception, and from those that led to it, that is kept as the result of a request.

    Its traceback has the frames of the failed call, and one of these holds the result: a cycle, in which everything
    that the call had in its hands, megabytes of tokens, would stay until the next full garbage collection.
    """
    for link in with_causes(error):
        link.__traceback__ = None


def reply_to(error: Exception, what: str) -> Exception:
    """What a request that has failed is told: the refusal itself, or a Refusal (500) with the fault, which is logged
    here. As any other exception it would go through the web server, which logs it once more with its own frames.
    """
    told = error
    if not isinstance(error, Refusal | InputError):
        show_users_frames(error)
        logger.error(what, exc_info=error)
        told = Refusal(500, f"{type(error).__name__}: {error}")
    drop_frames(error)
    return told


def full(error: OSError) -> Refusal:
    why = f"the server cannot write to its folder ({error.strerror}); nothing was learned and nothing was lost"
    return Refusal(507, f"{why}; free some space there and send the request again")
