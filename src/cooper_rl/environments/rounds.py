"""Samples rollouts of several turns: each round, every active rollout generates a turn and its tool calls run."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
from transformers.utils.chat_template_utils import (
    DocstringParsingException,
    TypeHintParsingException,
    get_json_schema,
)

from cooper_rl.data.problem import Problem
from cooper_rl.data.prompts import PromptEncoder, chat_messages, without_markup
from cooper_rl.data.transcript import ToolCall, turns_of
from cooper_rl.engines.base import Metrics, Prompts, Sampler
from cooper_rl.engines.config import SamplingParams
from cooper_rl.environments.environment import COUNTED, Environments
from cooper_rl.environments.syntax import load_syntax
from cooper_rl.errors import InputError
from cooper_rl.rollouts import Answer, Column, Run, Samples

logger = logging.getLogger(__name__)


@dataclass
class Rollout:
    """A run under way. Token ids stay as they were sampled: nothing is tokenised twice."""

    prompt: list[int]
    room: int
    """Tokens that may still follow, whoever writes them."""
    messages: list[Any] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    """NaN for what the environment wrote, and where the sampler does not know them."""
    written: list[bool] = field(default_factory=list)
    """Whether the policy wrote the token."""
    turns: int = 0
    stopped: bool = False
    """Whether the last turn ended by itself and called no tool."""
    calls: list[ToolCall] = field(default_factory=list)
    """Those of the last turn, until they are answered."""

    def append(self, token_ids: list[int], logprobs: list[float] | None, messages: Sequence[Any]) -> None:
        """What the policy wrote or, without `logprobs`, the environment."""
        self.token_ids += token_ids
        self.logprobs += [float("nan")] * len(token_ids) if logprobs is None else logprobs
        self.written += [logprobs is not None] * len(token_ids)
        self.messages += messages
        self.room -= len(token_ids)


class Drawn(NamedTuple):
    prompts: Prompts  # one per problem
    samples: Samples
    metrics: Metrics  # `environment/…`


class Rounds:
    """Draws rollouts in an environment.

    In each of at most `max_turns` rounds every rollout that goes on writes a turn, and what it called answers. The
    first is the call of the sampler that a run without environment makes. `max_tokens` bounds all that follows the
    prompt: a result that leaves no room is not appended. A rollout that ends so, or at `max_turns`, counts as cut off.
    """

    def __init__(
        self,
        environments: Environments,
        encoder: PromptEncoder,
        max_turns: int,
        tool_syntax: str | None,
        solved_at: float,
        needs_verdict: Callable[[Problem], bool],
    ) -> None:
        """`encoder` shows the tools in its prompts (`tool_schemas`). Answers to problems that `needs_verdict` get the
        verdict `correct` from a `get_reward()` of `solved_at` or more, `wrong` below, and `silent` without a number.
        """
        self._environments, self._encoder, self._max_turns = environments, encoder, max_turns
        self._solved_at, self._needs_verdict = solved_at, needs_verdict
        self._syntax = load_syntax(tool_syntax, encoder, tool_schemas(environments))
        self._plain = without_markup(encoder.tokenizer)

    def draw(self, sampler: Sampler, problems: Sequence[Problem], n: int, params: SamplingParams, seed: int) -> Drawn:
        """`n` rollouts of each problem. Raises what `Sampler.sample` raises, but no fault of an environment.

        Equal calls draw equal rollouts, if an environment's answers depend on nothing but its `reset` (which gets a
        seed of the rollout's own) and its calls.
        """
        asked = [problem for problem in problems for _ in range(n)]
        rollouts = self._begun(asked, params.max_tokens, seed)
        going = list(range(len(rollouts)))
        for turn in range(self._max_turns):
            if turn > 0:
                going = self._answered(rollouts, [index for index in going if rollouts[index].calls])
            if not going:
                break
            self._write(sampler, [rollouts[index] for index in going], n, params, seed, turn)
        rewards = self._environments.rewards()
        for fault in self._environments.new_faults():
            logger.warning("rollout.environment: %s; others of this kind are only counted (environment/…)", fault)
        prompts = [self._shared(rollouts[start : start + n]) for start in range(0, len(rollouts), n)]
        return Drawn(prompts, self._samples(asked, rollouts, rewards), self._metrics(rollouts, rewards))

    def _begun(self, asked: Sequence[Problem], max_tokens: int, seed: int) -> list[Rollout]:
        """The rollouts after `reset`. What it shows follows the user's message; it takes from the room."""
        seeds = np.random.SeedSequence([seed, 1]).generate_state(len(asked)).tolist()
        rollouts = [Rollout(self._encoder.encode(problem), max_tokens) for problem in asked]
        prompts = [chat_messages(self._encoder.config, problem) for problem in asked]
        for index, shown in enumerate(self._environments.reset(asked, seeds, prompts)):
            if not shown:
                continue
            prompt = self._encoder.encode(asked[index], self._plain(shown))
            room = max_tokens - len(prompt) + len(rollouts[index].prompt)
            if room > 0:
                rollouts[index] = Rollout(prompt, room, [{"role": "user", "content": shown}])
            else:
                more = len(prompt) - len(rollouts[index].prompt)
                fault = (
                    f"what it shows has {more} tokens, and rollout.max_tokens, {max_tokens}, leaves no room for more"
                )
                self._environments.lose(index, "reset", fault)
        return rollouts

    def first_prompt(self, problem: Problem, seed: int) -> list[int]:
        """The prompt of the first rollout that `draw` begins with this problem and seed."""
        return self._begun([problem], 2**30, seed)[0].prompt

    def _answered(self, rollouts: Sequence[Rollout], called: Sequence[int]) -> list[int]:
        """Have the tools answer; returns the rollouts that have room to go on."""
        going = []
        for index, results in self._environments.call({index: rollouts[index].calls for index in called}).items():
            one, answered = rollouts[index], zip(rollouts[index].calls, results, strict=True)
            messages = [{"role": "tool", "name": call["name"], "content": text} for call, text in answered]
            token_ids = self._tokens_of(messages, one.token_ids[-1])
            if len(token_ids) < one.room:
                one.append(token_ids, None, messages)
                one.calls = []
                going.append(index)
        return going

    def _tokens_of(self, messages: Sequence[dict[str, Any]], last: int) -> list[int]:
        tokenizer = self._encoder.tokenizer
        text = self._syntax.results([{**one, "content": self._plain(one["content"])} for one in messages])
        if self._encoder.chat and last not in tokenizer.all_special_ids:  # a stop string ended the turn
            text = f"{tokenizer.eos_token}{text}"
        return list(tokenizer.encode(text, add_special_tokens=False))

    def _write(
        self, sampler: Sampler, going: Sequence[Rollout], n: int, params: SamplingParams, seed: int, turn: int
    ) -> None:
        """Have each of these rollouts write its next turn."""
        firsts = [one.prompt for one in going[::n]]
        if turn == 0 and all(one.prompt == firsts[i // n] for i, one in enumerate(going)):
            samples = sampler.sample(firsts, n, params, seed)
        else:
            limits = {"max_tokens": max(one.room for one in going)} | ({} if turn == 0 else {"min_tokens": 0})
            own_seed = int(np.random.SeedSequence([seed, 2, turn]).generate_state(1)[0])
            prompts = [one.prompt + one.token_ids for one in going]
            samples = sampler.sample(prompts, 1, params.model_copy(update=limits), own_seed)
        logprobs = Column(samples.logprobs, samples.token_ids.offsets)
        for i, (one, text) in enumerate(zip(going, samples.texts, strict=True)):
            token_ids, whole = samples.token_ids[i][: one.room].tolist(), len(samples.token_ids[i]) <= one.room
            message, calls = self._read(text if whole else self._encoder.text_of(token_ids), token_ids, one)
            one.append(token_ids, logprobs[i][: one.room].tolist(), [message])
            one.turns += 1
            one.calls, one.stopped = (calls, not calls) if whole and samples.stopped[i] else ([], False)

    def _read(self, text: str, token_ids: list[int], one: Rollout) -> tuple[Mapping[str, Any], list[ToolCall]]:
        """A turn as a message, and the tools that it calls. A call that cannot be read is text."""
        message = self._syntax.message(text, token_ids, one.prompt + one.token_ids)
        try:
            return message, turns_of([message])[-1]["tool_calls"]
        except InputError:
            return {"role": "assistant", "content": text}, []

    @staticmethod
    def _shared(group: Sequence[Rollout]) -> list[int]:
        """The beginning that a group's prompts share: all of it, unless `reset` has shown different things. The rest
        goes in front of what follows."""
        columns = zip(*(one.prompt for one in group), strict=False)
        shared = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
        for one in group:
            rest = one.prompt[len(shared) :]
            one.token_ids, one.logprobs = rest + one.token_ids, [float("nan")] * len(rest) + one.logprobs
            one.written = [False] * len(rest) + one.written
        return shared

    def _samples(
        self, asked: Sequence[Problem], rollouts: Sequence[Rollout], rewards: Sequence[float | None]
    ) -> Samples:
        answers = [Answer.of(one.messages) for one in rollouts]
        runs = []
        for problem, answer, reward in zip(asked, answers, rewards, strict=True):
            verdict = "silent" if reward is None else "correct" if reward >= self._solved_at else "wrong"
            runs.append(Run(answer.messages, verdict if self._needs_verdict(problem) else None))
        return Samples(
            token_ids=Column.of([one.token_ids for one in rollouts]),
            logprobs=Column.of([one.logprobs for one in rollouts], np.float32).values,
            stopped=np.array([one.stopped for one in rollouts]),
            texts=[answer.text for answer in answers],
            trained=Column.of([one.written for one in rollouts], np.bool_).values,
            runs=runs,
        )

    def _metrics(self, rollouts: Sequence[Rollout], rewards: Sequence[float | None]) -> Metrics:
        metrics = {f"environment/{name}": float(self._environments.counts[name]) for name in COUNTED}
        metrics["environment/fault_rate"] = self._environments.fault_rate
        metrics["environment/turns"] = sum(one.turns for one in rollouts) / len(rollouts)
        metrics["environment/unanswered"] = sum(bool(one.calls) for one in rollouts) / len(rollouts)
        paid = [reward for reward in rewards if reward is not None]
        return metrics | ({"environment/reward": sum(paid) / len(paid)} if paid else {})


def tool_schemas(environments: Environments) -> list[dict[str, Any]]:
    """The tools as JSON schemas, for a chat template. Raises InputError for one without types or a docstring."""
    try:
        return [get_json_schema(tool) for tool in environments.tools.values()]
    except (DocstringParsingException, TypeHintParsingException, ValueError) as error:
        raise InputError(f"rollout.environment: a tool cannot be described to the policy: {error}") from error


def hidden_tools(encoder: PromptEncoder, environments: Environments, problem: Problem) -> list[str]:
    """The tools that the prompt of a problem does not show: its template ignores them, and no text names them."""
    plain = encoder.config.model_copy(update={"chat_arguments": {**encoder.config.chat_arguments, "tools": None}})
    prompt = encoder.text(problem)
    if prompt != PromptEncoder(encoder.tokenizer, plain).text(problem):
        return []
    return [name for name in environments.tools if not re.search(rf"\b{name}\b", prompt)]
