"""A step's samples in columns."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Bool, Float, Int
from safetensors.numpy import load

from cooper_rl.data.problem import Problem
from cooper_rl.rollouts.answers import AnswerGroup
from cooper_rl.rollouts.blocks import packed
from cooper_rl.rollouts.columns import Column, offsets_of
from cooper_rl.rollouts.samples import Samples


@dataclass(frozen=True)
class Rollouts:
    """B completions of P problems. Completions of the same problem are adjacent; groups may differ in size.

    `token_ids`, `logprobs`, `stopped` and `texts` are as in `Samples`.
    """

    problems: Sequence[Problem]
    prompts: Column
    """P rows of token ids."""
    group_sizes: Int[np.ndarray, " P"]
    token_ids: Column
    """B rows."""
    logprobs: Float[np.ndarray, " tokens"]
    stopped: Bool[np.ndarray, " B"]
    """False for a completion that was cut at the length limit."""
    texts: Sequence[str]
    versions: Int[np.ndarray, " B"]
    """The version of the policy that sampled each completion."""

    @classmethod
    def of(
        cls, problems: Sequence[Problem], prompts: Sequence[Sequence[int]], samples: Samples, n: int, version: int
    ) -> Self:
        """`n` samples per problem, all from one version of the policy."""
        return cls(
            problems=problems,
            prompts=Column.of(prompts),
            group_sizes=np.full(len(problems), n),
            token_ids=samples.token_ids,
            logprobs=samples.logprobs,
            stopped=samples.stopped,
            texts=samples.texts,
            versions=np.full(len(samples), version),
        )

    def __post_init__(self) -> None:
        completions, problems = len(self.token_ids), len(self.problems)
        counts = {
            "stopped": (len(self.stopped), completions),
            "texts": (len(self.texts), completions),
            "versions": (len(self.versions), completions),
            "logprobs": (len(self.logprobs), len(self.token_ids.values)),
            "prompts": (len(self.prompts), problems),
            "group_sizes": (len(self.group_sizes), problems),
            "completions in groups": (int(self.group_sizes.sum()), completions),
        }
        for name, (found, expected) in counts.items():
            if found != expected:
                raise ValueError(f"rollouts have {found} {name} but need {expected}")

    @property
    def offsets(self) -> Int[np.ndarray, " P+1"]:
        """The completions of problem p are `offsets[p]` up to, but not including, `offsets[p + 1]`."""
        return offsets_of(self.group_sizes)

    @property
    def problem_of(self) -> Int[np.ndarray, " B"]:
        """The index of each completion's problem."""
        return np.repeat(np.arange(len(self.problems)), self.group_sizes)

    def groups(self) -> list[AnswerGroup]:
        """The completions as texts, for rules and rewards. A group's id is the id of its problem."""
        answers = list(Samples(self.token_ids, self.logprobs, self.stopped, self.texts).answers())
        return [
            AnswerGroup(problem.id, problem, answers[start:end])
            for problem, start, end in zip(self.problems, self.offsets[:-1], self.offsets[1:], strict=True)
        ]

    def sequences(self, rows: Sequence[int] | Int[np.ndarray, " taken"]) -> Column:
        """For each of the given completions, one row: the prompt followed by the completion."""
        problem_of = self.problem_of
        parts = [part for row in rows for part in (self.prompts[problem_of[row]], self.token_ids[row])]
        joined = Column.of(parts, self.token_ids.values.dtype)
        return Column(joined.values, joined.offsets[::2])

    def to_bytes(self) -> bytes:
        """Everything as one block of bytes (safetensors), for another process or the disk."""
        texts = Column.of([np.frombuffer(text.encode(), np.uint8) for text in self.texts], np.uint8)
        problems = json.dumps([vars(problem) for problem in self.problems], ensure_ascii=False).encode()
        arrays = {
            "prompts": self.prompts.values,
            "prompt_offsets": self.prompts.offsets,
            "group_sizes": self.group_sizes,
            "token_ids": self.token_ids.values,
            "token_offsets": self.token_ids.offsets,
            "logprobs": self.logprobs,
            "stopped": self.stopped,
            "texts": texts.values,
            "text_offsets": texts.offsets,
            "versions": self.versions,
            "problems": np.frombuffer(problems, np.uint8),
        }
        return packed(arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The rollouts that `to_bytes` packed."""
        arrays = load(data)
        texts = Column(arrays["texts"], arrays["text_offsets"])
        return cls(
            problems=[Problem(**fields) for fields in json.loads(arrays["problems"].tobytes())],
            prompts=Column(arrays["prompts"], arrays["prompt_offsets"]),
            group_sizes=arrays["group_sizes"],
            token_ids=Column(arrays["token_ids"], arrays["token_offsets"]),
            logprobs=arrays["logprobs"],
            stopped=arrays["stopped"],
            texts=[row.tobytes().decode() for row in texts],
            versions=arrays["versions"],
        )
