"""Turns problems into prompts: the token ids that the policy reads."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from cooper_base.data.problem import Problem
from cooper_base.data.thoughts import Decoder
from cooper_base.errors import InputError, value_or_raise
from cooper_rl.data.chat_rendering import ChatFault, chat_without_template, rendered_each
from cooper_verify.problems.config import PromptConfig

logger = logging.getLogger(__name__)


class PromptEncoder:
    """Builds prompts of at most `context` tokens. Raises InputError if a required chat template is missing.

    `more` has the settings of further sets of problems by their names, `section` is where the problems of this one
    stand in the configuration.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        config: PromptConfig,
        context: int | None = None,
        more: Mapping[str, PromptConfig] | None = None,
        section: str = "problems",
    ):
        self.more = {
            name: PromptEncoder(tokenizer, prompt_config, context, section=f"more_problems.{name}")
            for name, prompt_config in (more or {}).items()
        }
        self._settings = f"{section}.prompt"
        self.tokenizer, self._decoder = tokenizer, Decoder(tokenizer)
        self.config = config
        self.chat = bool(tokenizer.chat_template) if config.chat is None else config.chat
        if self.chat and not tokenizer.chat_template:
            raise chat_without_template(tokenizer.name_or_path, self._settings)
        limits = [limit for limit in (config.max_prompt_tokens, context) if limit is not None]
        self.max_tokens = min(limits) if limits else None

    def text(self, problem: Problem, shown: str = "") -> str:
        """The prompt as the model sees it, including special tokens of the chat template.

        What an environment has `shown` follows the user's message.
        """
        return value_or_raise(self.more.get(problem.set, self)._texts([problem], shown)[0])

    def _texts(self, problems: Sequence[Problem], shown: str = "") -> list[str | InputError]:
        chats = [chat_messages(self.config, problem) for problem in problems]
        for chat in chats:
            chat[-1]["content"] += shown
        if not self.chat:
            return ["\n\n".join(message["content"] for message in chat) for chat in chats]
        remedy = f"if it does not support the system role, leave {self._settings}.system empty"
        return rendered_chats(self.tokenizer, chats, self.config.chat_arguments, remedy)

    def encode(self, problem: Problem, shown: str = "") -> list[int]:
        """The token ids of `text`, to which the policy appends a completion."""
        return self.more.get(problem.set, self)._ids(self.text(problem, shown))

    def _ids(self, text: str) -> list[int]:
        # A chat template writes its own special tokens.
        ids = list(self.tokenizer.encode(text, add_special_tokens=not self.chat))
        # Some tokenizers end a plain text with an end-of-sequence token, which would leave nothing to complete.
        if not self.chat and len(ids) > 1 and ids[-1] == self.tokenizer.eos_token_id:
            ids.pop()
        return ids

    def decode(self, prompt_ids: Sequence[int]) -> str:
        """The text of token ids from `encode`, including special tokens."""
        return str(self.tokenizer.decode(list(prompt_ids), clean_up_tokenization_spaces=False))

    def text_of(self, completion_ids: Sequence[int]) -> str:
        """The text of a completion's token ids, without special tokens, as samplers decode it."""
        return self._decoder.text(list(completion_ids))

    def fitting(self, problems: Sequence[Problem]) -> list[Problem]:
        """The problems whose prompts fit. One that is too long, or whose chat the template rejects, costs its problem
        and not the run: it is left out, with a warning.

        Raises InputError if none fits, or if the template rejects all chats.
        """
        fitting = self._fitting([problem for problem in problems if problem.set not in self.more])
        for name, encoder in self.more.items():
            fitting += encoder._fitting([problem for problem in problems if problem.set == name])
        return fitting

    def _fitting(self, problems: Sequence[Problem]) -> list[Problem]:
        if self.max_tokens is None and not self.chat:
            return list(problems)
        texts = {problem.id: text for problem, text in zip(problems, self._texts(problems), strict=True)}
        rejected = [(name, text) for name, text in texts.items() if isinstance(text, InputError)]
        if rejected:
            name, first = rejected[0]
            if len(rejected) == len(texts):
                raise first
            count = f"{len(rejected)} of {len(texts)} problems are left out, the first is {name}"
            logger.warning("%s: %s", count, first)
        problems = [problem for problem in problems if isinstance(texts[problem.id], str)]
        if self.max_tokens is None:
            return list(problems)
        lengths = {name: len(self._ids(text)) for name, text in texts.items() if isinstance(text, str)}
        long = [f"{name} ({length} tokens)" for name, length in lengths.items() if length > self.max_tokens]
        if long:
            listed = ", ".join(long[:10] + ["…"] * (len(long) > 10))
            message = f"{len(long)} of {len(lengths)} prompts are longer than {self.max_tokens} tokens: {listed}"
            if len(long) == len(lengths):
                raise InputError(
                    f"{message}; raise {self._settings}.max_prompt_tokens, or shorten the completions if the model's "
                    "context allows"
                )
            logger.warning("%s; they are left out", message)
        return [problem for problem in problems if lengths[problem.id] <= self.max_tokens]


