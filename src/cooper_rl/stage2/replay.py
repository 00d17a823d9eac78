"""A bounded buffer of past pairs."""

from collections.abc import Sequence
from dataclasses import asdict
from random import Random
from typing import Any

from cooper_rl.errors import InputError
from cooper_rl.stage2.pairs import Pair


class PairBuffer:
    """A uniform sample, without replacement, of all pairs ever added (Vitter 1985, algorithm R).

    Pairs do not become stale: right stays right and wrong stays wrong. The oldest hacks are therefore as worth
    remembering as the newest, and a first-in-first-out buffer would forget them.
    """

    def __init__(self, capacity: int, seed: int = 0):
        self.capacity = capacity
        self._pairs: list[Pair] = []
        self._seen = 0
        self._rng = Random(seed)

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, pairs: Sequence[Pair]) -> None:
        """Offer pairs. Each of the n pairs seen so far is in the buffer with probability min(1, capacity / n)."""
        for pair in pairs:
            self._seen += 1
            if len(self._pairs) < self.capacity:
                self._pairs.append(pair)
            elif (place := self._rng.randrange(self._seen)) < self.capacity:
                self._pairs[place] = pair

    def sample(self, count: int) -> list[Pair]:
        """`count` different pairs from the buffer, or all of them if there are fewer."""
        return self._rng.sample(self._pairs, min(count, len(self._pairs)))

    def state(self) -> dict[str, Any]:
        """The state as JSON values, for a checkpoint."""
        return {"pairs": [asdict(pair) for pair in self._pairs], "seen": self._seen, "rng": self._rng.getstate()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned. Raises InputError if the pairs do not fit into this buffer."""
        if len(state["pairs"]) > self.capacity:
            raise InputError(
                f"the checkpoint's replay buffer holds {len(state['pairs'])} pairs, but replay.capacity is now "
                f"{self.capacity}; resume with a capacity of at least {len(state['pairs'])}"
            )
        self._pairs = [Pair(**pair) for pair in state["pairs"]]
        self._seen = state["seen"]
        restore_rng(self._rng, state["rng"])


def restore_rng(rng: Random, state: Sequence[Any]) -> None:
    """Restore the result of `rng.getstate()` after a round trip through JSON, which turns tuples into lists."""
    version, internal, gauss = state
    rng.setstate((version, tuple(internal), gauss))
