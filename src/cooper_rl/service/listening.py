"""The socket of the server, taken before anything is loaded."""

import socket

from cooper_rl.errors import InputError
from cooper_rl.service.config import ServerConfig


def listen(config: ServerConfig) -> socket.socket:
    """Bind to host and port. Raises InputError if that fails. Connections are refused until the server runs."""
    try:
        family, _, _, _, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise InputError(
            f"serve.host, serve.port: cannot listen on {config.host}:{config.port}: {error.strerror or error}; choose "
            "another port, or 0 for a free one"
        ) from error
    return listener
