"""The character-level tokenizer of the embedded world."""

import re
from string import ascii_letters, digits, punctuation

from tokenizers import Regex, Tokenizer
from tokenizers.decoders import Fuse
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

END, PAD, UNKNOWN = "<|end|>", "<|pad|>", "<|unknown|>"

MARKUP = (
    "<question>",
    "</question>\n",
    "<reference_answer>",
    "</reference_answer>\n",
    "<completion>",
    "</completion>",
    " answer: ",
    "\\boxed{",
)
"""Format strings that are one token each. They say nothing about the answer, and this makes sequences shorter."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """A tokenizer with one token per printable ASCII character and per string in `MARKUP`. All else is unknown.

    There is no beginning-of-sequence token. A completion ends with `END`.
    """
    characters = [*digits, *ascii_letters, *punctuation, " ", "\n"]
    vocabulary = {token: number for number, token in enumerate([PAD, END, UNKNOWN, *MARKUP, *characters])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=UNKNOWN))
    pieces = "|".join([*map(re.escape, MARKUP), r"[\s\S]"])
    tokenizer.pre_tokenizer = Split(Regex(pieces), behavior="isolated")
    tokenizer.decoder = Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=256,
    )
