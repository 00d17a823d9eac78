"""The trusted label, where there is one. It is used for evaluation only, never for training."""

from collections.abc import Sequence

import torch

from cooper_rl.config.user_functions import load_function
from cooper_rl.errors import InputError
from cooper_rl.rollouts import AnswerGroup, Ragged


def gold_labels(groups: Sequence[AnswerGroup], function: str) -> Ragged:
    """Whether each completion is truly right, according to `function`.

    `function` is the path `package.module:function`; it is called with (problem, completion text). Raises InputError
    naming the problem if it returns anything but True or False.
    """
    is_right = load_function(function, ("problem", "completion_text"))
    labels = []
    for group in groups:
        row = [is_right(group.problem, completion.text) for completion in group.answers]
        for label in row:
            if not isinstance(label, bool):
                raise InputError(f"{function}: returned {label!r} for problem {group.problem.id}; return True or False")
        labels.append(row)
    return Ragged.of(labels, torch.bool)
