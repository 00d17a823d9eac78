"""A chat server on loopback that speaks the OpenAI protocol, correctly or with the faults a test asks for."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class HttpAnswer:
    """What the server sends: `body`, after `delay` seconds. Its Content-Length is `missing` bytes too large.

    `drip` is the pause after every byte, in seconds. `endless` repeats the body for a gigabyte. `hang_up` ends the
    connection without an answer.
    """

    body: str
    status: int = 200
    delay: float = 0.0
    missing: int = 0
    drip: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    endless: bool = False
    hang_up: bool = False


def completion(
    text: str | None, finish_reason: str = "stop", first_token: dict[str, float] | None = None, **how: Any
) -> HttpAnswer:
    """A proper chat completion; `first_token` holds the log-probabilities sent with it."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    if first_token is not None:
        top = [{"token": token, "logprob": logprob} for token, logprob in first_token.items()]
        choice["logprobs"] = {"content": [{"token": text, "logprob": 0.0, "top_logprobs": top}]}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "test", "choices": [choice]}
    return HttpAnswer(json.dumps(body), **how)


class ChatServer:
    """Answers each request with `respond(request body, number of the request from 0)`, in one thread per connection.

    `port` can be the port of an earlier server; by default a free one is taken.
    """

    def __init__(self, respond: Callable[[dict[str, Any], int], HttpAnswer], port: int = 0):
        self.requests: list[dict[str, Any]] = []
        self.busiest = 0
        self.sent = 0
        self._busy = 0
        self.respond = respond
        self._lock = threading.Lock()
        self._closing = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.serve(self, request)

            def log_message(self, *arguments: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *arguments: object) -> None:
                """Clients hang up on slow answers. That is not an error of the server."""

        self._server = Server(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        threading.Thread(target=lambda: self._server.serve_forever(poll_interval=0.02), daemon=True).start()

    def serve(self, handler: BaseHTTPRequestHandler, request: dict[str, Any]) -> None:
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self._busy += 1
            self.busiest = max(self.busiest, self._busy)
        answer = self.respond(request, number)
        self._closing.wait(answer.delay)
        with self._lock:
            self._busy -= 1
        if answer.hang_up or self._closing.is_set():  # a stopped server does not answer on open connections either
            handler.close_connection = True
            return
        body = answer.body.encode()
        length = 2**30 if answer.endless else len(body) + answer.missing
        handler.send_response(answer.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(length))
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        if answer.drip:
            for byte in body:
                handler.wfile.write(bytes([byte]))
                handler.wfile.flush()
                self._closing.wait(answer.drip)
        else:
            for _ in range(length // len(body) if answer.endless else 1):
                handler.wfile.write(body)
                self.sent += len(body)
        if answer.missing:
            handler.close_connection = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop answering, also on open connections."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
