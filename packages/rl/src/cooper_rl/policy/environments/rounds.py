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

from cooper_base.data.answer import Answer
from cooper_base.data.problem import Problem
from cooper_base.data.transcript import ToolCall, turns_of
from cooper_base.errors import InputError
from cooper_rl.data.prompts import PromptEncoder, chat_messages, without_markup
from cooper_rl.engines.base import Metrics, Prompts, Sampler
from cooper_rl.engines.config import SamplingParams
from cooper_rl.policy.environments.environment import COUNTED, Environments, verdict_of
from cooper_rl.policy.environments.syntax import load_syntax
from cooper_rl.records import Column, Samples

logger = logging.getLogger(__name__)


@dataclass
class Rollout:
    """A rollout that has not ended. Token ids stay as they were sampled: nothing is tokenised twice."""

    prompt: list[int]
    room: int
    """How many tokens may still follow, from the policy or the environment."""
    messages: list[Any] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    """The sampler's log-probability of each token; NaN if the environment wrote the token, or the sampler does not know
    it."""
    written: list[bool] = field(default_factory=list)
    """Whether the policy wrote the token."""
    turns: int = 0
    stopped: bool = False
    """Whether the last turn ended by itself and called no tool."""
    calls: list[ToolCall] = field(default_factory=list)
    """The calls of the last turn that have not been answered yet."""

    def append(self, token_ids: list[int], logprobs: list[float] | None, messages: Sequence[Any]) -> None:
        """Append what the policy wrote or, without `logprobs`, what the environment wrote."""
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
    """Samples rollouts in an environment.

    There are at most `max_turns` rounds. In each, every active rollout writes a turn, and the tools that it called
    answer. The first round makes the same call of the sampler as a run without environment. `max_tokens` limits
    everything after the prompt: a result that would leave no room is not appended. A rollout that ends this way, or at
    `max_turns`, counts as cut off.
    """

    def __init__(
        self,
        environments: Environments,
        encoder: PromptEncoder,
        max_turns: int,
        tool_syntax: str | None,
        solved_at: float | None,
        needs_verdict: Callable[[Problem], bool],
    ) -> None:
        """`encoder` shows the tools in its prompts (`tool_schemas`). Answers to problems that `needs_verdict` get the
        verdict `correct` from a `get_reward()` of `solved_at` or more, `wrong` below, and `silent` without a number or
        without `solved_at`.
        """
        self._environments, self._encoder, self._max_turns = environments, encoder, max_turns
        self._solved_at, self._needs_verdict = solved_at, needs_verdict
        self._syntax = load_syntax(tool_syntax, encoder, tool_schemas(environments))
        self._plain = without_markup(encoder.tokenizer)

    def draw(self, sampler: Sampler, problems: Sequence[Problem], n: int, params: SamplingParams, seed: int) -> Drawn:
        """Sample `n` rollouts of each problem. Raises what `Sampler.sample` raises, but no fault of an environment.

        Equal calls give equal rollouts, provided that an environment's answers depend only on its calls and its
        `reset`, which gets a seed for this rollout.
        """
        problem_of = [problem for problem in problems for _ in range(n)]
        rollouts = self._begun(problem_of, params.max_tokens, seed)
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
        return Drawn(prompts, self._samples(problem_of, rollouts, rewards), self._metrics(rollouts, rewards))

    def _begun(self, problem_of: Sequence[Problem], max_tokens: int, seed: int) -> list[Rollout]:
        """The rollouts after `reset`. What an environment shows is appended to the user's message and counts towards
        `max_tokens`."""
        seeds = np.random.SeedSequence([seed, 1]).generate_state(len(problem_of)).tolist()
        rollouts = [Rollout(self._encoder.encode(problem), max_tokens) for problem in problem_of]
        prompts = [chat_messages(self._encoder.config, problem) for problem in problem_of]
        for index, shown in enumerate(self._environments.reset(problem_of, seeds, prompts)):
            if not shown:
                continue
            try:
                prompt = self._encoder.encode(problem_of[index], self._plain(shown))
            except InputError as error:  # the chat template rejects what it shows
                self._environments.lose(index, "reset", error)
                continue
            more = len(prompt) - len(rollouts[index].prompt)
            if more < max_tokens:
                rollouts[index] = Rollout(prompt, max_tokens - more, [{"role": "user", "content": shown}])
            else:
                what = f"what it shows has {more} tokens, and rollout.max_tokens, {max_tokens}, leaves no room for more"
                self._environments.lose(index, "reset", what)
        return rollouts

    def first_prompt(self, problem: Problem, seed: int) -> list[int]:
        """The prompt of the first rollout that `draw` begins with this problem and seed."""
        return self._begun([problem], 2**30, seed)[0].prompt

    def _answered(self, rollouts: Sequence[Rollout], called: Sequence[int]) -> list[int]:
        """Run the tools that were called. Returns the rollouts that have room to continue."""
        going = []
        for index, results in self._environments.call({index: rollouts[index].calls for index in called}).items():
            rollout, answered = rollouts[index], zip(rollouts[index].calls, results, strict=True)
            messages = [{"role": "tool", "name": call["name"], "content": text} for call, text in answered]
            try:
                token_ids = self._tokens_of(messages, rollout.token_ids[-1])
            except Exception as error:  # noqa: BLE001 - of the chat template or of the user's `tool_syntax`
                self._environments.lose(index, rollout.calls[0]["name"], error)
                continue
            if len(token_ids) < rollout.room:
                rollout.append(token_ids, None, messages)
                rollout.calls = []
                going.append(index)
        return going

    def _tokens_of(self, messages: Sequence[dict[str, Any]], last: int) -> list[int]:
        tokenizer = self._encoder.tokenizer
        text = self._syntax.results([{**message, "content": self._plain(message["content"])} for message in messages])
        if self._encoder.chat and last not in tokenizer.all_special_ids:  # a stop string ended the turn
            text = f"{tokenizer.eos_token}{text}"
        return list(tokenizer.encode(text, add_special_tokens=False))

    def _write(
        self, sampler: Sampler, going: Sequence[Rollout], n: int, params: SamplingParams, seed: int, turn: int
    ) -> None:
        """Sample the next turn of each of these rollouts."""
        firsts = [rollout.prompt for rollout in going[::n]]
        if turn == 0 and all(rollout.prompt == firsts[i // n] for i, rollout in enumerate(going)):
            samples = sampler.sample(firsts, n, params, seed)
        else:
            limits = {"max_tokens": max(rollout.room for rollout in going)} | ({} if turn == 0 else {"min_tokens": 0})
            own_seed = int(np.random.SeedSequence([seed, 2, turn]).generate_state(1)[0])
            prompts = [rollout.prompt + rollout.token_ids for rollout in going]
            samples = sampler.sample(prompts, 1, params.model_copy(update=limits), own_seed)
        logprobs = Column(samples.logprobs, samples.token_ids.offsets)
        for i, (rollout, text) in enumerate(zip(going, samples.texts, strict=True)):
            token_ids, whole = samples.token_ids[i][: rollout.room].tolist(), len(samples.token_ids[i]) <= rollout.room
            message, calls = self._read(text if whole else self._encoder.text_of(token_ids), token_ids, rollout)
            rollout.append(token_ids, logprobs[i][: rollout.room].tolist(), [message])
            rollout.turns += 1
            rollout.calls, rollout.stopped = (calls, not calls) if whole and samples.stopped[i] else ([], False)

    def _read(self, text: str, token_ids: list[int], rollout: Rollout) -> tuple[Mapping[str, Any], list[ToolCall]]:
        """A turn as a message, and the tools that it calls. A call that cannot be parsed stays text."""
        try:
            message = self._syntax.message(text, token_ids, rollout.prompt + rollout.token_ids)
            return message, turns_of([message])[-1]["tool_calls"]
        except InputError:
            return {"role": "assistant", "content": text}, []
        except Exception as error:  # noqa: BLE001 - of the user's `tool_syntax`
            self._environments.report("tool_syntax", error)
            return {"role": "assistant", "content": text}, []

    @staticmethod
    def _shared(group: Sequence[Rollout]) -> list[int]:
        """The beginning that the prompts of a group share. It is the whole prompt unless `reset` has shown different
        texts; then the rest of each prompt moves to the front of its completion."""
        columns = zip(*(rollout.prompt for rollout in group), strict=False)
        shared = [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]
        for rollout in group:
            rest = rollout.prompt[len(shared) :]
            rollout.token_ids = rest + rollout.token_ids
            rollout.logprobs = [float("nan")] * len(rest) + rollout.logprobs
            rollout.written = [False] * len(rest) + rollout.written
        return shared

    def _samples(
        self, problem_of: Sequence[Problem], rollouts: Sequence[Rollout], rewards: Sequence[float | None]
    ) -> Samples:
        answers = []
        for problem, rollout, reward in zip(problem_of, rollouts, rewards, strict=True):
            verdict = verdict_of(reward, self._solved_at) if self._needs_verdict(problem) else None
            answers.append(Answer.of(rollout.messages, verdict=verdict, reward=reward))
        return Samples(
            token_ids=Column.of([rollout.token_ids for rollout in rollouts]),
            logprobs=Column.of([rollout.logprobs for rollout in rollouts], np.float32).values,
            stopped=np.array([rollout.stopped for rollout in rollouts]),
            texts=[answer.text for answer in answers],
            trained=Column.of([rollout.written for rollout in rollouts], np.bool_).values,
            runs=answers,
        )

    def _metrics(self, rollouts: Sequence[Rollout], rewards: Sequence[float | None]) -> Metrics:
        metrics = {f"environment/{name}": float(self._environments.counts[name]) for name in COUNTED}
        metrics["environment/fault_rate"] = self._environments.fault_rate
        metrics["environment/turns"] = sum(rollout.turns for rollout in rollouts) / len(rollouts)
        metrics["environment/unanswered"] = sum(bool(rollout.calls) for rollout in rollouts) / len(rollouts)
        paid = [reward for reward in rewards if reward is not None]
        return metrics | ({"environment/reward": sum(paid) / len(paid)} if paid else {})


def tool_schemas(environments: Environments) -> list[dict[str, Any]]:
    """The tools as JSON schemas, for a chat template. Raises InputError for one without types or a docstring."""
    try:
        return [get_json_schema(tool) for tool in environments.tools.values()]
    except (DocstringParsingException, TypeHintParsingException, ValueError) as error:
        raise InputError(f"rollout.environment: a tool cannot be described to the policy: {error}") from error


def hidden_tools(encoder: PromptEncoder, environments: Environments, problem: Problem) -> list[str]:
    """The tools that the prompt of a problem does not show, because its template ignores tools and its text does not
    name them."""
    plain = encoder.config.model_copy(update={"chat_arguments": {**encoder.config.chat_arguments, "tools": None}})
    prompt = encoder.text(problem)
    if prompt != PromptEncoder(encoder.tokenizer, plain).text(problem):
        return []
    return [name for name in environments.tools if not re.search(rf"\b{name}\b", prompt)]
