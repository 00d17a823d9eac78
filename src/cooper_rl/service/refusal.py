"""What the service answers where it does not do what was asked."""

from collections.abc import Mapping


class Refusal(Exception):
    """An HTTP status, and a message that says why and what to do."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
