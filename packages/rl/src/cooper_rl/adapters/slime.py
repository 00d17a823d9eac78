"""slime: a reward for `--custom-rm-path`, the end of a rollout, and checkpoints; see docs/trainers.md."""

# pyright: reportMissingImports=false

from functools import cache
from itertools import groupby
from math import isnan
from pathlib import Path
from typing import Any

from slime.rollout.data_source import RolloutDataSourceWithBuffer

from cooper_base.data.answer import AnswerGroup
from cooper_base.data.transcript import outside_turns
from cooper_base.errors import InputError
from cooper_rl.adapters.rows import by_row, joined
from cooper_rl.adapters.served import async_client, client, columns, end_step, read_row, single
from cooper_rl.engines.local.models import load_tokenizer

_tokenizer = cache(load_tokenizer)
_scored: set[str] = set()
"""Ids of the step's groups. slime scores and ends a rollout in the same process."""


async def reward(args: Any, sample: Any, **unused: Any) -> Any:
    """The reward of one sample, or the rewards of a group. Raises InputError if the metadata lack a field."""
    samples = sample if isinstance(sample, list) else [sample]
    rows = [_row(args, member) for member in samples]
    if len({train for _, train in rows}) > 1:
        raise InputError("a group has training and test rows; slime evaluates on data sets of their own")
    groups, train = [group for group, _ in rows], rows[0][1]
    whole = isinstance(sample, list) and getattr(args, "group_rm", False)
    scored = await async_client().score(joined(groups), train=train, partial=not whole)
    if train:
        _scored.update(group.id for group in groups)
    for member, given in zip(samples, by_row(groups, scored.rewards), strict=True):
        if train and isnan(given):  # slime leaves it out of the loss; its group's mean, which it is paid, keeps still
            member.remove_sample = True
    rewards = by_row(groups, scored.for_all())
    return rewards if isinstance(sample, list) else rewards[0]


def end_of_rollout(rollout_id: int, args: Any, samples: Any, metrics: Any, seconds: float) -> bool:
    """Train the reward model on the groups that slime kept. Returns False, so that slime logs the rollout itself."""
    end_step({str(sample.group_index) for sample in _flat(samples)} & _scored)
    _scored.clear()
    return False


class CooperDataSource(RolloutDataSourceWithBuffer):
    """slime's data source. slime saves and loads it with its checkpoints, and the service's reward with it."""

    def save(self, rollout_id: Any) -> None:
        super().save(rollout_id)
        client().save(_folder(self.args.save, rollout_id))

    def load(self, rollout_id: Any = None) -> None:
        super().load(rollout_id)
        if self.args.load is not None and rollout_id is not None and rollout_id >= 0:
            client().load(_folder(self.args.load, rollout_id))


def _row(args: Any, sample: Any) -> tuple[AnswerGroup, bool]:
    """The sample as a group with one answer; `group_index` and `index` count through the whole run."""
    metadata = sample.metadata if isinstance(sample.metadata, dict) else {}
    row = {**metadata, "answer": sample.label} if sample.label else metadata
    problem, train = read_row(row, "a sample's metadata")
    stopped = sample.status is not type(sample).Status.TRUNCATED
    verdict = columns().verdict_in(row, "a sample's metadata")
    return single(problem, _run(args, sample), stopped, str(sample.group_index), str(sample.index), verdict), train


def _run(args: Any, sample: Any) -> str | list[dict[str, str]]:
    """The response or, if the loss mask says that others than the policy wrote in it, its messages."""
    mask, start, run = sample.loss_mask or [], 0, list[dict[str, str]]()
    if 0 not in mask:
        return sample.response
    tokens, tokenizer = sample.tokens[-len(mask) :], _tokenizer(args.hf_checkpoint)
    for own, part in groupby(mask):
        end = start + len(list(part))
        text = str(tokenizer.decode(tokens[start:end], skip_special_tokens=bool(own)))
        run += [{"role": "assistant", "content": text}] if own else outside_turns(text)
        start = end
    return run


def _flat(samples: Any) -> list[Any]:
    return [sample for part in samples for sample in _flat(part)] if isinstance(samples, list) else [samples]


def _folder(root: str, rollout_id: int) -> Path:
    return Path(root) / "rollout" / f"cooper_reward_{rollout_id}"
