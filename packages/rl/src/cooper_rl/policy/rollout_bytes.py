"""Rollouts as one block of bytes: what is sampled ahead is in the checkpoint, so that a resumed run learns from it."""

from __future__ import annotations

import json

import numpy as np
from safetensors.numpy import load, save

from cooper_base.data.answer import Answer
from cooper_base.data.problem import Problem
from cooper_rl.records import Column, Rollouts


def to_bytes(rollouts: Rollouts) -> bytes:
    """Everything as one block of bytes (safetensors), for another process or the disk."""
    texts = Column.of([np.frombuffer(text.encode(), np.uint8) for text in rollouts.texts], np.uint8)
    problems = json.dumps([vars(problem) for problem in rollouts.problems], ensure_ascii=False).encode()
    arrays = {
        "prompts": rollouts.prompts.values,
        "prompt_offsets": rollouts.prompts.offsets,
        "group_sizes": rollouts.group_sizes,
        "token_ids": rollouts.token_ids.values,
        "token_offsets": rollouts.token_ids.offsets,
        "logprobs": rollouts.logprobs,
        "stopped": rollouts.stopped,
        "texts": texts.values,
        "text_offsets": texts.offsets,
        "versions": rollouts.versions,
        "problems": np.frombuffer(problems, np.uint8),
    }
    if rollouts.trained is not None:
        arrays["trained"] = rollouts.trained
    if rollouts.runs is not None:
        runs = json.dumps([run.record() for run in rollouts.runs], ensure_ascii=False).encode()
        arrays["runs"] = np.frombuffer(runs, np.uint8)
    return save(arrays)


def from_bytes(data: bytes) -> Rollouts:
    """The rollouts that `to_bytes` packed."""
    arrays = load(data)
    texts = Column(arrays["texts"], arrays["text_offsets"])
    return Rollouts(
        problems=[Problem(**fields) for fields in json.loads(arrays["problems"].tobytes())],
        prompts=Column(arrays["prompts"], arrays["prompt_offsets"]),
        group_sizes=arrays["group_sizes"],
        token_ids=Column(arrays["token_ids"], arrays["token_offsets"]),
        logprobs=arrays["logprobs"],
        stopped=arrays["stopped"],
        texts=[row.tobytes().decode() for row in texts],
        versions=arrays["versions"],
        trained=arrays.get("trained"),
        runs=[Answer(**run) for run in json.loads(arrays["runs"].tobytes())] if "runs" in arrays else None,
    )
