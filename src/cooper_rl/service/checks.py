"""Checks of requests, and their messages."""

from collections.abc import Sequence
from typing import Any

from cooper_rl.rewards.base import REWARDS
from cooper_rl.service.book import Book, ScoreAsk
from cooper_rl.service.config import ServerConfig
from cooper_rl.service.refusal import Refusal


def check_run(current: str | None, run: str | None) -> None:
    """Raises Refusal (409) for a run other than the one that is trained for."""
    if run is not None and current not in (None, run):
        raise Refusal(409, f"this server trains for the run {current!r}, not for {run!r}; start another server")


def step_of(step: int | None, book: Book | None, last: int) -> int:
    """The step that answers sent for `step` belong to; `book` is the open step, `last` the last committed one.

    Raises Refusal: 425 for a step ahead of the open one, 409 for a step behind.
    """
    if step is None:
        return book.step if book is not None else last + 1
    if step <= last:
        raise Refusal(
            409,
            f"step {step} is not ahead of step {last}, the last committed step; if the trainer has gone back, "
            "restore a checkpoint first (POST /v1/restore)",
        )
    if book is not None and step > book.step:
        message = f"step {step} waits for step {book.step}, which is scored but not committed"
        raise Refusal(425, message, {"Retry-After": "1"})
    if book is not None and step < book.step:
        raise Refusal(409, f"step {step} is behind step {book.step}, which is under way")
    return step


def check_commit(book: Book | None, last: int, step: int, keep: Sequence[str] | None, expected: int | None) -> None:
    """Raises Refusal (409) for a step other than the one under way, and for groups that are not in it."""
    if step <= last:
        raise Refusal(409, f"step {step} is behind step {last}, the last committed step")
    if book is not None and book.step != step:
        raise Refusal(409, f"step {step}: step {book.step} is scored but not committed; commit it first")
    groups = book.groups if book is not None else {}
    if expected is None and not groups:
        raise Refusal(409, f'step {step}: nothing was scored in it; to commit it without answers, send "expected": 0')
    if expected not in (None, len(groups)):
        raise Refusal(
            409,
            f"step {step}: {len(groups)} groups were scored but {expected} were expected; score the missing groups, or "
            "all of them again, then commit",
        )
    if unknown := [name for name in keep or () if name not in groups]:
        raise Refusal(409, f"step {step}: keep names groups that were not scored: {', '.join(unknown[:5])}")


def check_limits(ask: ScoreAsk, config: ServerConfig) -> None:
    """Raises Refusal (413) for too many answers or a text that is too long."""
    if ask.rows > config.max_rows:
        raise Refusal(
            413, f"{ask.rows} answers in one request, of {config.max_rows} allowed (serve.max_rows); split it"
        )
    for one in ask.groups:
        problem, limit = one.group.problem, config.max_characters
        texts = [answer.text for answer in one.group.answers]
        longest = max(map(len, [*texts, problem.question, problem.answer, problem.solution or ""]))
        if longest > limit:
            raise Refusal(
                413, f"group {one.group.id}: a text of {longest} characters, {limit} allowed (serve.max_characters)"
            )


def needs_whole_groups(rewards: Sequence[Any]) -> bool:
    """Whether a reward compares an answer with the others of its group."""
    kinds = {REWARDS.kind_of(part) for part in rewards}
    return "hybrid" in kinds or any(needs_whole_groups(getattr(part, "rewards", ())) for part in rewards)


def full(error: OSError) -> Refusal:
    """The reply if the disk is full."""
    return Refusal(
        507,
        f"the server cannot write to its folder ({error.strerror}); nothing was learned and nothing was lost; free "
        "some space there and send the request again",
    )
