"""Settings of the monitor, which measures the reward model during a run, and the rows that it is measured on."""

from collections.abc import Sequence

from pydantic import Field

from cooper_base.config.base import Config
from cooper_base.data.labelled import LabelledCompletion, problem_key, read_labelled
from cooper_base.errors import InputError


class MonitorConfig(Config):
    """Measures the reward model during the run, on completions that it does not learn from."""

    labelled: str
    """File of held-out labelled completions: question, reference_answer, completion, label. Their problems must not be
    replayed."""
    every: int = Field(default=10, ge=1)
    """Steps between measurements. There is also one before the first step and one after the last."""
    rows: int = Field(default=256, ge=1)
    """Most rows of the file that are used. They are drawn at random."""
    attacked_problems: int = Field(default=16, ge=0)
    """Number of problems from those rows on which every attack pattern is tried; 0 tries none."""


def read_held_out(config: MonitorConfig, replayed: Sequence[LabelledCompletion] = ()) -> list[LabelledCompletion]:
    """All rows of the monitor's file. Raises InputError if the reward model learns from the same problems, because they
    are `replayed`."""
    rows = read_labelled(config.labelled)
    learned = {problem_key(row.question) for row in replayed}
    shared = [row for row in rows if problem_key(row.question) in learned]
    if shared:
        raise InputError(
            f"monitor.labelled: {len(shared)} of {len(rows)} rows are about problems that are replayed, the first "
            f"is {shared[0].location}; leave these problems out of cooptimization.replay.labelled or of this file"
        )
    return rows
