"""The reply to a request that the service refuses."""

from collections.abc import Mapping


class Refusal(Exception):
    """An HTTP status and a message with the reason and the remedy."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
