"""A causal language model as a reward model: it is asked whether the completion agrees with the reference, and its
score is logit(yes) - logit(no) of the next token.
"""

from typing import Any

from cooper_base.errors import InputError
from cooper_rl.data.prompts import render_chat
from cooper_rl.engines.config import LearnerConfig, ScorerConfig, YesNo
from cooper_rl.engines.model_folder import recorded

YES = ("yes", "Yes", " yes", " Yes", "YES", "y")
NO = ("no", "No", " no", " No", "NO", "n")
"""The spellings that are tried; the last is the first token of a reply in a tokenizer of letters."""
ASK = "\nDoes the completion end in one final answer that agrees with the reference answer? Reply with yes or no:"
_PLACE = "@@input@@"


def yes_no_of(config: LearnerConfig, tokenizer: Any) -> YesNo | None:
    """What a reward model with these settings is asked: by default, what its folder records. None for one with a head.

    Raises InputError if yes and no are not single tokens after the question, and as `recorded` and `chat_around` do.
    """
    kind, ask = (config.kind, config.ask) if isinstance(config, ScorerConfig) else (None, None)
    saved = None if kind == "head" else recorded(config.model)
    if saved is None and kind != "yes_no":
        return None
    ask = ask if ask is not None else saved.ask if saved else ASK
    if saved is not None:
        return saved.model_copy(update={"ask": ask})
    around = chat_around(tokenizer)
    yes, no = _single_tokens(tokenizer, around[1] if around else ask, config.model)
    return YesNo(yes=yes, no=no, ask=ask)


def chat_around(tokenizer: Any) -> list[str]:
    """What the chat template writes before and after the user's message; nothing without a template. Raises InputError
    for a template that rejects or changes the message.
    """
    if not tokenizer.chat_template:
        return []
    # Models that can think first must answer at once; other templates ignore this argument.
    chat = render_chat(tokenizer, [{"role": "user", "content": _PLACE}], {"enable_thinking": False})
    parts = chat.split(_PLACE)
    if len(parts) != 2:
        raise InputError(f"{tokenizer.name_or_path}: the chat template does not show the user's message once, as it is")
    return parts


def _single_tokens(tokenizer: Any, ending: str, path: str) -> tuple[int, int]:
    """The first spelling of yes and no in which each word is one token after the text `ending`."""
    spellings = list(zip(YES, NO, strict=True))
    before = tokenizer.encode(ending, add_special_tokens=False)
    if ending[-1:].strip():  # a word is written with a space after another one
        spellings = sorted(spellings, key=lambda pair: not pair[0].startswith(" "))
    for pair in spellings:
        ids = [tokenizer.encode(ending + word, add_special_tokens=False) for word in pair]
        if all(tokens[:-1] == before and tokens[-1] != tokenizer.unk_token_id for tokens in ids) and ids[0] != ids[1]:
            return ids[0][-1], ids[1][-1]
    tried = " or ".join(f"{yes!r} and {no!r}" for yes, no in spellings)
    raise InputError(
        f"{path}: {tried} are not single tokens after the question; end `ask` in another way, or take another model"
    )
