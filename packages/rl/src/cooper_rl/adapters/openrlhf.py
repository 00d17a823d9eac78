"""OpenRLHF: the reward function of the file for `--reward.remote_url`; see docs/trainers.md."""

import os
import re
from collections.abc import Sequence
from typing import Any

from cooper_base.data.strict_json import parse_json
from cooper_base.data.text import without_end
from cooper_base.data.transcript import END_OF_TURN, turns_in
from cooper_base.errors import InputError
from cooper_rl.adapters.served import client, read_row, single


def reward_func(queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Rewards of these answers. A query is its prompt followed by the answer. OpenRLHF sends queries one by one.

    Raises InputError if a label is not a JSON object with question, answer and split. OpenRLHF logs the error and
    continues without a reward, so check its log after the first step.
    """
    from torch import tensor  # noqa: PLC0415 - OpenRLHF has it loaded

    rewards, versions = [], []
    for query, prompt, label in zip(queries, prompts, labels, strict=True):
        problem, train = read_row(_read(label), "the label")
        completion, stopped = _answer(query, prompt)
        scored = client().score([single(problem, completion, stopped)], train=train, partial=True)
        rewards.append(scored.for_all()[0][0])
        versions.append(float(scored.version))
    return {"rewards": tensor(rewards), "scores": tensor(rewards), "extra_logs": {"cooper_version": tensor(versions)}}


def _answer(query: str, prompt: str) -> tuple[str | list[dict[str, str]], bool]:
    """The answer without its end-of-sequence token, as messages if it has several turns, and whether it stopped by
    itself; True if that is unknown."""
    if not query.startswith(prompt):
        raise InputError(f"a query does not begin with its prompt: {query[:60]!r}, {prompt[:60]!r}")
    text, end = query.removeprefix(prompt), os.environ.get("COOPER_END_TOKEN")
    turns = turns_in(text.split(end) if end else END_OF_TURN.split(text))
    if len(turns) > 1:
        return turns, end is None or text.endswith(end)
    if end is None:
        return without_end(_SPECIAL, text), True
    return text.removesuffix(end), text.endswith(end)


def _read(label: str) -> dict[str, Any]:
    try:
        row = parse_json(label)
    except ValueError as error:
        raise InputError(f"label {label[:60]!r} is no JSON: {error}; {_REMEDY}") from error
    if not isinstance(row, dict):
        raise InputError(f"label {label[:60]!r} is no JSON object; {_REMEDY}")
    return row


_SPECIAL = re.compile(r"(?>(?:<\|[^<>|]++\|>|</s>|<eos>|<end_of_turn>)+)\s*+")
_REMEDY = 'write {"question": …, "answer": …, "split": "train"} and name that column in --data.label_key'
