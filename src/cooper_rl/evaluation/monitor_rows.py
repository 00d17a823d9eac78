"""Reads the labelled completions on which a reward model is measured during a run."""

from collections.abc import Sequence

from cooper_rl.data.labelled import LabelledCompletion, read_labelled
from cooper_rl.data.split import problem_key
from cooper_rl.errors import InputError
from cooper_rl.verifyrm.train.config import MonitorConfig


def read_held_out(config: MonitorConfig, replayed: Sequence[LabelledCompletion] = ()) -> list[LabelledCompletion]:
    """All rows of the monitor's file. `replayed` are the labelled completions that the reward model learns from.

    Raises InputError for a file that cannot be read, and for one that shares problems with `replayed`: its metrics
    would look better than they are.
    """
    rows = read_labelled(config.labelled)
    learned = {problem_key(row.question) for row in replayed}
    shared = [row for row in rows if problem_key(row.question) in learned]
    if shared:
        raise InputError(
            f"monitor.labelled: {len(shared)} of {len(rows)} rows are about problems that are replayed, the first "
            f"is {shared[0].location}; leave these problems out of cooptimization.replay.labelled or of this file"
        )
    return rows
