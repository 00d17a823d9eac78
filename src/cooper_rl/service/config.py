"""The settings of `cooper serve`: those of a reward, and how it is served."""

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from cooper_rl.config.base import Config
from cooper_rl.config.settings import Settings, check, merge, read_settings, with_overrides
from cooper_rl.cooptimization.reward_config import CooperRewardConfig
from cooper_rl.errors import InputError, MissingExtraError
from cooper_rl.presets import PRESETS
from cooper_rl.service.commit_policy import read_policy


class ServerConfig(Config):
    """Where the service listens, what it keeps and what it accepts."""

    host: str = "127.0.0.1"
    """Address to listen on. Anything but the loopback needs a token."""
    port: int = Field(default=8765, ge=0, le=65535)
    """Port to listen on; 0 takes a free one, which the log names."""
    token_env: str | None = None
    """Environment variable with the token that clients send (`Authorization: Bearer …`). Null asks for none."""
    folder: str = "served"
    """Where checkpoints and journals are kept. A server that starts in it continues where the last one ended."""
    planned_steps: int | None = Field(default=None, ge=1)
    """Steps of the whole training run, which `schedule: cosine` of the reward model needs."""
    commit: str | None = None
    """When to train on answers that come without a step: `count:1024` (answers) or `idle:5s` (after the last answer).
    Null waits for a commit. `?commit=…` in a request's URL wins."""
    checkpoint_every: int = Field(default=10, ge=0)
    """Steps between checkpoints; 0 writes one at the end and when a client asks. What is committed is safe without:
    a journal is replayed from the newest checkpoint on."""
    checkpoints: int = Field(default=3, ge=1)
    """Newest checkpoints kept. Every step since the oldest one can be restored."""
    batch_rows: int = Field(default=512, ge=0)
    """Most answers of concurrent requests that are scored together. Which requests meet in a batch changes the last
    bits of a logit; 0 scores every request by itself, and the results depend on nothing but its content."""
    max_pending: int = Field(default=256, ge=1)
    """Requests under way at once; more are answered 429."""
    max_pending_mb: float = Field(default=512, gt=0)
    """Megabytes of the bodies of all requests under way; more is answered 429."""
    max_body_mb: float = Field(default=32, gt=0)
    """Megabytes of one request's body; more is answered 413."""
    max_rows: int = Field(default=4096, ge=1)
    """Answers in one request; more are answered 413."""
    max_characters: int = Field(default=200_000, ge=1)
    """Characters of one text; more are answered 413."""
    max_step_rows: int = Field(default=262_144, ge=1)
    """Answers of one step; more are refused until it is committed."""

    @model_validator(mode="after")
    def _policy_is_readable(self) -> Self:
        if self.commit is not None:
            read_policy(self.commit)
        return self


class ServeConfig(CooperRewardConfig):
    """Everything `cooper serve` needs to know: the reward of a `cooper train` file, and `serve`."""

    preset: Literal["cooper", "paper"] = "cooper"
    """Defaults of stage 2: ours, or the paper's published behaviour. Explicit settings win."""
    threads: int | None = Field(default=None, ge=1)
    """CPU threads for tensor work; by default OMP_NUM_THREADS, else the cores this process may use."""
    serve: ServerConfig = ServerConfig()
    """The server."""

    @model_validator(mode="after")
    def _length_is_known(self) -> Self:
        cosine = [name for name, model in self.used_models.items() if model.learns and model.schedule == "cosine"]
        if cosine and self.planned_steps is None:
            raise ValueError(f"reward_models.{cosine[0]}.schedule: cosine ends with the run; set serve.planned_steps")
        return self

    @property
    def planned_steps(self) -> int | None:
        """`serve.planned_steps`."""
        return self.serve.planned_steps


def load_serve_config(path: str | Path | None, overrides: Sequence[str] = ()) -> ServeConfig:
    """Read the configuration of a server; see `load_config`. Raises InputError for whatever does not fit."""
    settings = read_settings(path, overrides) if path is not None else Settings(with_overrides({}, overrides))
    preset = settings.values.get("preset", ServeConfig.model_fields["preset"].default)
    defaults = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
    stage2 = {"cooptimization": defaults["cooptimization"]} if defaults else {}
    return check(ServeConfig, replace(settings, values=merge(stage2, settings.values)))


def read_token(config: ServerConfig) -> str | None:
    """The token of the environment variable `token_env`.

    Raises InputError where it is not set, and for a server without a token that would listen to other machines.
    """
    if config.token_env is None:
        if not _is_loopback(config.host):
            raise InputError(
                f"serve.host: {config.host} is open to other machines and serve.token_env is not set; name an "
                "environment variable that holds a token, or use host: 127.0.0.1"
            )
        return None
    token = os.environ.get(config.token_env, "")
    if not token:
        raise InputError(
            f"serve.token_env: environment variable {config.token_env} is not set; put the clients' token there"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise InputError(
            f"serve.token_env: the token in {config.token_env} cannot be sent in an HTTP header; use letters and digits"
        )
    return token


def check_extra() -> None:
    """Raises MissingExtraError where a library of the extra `serve` is not installed."""
    missing = [name for name in ("fastapi", "uvicorn", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"cooper serve needs {', '.join(missing)}, of the extra `serve`: "
            "pip install fastapi uvicorn prometheus-client"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
