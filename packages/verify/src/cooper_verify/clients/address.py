"""A server's address and key as HTTP can send them. A wrong one is refused at once: no retry would mend it."""

from urllib.parse import urlsplit

from cooper_base.errors import InputError


def check_address(url: str) -> str:
    """The address. Raises ValueError if no request can be sent there, whatever listens."""
    try:
        parts = urlsplit(url)
        readable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port beyond 65535, half of an IPv6 address
        readable = False
    if not readable:
        raise ValueError(f"{url!r} is no address of a server; write http://host:port")
    return url


def check_key(key: str, name: str) -> str:
    """The key or token. Raises InputError, which says its `name`, if no header can hold it."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(
            f"{name}: it cannot be sent in an HTTP header; use letters and digits, without a line break at the end"
        )
    return key
