"""Chooses the checkpoint that a run goes back to after a fault."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cooper_rl.observe.watch.watch import Firing

ROLLBACKS = 3
"""Most rollbacks in one run. Instead of another one the run stops."""

logger = logging.getLogger(__name__)


def rollback_target(firings: "Sequence[Firing]", checkpoints: Sequence[int], tried: Sequence[int]) -> int | None:
    """The step to go back to, which is that of the newest checkpoint from before the fault; None to go on or to stop.

    `tried` are the steps that the run has gone back to already. They are not tried twice, because such a checkpoint
    may hold the cause of the fault. A rule that stops the run wins over one that rolls it back.
    """
    actions = {firing.rule.action for firing in firings}
    if "rollback" not in actions or "stop" in actions:
        return None
    since = min(firing.since for firing in firings if firing.rule.action == "rollback")
    good = [step for step in checkpoints if step < since and step not in tried]
    if good and len(tried) < ROLLBACKS:
        return max(good)
    reason = f"{ROLLBACKS} rollbacks did not help" if good else "no other checkpoint from before the fault"
    logger.error("cannot roll back (%s), so the run stops", reason)
    return None
