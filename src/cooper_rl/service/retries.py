"""When a request to the service is retried, and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenacity import RetryCallState, wait_exponential_jitter

from cooper_rl.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import httpx

TRANSIENT = frozenset({425, 429, 502, 503, 504})
"""Statuses after which the same request may succeed. 425 says that another step is not committed yet."""


class RefusedError(InputError):
    """The service refused the request; the message is the service's and names the remedy."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class UnavailableError(ConnectionError):
    """The service could not be reached, or was busy, for as long as the client retried."""

    def __init__(self, message: str, status: int | None = None, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.wait_s = wait_s


@dataclass(frozen=True)
class Patience:
    """How long a request is retried; `early_s` is the limit after 425."""

    total_s: float
    early_s: float

    def is_over(self, state: RetryCallState) -> bool:
        """For `tenacity`: whether to stop trying."""
        error = state.outcome.exception() if state.outcome else None
        limit = self.early_s if getattr(error, "status", None) == 425 else self.total_s
        return (state.seconds_since_start or 0.0) >= limit


def wait_s(state: RetryCallState) -> float:
    """From 0.1 s to 5 s, or the server's `Retry-After` if that is longer."""
    error = state.outcome.exception() if state.outcome else None
    return max(wait_exponential_jitter(initial=0.1, max=5, jitter=0.1)(state), getattr(error, "wait_s", 0.0))


def read_answer(response: "httpx.Response") -> dict[str, Any]:
    """The body of a successful reply. Raises RefusedError, ServiceFailedError or (to be retried) UnavailableError."""
    if response.is_success:
        return response.json()
    place = f"{response.request.method} {response.request.url.path}: {response.status_code}"
    message = f"{place}: {_message(response)}"
    if response.status_code in TRANSIENT:
        raise UnavailableError(message, response.status_code, _retry_after(response.headers))
    if response.status_code >= 500:
        raise ServiceFailedError(message, response.status_code)
    raise RefusedError(response.status_code, message)


class ServiceFailedError(RuntimeError):
    """The service failed: a full disk (507), a failed update. Its log has more."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def import_httpx() -> Any:
    """httpx, which only the clients need."""
    try:
        import httpx  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError("a client of the reward service needs httpx (the extra `serve`)") from error
    return httpx


def _message(response: "httpx.Response") -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, LookupError, TypeError):  # a proxy's own error page
        return response.text[:500]


def _retry_after(headers: Mapping[str, str]) -> float:
    seconds = headers.get("retry-after", "")
    return float(seconds) if seconds.isdecimal() else 0.0