def prompt_room(context: int | None, max_tokens: int) -> int | None:
    """The most tokens of a prompt that leaves room for `max_tokens` in `context`. Raises InputError if that is none."""
    if context is not None and context <= max_tokens:
        raise InputError(
            f"max_tokens: {max_tokens} leaves no room for a prompt: the model's context is {context} tokens; "
            "lower max_tokens (rollout.max_tokens in a run), or use a model with a longer context"
        )
    return None if context is None else context - max_tokens


def chat_messages(config: PromptConfig, problem: Problem) -> list[dict[str, str]]:
    """The problem's own chat or its question as the user's message, after the system message, if there is one."""
    system = [{"role": "system", "content": config.system}] if config.system else []
    if problem.messages is not None:
        has_system = any(turn["role"] == "system" for turn in problem.messages)
        return [*([] if has_system else system), *problem.messages]
    # Not str.format: templates and questions are full of LaTeX braces.
    return [*system, {"role": "user", "content": config.template.replace("{question}", problem.question)}]


def render_chat(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Mapping[str, Any]],
    arguments: Mapping[str, Any] | None = None,
    remedy: str = "",
) -> str:
    """The chat up to its reply, or up to where the reply's given beginning ends; paragraphs without a chat template.

    Raises InputError, with the `remedy`, if the template rejects it.
    """
    return value_or_raise(rendered_chats(tokenizer, [messages], arguments, remedy)[0])


def rendered_chats(
    tokenizer: PreTrainedTokenizerBase,
    chats: Sequence[Sequence[Mapping[str, Any]]],
    arguments: Mapping[str, Any] | None = None,
    remedy: str = "",
) -> list[str | InputError]:
    """What `render_chat` gives for each chat, or the error that it raises; faster than one by one."""
    if not tokenizer.chat_template:
        return ["\n\n".join(message["content"] for message in chat) + "\n\n" for chat in chats]
    begun = [chat[-1]["role"] == "assistant" for chat in chats]
    options = [{"continue_final_message": is_begun, "add_generation_prompt": not is_begun} for is_begun in begun]
    asked = [(chat, how | dict(arguments or {})) for chat, how in zip(chats, options, strict=True)]

    def error_of(fault: ChatFault) -> InputError:
        why = f"{fault}; {remedy}" if remedy and not fault.exceeds else str(fault)
        return InputError(f"{tokenizer.name_or_path}: the chat template rejects the prompt: {why}")

    try:
        rendered = rendered_each(tokenizer, asked)
    except ChatFault as fault:
        raise error_of(fault) from fault
    return [error_of(text) if isinstance(text, ChatFault) else text for text in rendered]


def without_markup(tokenizer: PreTrainedTokenizerBase) -> Callable[[str], str]:
    """A function that breaks up the tokenizer's own markup in a text: a tool's result, or a completion that a reward
    model reads, can then neither end its message nor begin another one.

    Of the added tokens that are not special, those count that look like markup. Others are words or runs of spaces.
    """
    added: Any = tokenizer.added_tokens_decoder
    tags = (token.content for token in added.values() if token.special or token.content.startswith(("<", "[", "|")))
    markup = {*tokenizer.all_special_tokens, *tags} - {""}
    pattern = re.compile("|".join(map(re.escape, sorted(markup, key=len, reverse=True))) or r"(?!)")
    return lambda text: pattern.sub(lambda found: f"{found.group()[0]} {found.group()[1:]}", text)
