"""Stop tokens and stop strings end a completion at the token that completes them."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.stop_rule import StopRule


def first_stop(rule: StopRule, token_ids: list[int]) -> int | None:
    """The number of tokens drawn when the stop rule first says stop."""
    return next((count for count in range(1, len(token_ids) + 1) if rule.reached(token_ids[:count])), None)


@pytest.fixture(scope="module")
def byte_tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte, and two longer pieces. Characters outside ASCII take several tokens."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<eos>": 0, **{piece: index + 1 for index, piece in enumerate(alphabet)}}
    vocabulary |= {"##": len(vocabulary), "#Ġ": len(vocabulary) + 1}
    backend = Tokenizer(models.BPE(vocabulary, merges=[("#", "#"), ("#", "Ġ")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore
    backend.decoder = decoders.ByteLevel()  # pyright: ignore
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>")


@pytest.mark.parametrize(
    ("stop", "text", "drawn", "cut"),
    [
        ("\n\n", "one\ntwo\n\nthree", 9, "one\ntwo"),
        ("end", "the end of it", 7, "the "),
        ("a", "abc", 1, ""),
        ("zz", "no such thing", None, "no such thing"),
        ("five six", "one two three four five six seven", 27, "one two three four "),
    ],
)
def test_a_stop_string_ends_at_its_last_token_and_is_cut(tokenizer, stop, text, drawn, cut):
    rule = StopRule(tokenizer, SamplingParams(stop=(stop,)), ())
    token_ids = [tokenizer.convert_tokens_to_ids(character) for character in text]
    assert first_stop(rule, token_ids) == drawn
    assert rule.texts([token_ids[:drawn]]) == [cut]


@pytest.mark.parametrize(
    ("stop", "text"),
    [("### ", "abc### d"), ("é", "caf\u00e9 au lait"), ("答", "問答です"), ("lait", "\u00e9" * 40 + " lait.")],
)
def test_a_stop_string_is_found_across_and_inside_tokens(byte_tokenizer, stop, text):
    rule = StopRule(byte_tokenizer, SamplingParams(stop=(stop,)), ())
    token_ids = byte_tokenizer.encode(text)
    count = first_stop(rule, token_ids)
    assert count is not None
    assert stop in byte_tokenizer.decode(token_ids[:count])
    assert stop not in byte_tokenizer.decode(token_ids[: count - 1])
    assert rule.texts([token_ids[:count]]) == [text[: text.index(stop)]]


def test_the_first_of_several_stop_strings_cuts(tokenizer):
    rule = StopRule(tokenizer, SamplingParams(stop=("ef", "bcdef")), ())
    token_ids = [tokenizer.convert_tokens_to_ids(character) for character in "abcdef"]
    assert first_stop(rule, token_ids) == 6
    assert rule.texts([token_ids]) == ["a"]


def test_stop_tokens_are_the_models_and_the_users(tokenizer):
    rule = StopRule(tokenizer, SamplingParams(stop_token_ids=(9,)), {1})
    assert rule.reached([5, 1])
    assert rule.reached([5, 9])
    assert not rule.reached([9, 5])


def test_a_special_token_given_as_a_string_stops_by_its_id(tokenizer):
    rule = StopRule(tokenizer, SamplingParams(stop=("<eos>",)), ())
    assert rule.reached([5, 1])
    assert rule.texts([[5, 1]]) == ["3"]


def test_decoding_stays_cheap_in_long_completions(tokenizer):
    # Only tokens that could end the stop string are decoded, and only with a window before them.
    decoded = 0

    class Counting:
        all_special_tokens: tuple[str, ...] = ()
        all_special_ids: tuple[int, ...] = ()

        def decode(self, token_ids, **options):
            nonlocal decoded
            decoded += len(token_ids)
            return tokenizer.decode(token_ids, **options)

    rule = StopRule(Counting(), SamplingParams(stop=("\nq",)), ())  # pyright: ignore[reportArgumentType]
    token_ids = [tokenizer.convert_tokens_to_ids(character) for character in "abcdefghq " * 200]
    assert first_stop(rule, token_ids) is None
    assert decoded < 10_000  # decoding everything at every token would take 2,000,000
