"""Where a completion's thought ends and its reply begins. Only the reply counts as an answer.

A model that thinks writes its thought between two marks, which differ between families: `<think>`, `<thinking>`,
`<thought>`, `<reasoning>`, `<seed:think>`, `[THINK]`, `<|begin_of_thought|>`, `<|START_THINKING|>`, the channels of
gpt-oss and Gemma, and the sentences of Granite, Apriel and HuatuoGPT. Rules, reward models, judges and assistants read
what follows the last thought. While a thought is unfinished there is no reply. Rules also stop where the turn ends.
"""

import re
from collections.abc import Sequence
from typing import Any

MARKS = ("<think>", "</think>")
"""The marks that a model's own ones become when its tokens are decoded."""

_NAME = (
    r"(?:\w{1,16}[:_])?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|monolog(?:ue)?|innermonologue|analysis"
    r"|rationale|cot)"
)
_BEGIN = r"(?:(?:begin|start)(?:_of)?_)"
_END = r"(?:/|end_(?:of_)?)"
_MARK = re.compile(
    rf"<\s?(?:(?P<tag_end>{_END}\s?)|{_BEGIN})?{_NAME}\s?>"
    r"|<unused94>|(?P<unused_end><unused95>)"  # Gemma's that think
    rf"|\[(?P<bracket_end>/)?THINK(?:ING)?\]"
    rf"|\u25c1(?P<triangle_end>/)?{_NAME}\u25b7"
    rf"|<\|(?:(?P<token_end>{_END})|{_BEGIN})?{_NAME}\|>"
    r"|<\|inner_(?:(?P<inner_end>suffix)|prefix)\|>"
    r"|<\|?channel\|?>\s?(?:analysis|thought|commentary)\b|(?P<channel_end><\|channel\|>\s?final\b(?:<\|message\|>)?|<channel\|>)",
    re.IGNORECASE,
)
# Marks without a bracket count only where no reply can have begun: at the very start of a completion.
_BARE = (
    (re.compile(r"\s*Here is my thought process:"), "Here is my response:"),  # Granite
    (re.compile(r"\s*analysis(?=[A-Z])"), "assistantfinal"),  # gpt-oss without its special tokens
    (re.compile(r"\s*Here are my reasoning steps:"), "[BEGIN FINAL RESPONSE]"),  # Apriel
    (re.compile(r"\s*## Thinking\b"), "## Final Response"),  # HuatuoGPT-o1
)
_BEGINNINGS = ("<", "\u25c1", "[T", "[/T", "[t", "[/t")
"""Most completions have none of these, and need no search for marks."""
_TURN_END = re.compile(
    r"<\|(?:im_(?:end|start)|endoftext|end_of_text|e[o0]t(?:_id)?|eom_id|end_of_turn|end(?=\|>(?!<\|start\|>assistant))|return|user|start_header_id"
    r"|END_OF_TURN_TOKEN|START_OF_TURN_TOKEN)\|>|<\uff5c(?:end\u2581of\u2581sentence|User)\uff5c>|</s>|<eos>|<(?:end|start)_of_turn>"
    r"|\[/?INST\]"
)
_TURN_BEGINNINGS = ("<|", "<\uff5c", "</s>", "<eos>", "_of_turn>", "INST]")
_CALLS_END = ("</tool_call>", "</tool_call>\n", "<|tool_calls_section_end|>", "</function_calls>")
_TURN = re.compile(
    r"<\|im_start\|>assistant\b|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model\b|<\|assistant\|>"
)
"""Where the model goes on after a call and the turn of a tool."""
_ROLE = re.compile(r"\s*(?:assistant|model)?\s*")
"""What may stand between marks in front of a reply."""
_HISTORY_CUT = re.compile(r"split\(\s*(['\"])([^'\"\s]{3,40})\1\s*\)\s*\[-1\]")
_OPENED_WITHIN = 64


def without_thoughts(text: str) -> str:
    """The reply: what follows the last thought of a completion; empty while a thought is unfinished.

    A text without marks is a reply. Before an end without a beginning, the prompt has begun the thought.
    """
    return _reply(text, [])


def own_turn(text: str) -> str:
    """The reply up to the mark with which its turn ends, such as `<|im_end|>`: what follows is no part of it.

    Marks inside a thought and in front of the reply do not count, nor those of a turn that ends in a call of a tool.
    """
    ends = [*_TURN_END.finditer(text)] if any(beginning in text for beginning in _TURN_BEGINNINGS) else []
    struck = text.find("<s>") if ends else -1
    return _reply(text, [end for end in ends if end.group() != "</s>" or not 0 <= struck < end.start()])


