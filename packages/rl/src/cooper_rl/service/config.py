"""The settings of `cooper serve`: those of a reward, and how it is served."""

import os
import re
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from ipaddress import ip_address
from typing import ClassVar, Self

from pydantic import Field, model_validator

from cooper_base.config.base import Config
from cooper_base.errors import InputError, MissingExtraError
from cooper_rl.reward.reward_config import CooperRewardConfig
from cooper_verify.clients.address import check_key


@dataclass(frozen=True)
class CommitPolicy:
    """After `rows` answers, or `idle_s` seconds after the last answer; exactly one of the two is set."""

    rows: int | None = None
    idle_s: float | None = None


def read_policy(text: str) -> CommitPolicy:
    """`count:1024` or `idle:5s`. Raises ValueError for anything else."""
    if (count := re.fullmatch(r"count:(\d{1,9})", text)) and int(count[1]):
        return CommitPolicy(rows=int(count[1]))
    if (idle := re.fullmatch(r"idle:(\d{1,6}(?:\.\d{1,6})?)s", text)) and float(idle[1]):
        return CommitPolicy(idle_s=float(idle[1]))
    forms = "count:1024 (answers) or idle:5s (seconds after the last answer)"
    raise ValueError(f"commit: {text!r} is not valid; write {forms}")


class ServerConfig(Config):
    """Address, storage and limits of the service."""

    host: str = "127.0.0.1"
    """Address to listen on. Any address other than the loopback requires a token."""
    port: int = Field(default=8765, ge=0, le=65535)
    """Port to listen on; 0 picks a free one and logs it."""
    token_env: str | None = None
    """Environment variable with the token that clients send (`Authorization: Bearer …`). Null disables the check."""
    folder: str = "served"
    """Folder for checkpoints and journals. A server started with the same folder continues where the last one ended."""
    planned_steps: int | None = Field(default=None, ge=1)
    """Steps of the whole training run, which a falling `schedule` of the reward model needs."""
    commit: str | None = None
    """When to train on answers sent without a step: `count:1024` (answers) or `idle:5s` (seconds after the last
    answer). Null waits for a commit. `?commit=…` in a request's URL takes precedence."""
    checkpoint_every: int = Field(default=10, ge=0)
    """Steps between checkpoints; 0 writes them only at shutdown and when a client asks. Commits are safe in between:
    the server replays its journal from the newest checkpoint."""
    checkpoints: int = Field(default=3, ge=1)
    """Number of checkpoints kept. Every step since the oldest one can be restored."""
    batch_rows: int = Field(default=512, ge=0)
    """Largest number of answers from concurrent requests that are scored in one batch. The composition of a batch
    changes the last bits of a logit; with 0 every request is scored separately and results do not depend on timing."""
    max_pending: int = Field(default=256, ge=1)
    """Concurrent requests; the server replies 429 to more. There may be four times as many connections; if more are
    opened, the one whose client has kept the server waiting for longest is closed."""
    max_pending_mb: float = Field(default=512, gt=0)
    """Memory for concurrent requests in megabytes, about four times the size of their bodies; the server replies 429
    to more."""
    max_body_mb: float = Field(default=32, gt=0)
    """Size of one request's body in megabytes; the server replies 413 to more."""
    max_rows: int = Field(default=4096, ge=1)
    """Answers in one request; the server replies 413 to more."""
    max_characters: int = Field(default=200_000, ge=1)
    """Characters in one text; the server replies 413 to more."""
    max_verify_s: float = Field(default=60.0, gt=0)
    """CPU seconds for the verdicts of one request; what is not judged by then has the verdict `timeout`."""
    max_step_rows: int = Field(default=262_144, ge=1)
    """Answers in one step; more are refused until the step is committed."""

    @model_validator(mode="after")
    def _policy_is_readable(self) -> Self:
        if self.commit is not None:
            read_policy(self.commit)
        return self


class ServeConfig(CooperRewardConfig):
    """Everything `cooper serve` needs to know: the reward of a `cooper train` file, and `serve`."""

    stands_for: ClassVar = dict.fromkeys(
        ("name", "output_dir", "steps", "problems_per_step", "policy", "problems", "test_problems", "rollout"),
        "a run has it, and a service only the settings of the reward and `serve`; remove what your trainer has",
    )

    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work; by default OMP_NUM_THREADS, else the cores this process may use."""
    serve: ServerConfig = ServerConfig()
    """The server."""

    @model_validator(mode="after")
    def _length_is_known(self) -> Self:
        model = self.loaded_model
        if model is not None and model.learns and model.schedule != "constant" and self.planned_steps is None:
            raise ValueError(f"reward_model.schedule: {model.schedule} ends with the run; set serve.planned_steps")
        return self

    @property
    def planned_steps(self) -> int | None:
        return self.serve.planned_steps


def read_token(config: ServerConfig) -> str | None:
    """The token of `token_env`. Raises InputError if it is not set, or if other machines could do without one."""
    if config.token_env is None:
        if not is_loopback(config.host):
            raise InputError(
                f"serve.host: {config.host} is open to other machines and serve.token_env is not set; name an "
                "environment variable that holds a token, or use host: 127.0.0.1"
            )
        return None
    name, token = config.token_env, os.environ.get(config.token_env, "")
    if not token:
        raise InputError(f"serve.token_env: environment variable {name} is not set; put the clients' token there")
    return check_key(token, f"serve.token_env: the token in {name}")


def check_extra() -> None:
    """Raises MissingExtraError if a library of the extra `serve` is not installed."""
    if missing := [name for name in ("fastapi", "uvicorn", "prometheus_client") if find_spec(name) is None]:
        how = "of the extra `serve`: pip install fastapi uvicorn prometheus-client"
        raise MissingExtraError(f"cooper serve needs {', '.join(missing)}, {how}")


def listen(config: ServerConfig) -> socket.socket:
    """Bind to host and port. Raises InputError if that fails. Connections are refused until the server runs."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(config.host, config.port, type=socket.SOCK_STREAM)[0]
        # With the protocol, which asyncio asks for before it sets TCP_NODELAY: without that, the second packet of a
        # reply waits 40 ms for the client's acknowledgement.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise InputError(
            f"serve.host, serve.port: cannot listen on {config.host}:{config.port}: {error.strerror or error}; choose "
            "another port, or 0 for a free one"
        ) from error
    return listener


def is_loopback(host: str) -> bool:
    """Whether the name or address is that of this machine alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
