import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cooper_base.data.text import has_content, normalise
from cooper_rl.reward.pairs.assistant import unframe

PIECES = st.lists(
    st.sampled_from(["a", "7", " ", "\n", "\r\n", "\r", "\t", "</s>", "<|im_end|>", "```", "<"]), max_size=12
)


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        (" a \n", "a"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a  \nb", "a\nb"),
        ("a\n\n\n\nb", "a\n\nb"),
        ("a<|im_end|>\n", "a"),
        ("a</s> <|eot_id|>", "a"),
        ("if a <|b|> c", "if a <|b|> c"),
        ("  indented\n    more", "indented\n    more"),
        ("</s>", ""),
    ],
)
def test_normal_form(raw, normal):
    assert normalise(raw) == normal


@given(PIECES)
def test_normalising_twice_changes_nothing(pieces):
    once = normalise("".join(pieces))
    assert normalise(once) == once


@given(PIECES)
def test_an_unframed_reply_is_normalised(pieces):
    text = unframe("".join(pieces), like="plain")
    assert text == normalise(text)


@pytest.mark.parametrize(
    "reply",
    [
        "3 + 4 = 8",
        "```\n3 + 4 = 8\n```",
        "```text\n3 + 4 = 8\n```\n",
        "Sure, here is the rewritten solution:\n\n3 + 4 = 8",
        "Here's the solution:\n```\n3 + 4 = 8\n```",
        "<think>change 7 to 8:\nyes</think>\n\n3 + 4 = 8",
        "<think>\n</think>Okay, here it is:\n```\r\n3 + 4 = 8\r\n```<|im_end|>",
    ],
)
def test_a_chat_frame_around_the_solution_is_removed(reply):
    assert unframe(reply, like="3 + 4 = 7") == "3 + 4 = 8"


@pytest.mark.parametrize("text", ["```\n{}\n```", "Here is the sum:\n{}", "```\na\n```\nso\n```\n{}\n```"])
def test_a_frame_that_the_positive_has_too_stays(text):
    assert unframe(text.format("8"), like=text.format("7")) == text.format("8")


def test_fences_inside_a_solution_stay():
    reply = "```\na\n```\nso\n```\nb\n```"
    assert unframe(reply, like="plain") == reply


def test_long_runs_of_white_space_and_end_markers_take_no_time():
    start = time.process_time()
    unframe("x" + " " * 200_000 + "y" + "\n" * 200_000 + "z", like="plain")
    assert unframe("x" + "</s>" * 200_000, like="plain") == "x"
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("text", "content"), [("", False), (" .,\n$$ -", False), ("x", True), ("…3", True), ("数", True)]
)
def test_content_is_a_letter_or_digit(text, content):
    assert has_content(text) is content
