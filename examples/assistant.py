"""An assistant of your own: it writes wrong solutions for the reward model to learn from.

In YAML: cooptimization: {assistant: {kind: "assistant:OffByOne", by: 1}}
"""

import re
from collections.abc import Sequence
from concurrent.futures import Future

from cooper_rl import Config
from cooper_rl.reward.pairs.assistant import RewriteRequest, Rewrites
from cooper_verify import Rule


class OffByOne(Config):
    """Adds a number to the last number of a right solution."""

    by: int = 1
    """The number to add."""

    def build(self, verifier: Rule) -> "OffByOneAssistant":
        """The assistant. `verifier` is the rule; use it to check that a solution is wrong."""
        return OffByOneAssistant(self.by)


class OffByOneAssistant:
    """Computes its solutions at once. An assistant that asks a server would return futures that are not done yet."""

    def __init__(self, by: int):
        self.by = by

    def submit(self, requests: Sequence[RewriteRequest]) -> Future[Rewrites]:
        """A negative for each request, or None where none could be made."""
        texts = [re.sub(r"\d+(?!.*\d)", lambda n: str(int(n[0]) + self.by), r.text, flags=re.S) for r in requests]
        future: Future[Rewrites] = Future()
        future.set_result(Rewrites(list(texts), {"attempts": len(texts), "accepted": len(texts)}))
        return future

    def check(self) -> None:
        """Called before the models are loaded. An assistant with a server raises InputError if it cannot be reached."""

    def close(self) -> None:
        """Called at the end of the run."""


if __name__ == "__main__":
    from tiny_run import train

    pair = train(kind="cooper", cooptimization={"assistant": OffByOne(), "pairs": [{"kind": "assistant"}]}).pairs[0]
    print("own assistant:", repr(pair["positive"]), "->", repr(pair["negative"]))