def _reply(text: str, turn_ends: Sequence[re.Match[str]]) -> str:
    reply_at = 0
    for begin, end in _BARE:
        if match := begin.match(text):
            place = text.find(end, match.end())
            if place < 0:
                return ""
            reply_at = place + len(end)
    is_reply, stop = True, len(text)
    marks = [*_MARK.finditer(text, reply_at)] if any(beginning in text for beginning in _BEGINNINGS) else []
    events = [(mark.start(), False, mark) for mark in marks] + [(mark.start(), True, mark) for mark in turn_ends]
    for _, ends_turn, mark in sorted(events, key=lambda event: event[0]):
        if mark.start() < reply_at:
            continue  # in the turn of a tool
        if not ends_turn:
            is_reply, reply_at = is_end(mark), mark.end()
        elif is_reply and _ROLE.fullmatch(text, reply_at, mark.start()):
            reply_at = mark.end()
        elif (
            is_reply and text.endswith(_CALLS_END, reply_at, mark.start()) and (turn := _TURN.search(text, mark.end()))
        ):
            reply_at = turn.end()
        elif is_reply:
            stop = mark.start()
            break
    if not is_reply:
        return ""
    return text if (reply_at, stop) == (0, len(text)) else text[reply_at:stop].lstrip()


def is_end(mark: re.Match[str]) -> bool:
    """Whether a mark ends a thought; otherwise it begins one."""
    return any(mark.groupdict().values())


def without_marks(text: str) -> str:
    """The text with the brackets of such marks replaced, so that what a policy did not write cuts off no thought."""
    return _MARK.sub(lambda mark: f"({mark.group()[1:-1]})", text)


class Decoder:
    """Decodes completions to text without special tokens, except those that mark a thought.

    `marks` are the model's own beginning and end of a thought. They become `MARKS`, which everything that reads a
    completion knows. Without them they are taken from the chat template, if it cuts earlier thoughts off by an end that
    is none of the known ones.
    """

    def __init__(self, tokenizer: Any, marks: tuple[str, str] | None = None) -> None:
        self._tokenizer = tokenizer
        model_marks = marks or _marks_in(tokenizer)
        self._renamed = list(zip(model_marks, MARKS, strict=True)) if model_marks else []
        special = zip(tokenizer.all_special_tokens, tokenizer.all_special_ids, strict=True)
        self._kept = {number: str(token) for token, number in special if self._is_mark(str(token))}

    def text(self, token_ids: Sequence[int]) -> str:
        """The text of a completion's tokens."""
        start, pieces = 0, []
        if self._kept:
            for place, number in enumerate(token_ids):
                if number in self._kept:
                    pieces += [self.plain(token_ids[start:place]), self._kept[number]]
                    start = place + 1
        pieces.append(self.plain(token_ids[start:] if start else token_ids))
        text = "".join(pieces)
        for model_mark, mark in self._renamed:
            text = text.replace(model_mark, mark)
        return text

    def opened(self, prompt_ids: Sequence[int]) -> str:
        """The mark with which a prompt ends, if it begins the thought that the completion goes on with; else empty."""
        text = self.text(list(prompt_ids[-_OPENED_WITHIN:])).rstrip()
        *_, last = [None, *_MARK.finditer(text)]
        return last.group() if last is not None and last.end() == len(text) and not is_end(last) else ""

    def plain(self, token_ids: Sequence[int]) -> str:
        """The text of these tokens without any special token."""
        text = self._tokenizer.decode(list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert isinstance(text, str)
        return text

    def _is_mark(self, token: str) -> bool:
        model_marks = {mark for mark, _ in self._renamed}
        return token in model_marks or _MARK.fullmatch(token) is not None or token in _CHANNEL_TOKENS


_CHANNEL_TOKENS = {"<|channel|>", "<|channel>", "<channel|>", "<|message|>"}


def _marks_in(tokenizer: Any) -> tuple[str, str] | None:
    """The marks that a chat template names by cutting earlier thoughts off, where they are none of the known ones."""
    template = getattr(tokenizer, "chat_template", None)
    for _, end in _HISTORY_CUT.findall(template) if isinstance(template, str) else ():
        begin = end.replace("/", "", 1)
        if begin != end and begin in template and not _MARK.fullmatch(end):
            return begin, end
    return None
