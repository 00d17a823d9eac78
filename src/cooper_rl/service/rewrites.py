"""An assistant with a memory: a step that is replayed after a crash gets the same replies."""

import hashlib
import json
import logging
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any

from cooper_rl.stage2.negatives.assistant import Assistant
from cooper_rl.stage2.negatives.rewriting import Request, Rewrites

logger = logging.getLogger(__name__)


class RememberingAssistant:
    """Asks `inner` only once for equal requests, until `forget_used`."""

    def __init__(self, inner: Assistant) -> None:
        self._inner = inner
        self._replies: dict[str, Future[Rewrites]] = {}
        self._recorded: set[str] = set()
        self._used: set[str] = set()

    def submit(self, requests: Sequence[Request]) -> "Future[Rewrites]":
        """See `Assistant`; an exception of the assistant is raised by `new_records`."""
        name = _name(requests)
        self._used.add(name)
        if name not in self._replies:
            try:
                self._replies[name] = self._inner.submit(requests)
            except Exception as error:
                logger.exception("the assistant failed")
                self._replies[name] = Future()
                self._replies[name].set_exception(error)
        return self._replies[name]

    def new_records(self) -> list[dict[str, Any]]:
        """Wait for the replies to the submitted requests; those not recorded yet, as JSON values.

        Raises the assistant's exception; a later `submit` of the same requests then asks again.
        """
        new = sorted(self._used - self._recorded)
        failed = [name for name in new if self._replies[name].exception() is not None]
        errors = [self._replies.pop(name).exception() for name in failed]
        for error in errors:
            assert error is not None
            raise error
        return [{"name": name, **asdict(self._replies[name].result())} for name in new]

    def mark_recorded(self) -> None:
        """What `new_records` returned is on disk."""
        self._recorded |= self._used

    def recall(self, record: dict[str, Any]) -> None:
        """Remember what `new_records` returned in an earlier process."""
        reply: Future[Rewrites] = Future()
        reply.set_result(Rewrites(record["texts"], record["counts"]))
        self._replies[record["name"]] = reply
        self._recorded.add(record["name"])

    def forget_used(self) -> None:
        """The step is over: its requests will not come again."""
        for name in self._used:
            self._replies.pop(name, None)
        self._recorded -= self._used
        self._used.clear()

    def start_over(self) -> None:
        """Forget everything."""
        self._replies.clear()
        self._recorded.clear()
        self._used.clear()

    def check(self) -> None:
        """See `Assistant`."""
        self._inner.check()

    def close(self) -> None:
        """See `Assistant`."""
        self._inner.close()


def _name(requests: Sequence[Request]) -> str:
    """Requests contain a seed that depends on step and group, so names differ between steps."""
    content = json.dumps([asdict(request) for request in requests], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]
