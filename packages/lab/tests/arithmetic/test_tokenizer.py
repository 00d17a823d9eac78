"""The world's character-level tokenizer."""

from string import printable

from transformers import AutoTokenizer, LlamaConfig

from cooper_lab.arithmetic.tokenizer import END, MARKUP, build_tokenizer


def test_text_survives_encoding_and_decoding():
    tokenizer = build_tokenizer()
    text = "".join(c for c in printable if c >= " ") + "\n" + "".join(MARKUP) + " answer:  two  spaces"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_each_character_and_each_markup_string_is_one_token():
    tokenizer = build_tokenizer()
    assert len(tokenizer("12+7=19 answer: 19")["input_ids"]) == len("12+7=19") + 1 + len("19")
    assert all(len(tokenizer(text)["input_ids"]) == 1 for text in MARKUP)


def test_no_special_token_is_added_and_unknown_characters_stay_countable():
    tokenizer = build_tokenizer()
    assert tokenizer.eos_token == END
    ids = tokenizer("1é2")["input_ids"]
    assert ids == [*tokenizer("1")["input_ids"], tokenizer.unk_token_id, *tokenizer("2")["input_ids"]]


def test_auto_tokenizer_beside_a_model_gives_the_same_tokens(tmp_path):
    tokenizer = build_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    LlamaConfig().save_pretrained(tmp_path)  # AutoTokenizer looks at the model's kind first
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    text = "<question>7 + 5 = ?</question>\nWhat is 2 * 3? \\boxed{1 1/2 figs} answer: 12"
    assert loaded(text)["input_ids"] == tokenizer(text)["input_ids"]
