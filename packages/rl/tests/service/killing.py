"""A trainer that goes on while its server is killed and started again, compared with one that was left alone."""

import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM
from typing import Any

from cooper_rl.service.client import RewardClient
from service.answered import groups
from service.served import Served


@dataclass(frozen=True)
class Outcome:
    """What the trainer was told, and what the server had in the end: digests of the last checkpoint's files."""

    told: list[Any]
    files: dict[str, str]


def train(client: RewardClient, steps: int) -> list[Any]:
    """A small training run: every step in two requests, with an evaluation between."""
    told: list[Any] = []
    for step in range(client.last_step + 1, steps + 1):
        given = groups(10 * step)
        for part in (given[:2], given[2:]):
            scored = client.score(part, step=step)
            told.append((scored.rewards, scored.logits, scored.verdicts, scored.version))
        told.append(client.score(groups(90), train=False).rewards)
        updated = client.update(step, keep=[one.id for one in given[: 2 + step % 3]])
        told.append((updated.version, updated.pairs))
    return told


def undisturbed(server: Served, steps: int) -> tuple[Outcome, float]:
    """The outcome, and how many seconds it took."""
    with server:
        start = time.monotonic()
        told = train(server.client(), steps)
        seconds = time.monotonic() - start
        server.end(SIGTERM)
    return Outcome(told, last_files(server)), seconds


def disturbed(server: Served, steps: int, kills: int, seconds: float, rng: Random) -> tuple[Outcome, int]:
    """The outcome where the server is killed at random moments while it trains, and the number of kills."""
    with server:
        told: list[Any] = []
        trainer = threading.Thread(target=lambda: told.extend(train(server.client(timeout_s=120), steps)))
        trainer.start()
        done = 0
        while trainer.is_alive() and done < kills:
            trainer.join(rng.uniform(0, seconds / kills * 2))
            if trainer.is_alive():
                server.end(rng.choice([SIGKILL] * 4 + [SIGTERM]))
                server.start()
                done += 1
        trainer.join()
        server.end(SIGTERM)
    return Outcome(told, last_files(server)), done


def killed_at(server: Served, steps: int, moment: Callable[[int], bool]) -> Outcome:
    """The outcome where the server is killed before the requests of which `moment(number)` is true are answered."""
    number = 0

    class Killing(RewardClient):
        async def _send_once(self, call: Any) -> dict[str, Any]:
            nonlocal number
            number += 1
            if not moment(number):
                return await super()._send_once(call)
            killer = threading.Timer(0.002, lambda: server.end(SIGKILL))
            killer.start()
            try:
                return await super()._send_once(call)
            finally:
                killer.join()
                server.start()

    with server:
        told = train(Killing(server.url, timeout_s=120), steps)
        server.end(SIGTERM)
    return Outcome(told, last_files(server))


def last_files(server: Served) -> dict[str, str]:
    """Every file of the newest checkpoint, by its digest."""
    newest = max((server.folder / "served" / "checkpoints").glob("0*"))
    return digests(newest)


def digests(checkpoint: Path) -> dict[str, str]:
    """Weights, optimizer, replay, random states and the history's name."""
    files = json.loads((checkpoint / "manifest.json").read_text())["files"]
    return {name: value["sha256"] for name, value in files.items()}


def differences(one: Outcome, other: Outcome) -> Sequence[str]:
    """In words; empty where both are equal bit for bit."""
    names = sorted(one.files.keys() | other.files.keys())
    found = [name for name in names if one.files.get(name) != other.files.get(name)]
    return found + (["what the trainer was told"] if one.told != other.told else [])
