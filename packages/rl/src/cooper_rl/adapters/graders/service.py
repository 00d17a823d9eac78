"""`cooper serve` as a grader."""

from collections.abc import Sequence
from typing import Any

from cooper_base.errors import InputError
from cooper_rl.adapters.graders.run_reward import groups_of
from cooper_rl.service.client import RewardClient, UnavailableError
from cooper_verify.grader import Asked, Grader, Opinion

PATIENCE_S = 10.0
"""Seconds for which a service that does not answer is asked again."""


class ServiceGrader(Grader):
    """`cooper serve`. It scores the answers as those of an evaluation, from which it never learns. Nobody here knows
    the scale of its numbers, so its verdict is always `silent`."""

    gives_verdicts = False

    def __init__(self, url: str) -> None:
        """Raises InputError if it cannot be reached. The token is that in COOPER_TOKEN."""
        self.name = url
        self._client = RewardClient(url, timeout_s=PATIENCE_S)
        try:
            self._version = self._client.info()["version"]
        except UnavailableError as error:
            raise InputError(f"{url}: {error}; start `cooper serve`, or give a judge as a YAML file") from error

    def settings(self) -> dict[str, Any]:
        """Its address and the version of its reward model."""
        return {"kind": "service", "url": self.name, "version": self._version}

    def grade(self, answers: Sequence[Asked], /) -> list[Opinion]:
        """The service's numbers. Raises what `RewardClient` raises if it is refused or does not answer."""
        rewards = self._client.score(groups_of(answers), train=False).rewards
        return [Opinion("silent", None if reward != reward else reward) for row in rewards for reward in row]

    def close(self) -> None:
        self._client.close()


def open_service(written: str, settings: Sequence[str]) -> ServiceGrader:
    """The service at an address. It has its own settings, so these are left alone."""
    return ServiceGrader(written)
