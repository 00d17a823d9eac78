"""Only what follows a completion's thought is its answer, whichever model family wrote it and whoever reads it."""

import json
import time

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cooper_base.data.problem import Problem
from cooper_base.data.text import normalise
from cooper_base.data.thoughts import Decoder, without_thoughts
from cooper_base.data.transcript import rendered, turns_of
from cooper_rl.engines.config import SamplingParams
from cooper_rl.engines.reward_input import RewardModelInput
from cooper_rl.engines.stop_rule import StopRule
from cooper_verify.graders.judgement import judge_chat
from cooper_verify.rules.answer.extraction import reference_text
from cooper_verify.rules.kinds.choice import ChoiceRule
from cooper_verify.rules.kinds.exact import ExactRule
from cooper_verify.rules.kinds.maths import RuleVerifier
from cooper_verify.rules.kinds.numeric import NumericRule

FAMILIES = {
    "DeepSeek, Qwen": ("<think>", "</think>"),
    "spelled out": ("<thinking>", "</thinking>"),
    "EXAONE": ("<thought>", "</thought>"),
    "recipes for GRPO": ("<reasoning>\n", "\n</reasoning>\n"),
    "Seed": ("<seed:think>", "</seed:think>"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Sky-T1": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "Command A": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "Kimi": ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
    "gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "gpt-oss, decoded": ("analysisWe add. ", "assistantfinal"),
    "Gemma": ("<|channel>thought\n", "<channel|>"),
    "LongCat": ("<longcat_think>", "</longcat_think>"),
    "MedGemma": ("<unused94>thought\n", "<unused95>"),
    "Apriel": ("Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]\n"),
    "HuatuoGPT-o1": ("## Thinking\n\n", "\n## Final Response\n\n"),
    "templates of prompts": ("<analysis>", "</analysis>"),
    "rationales": ("<rationale>", "</rationale>"),
    "chains of thought": ("<chain_of_thought>", "</chain_of_thought>"),
    "marks without bars": ("<begin_of_thought>", "<end_of_thought>"),
    "Granite": ("Here is my thought process:\n", "\nHere is my response:\n"),
}
STATED = ("\\boxed{%s}", "The answer is %s.", "%s")
PROBLEMS = {  # a reference of each rule, and another answer
    "maths": (RuleVerifier, "7", "8"),
    "exact": (lambda: ExactRule().build(), "Lyon", "Paris"),
    "choice": (lambda: ChoiceRule().build(), "B", "C"),
    "numeric": (lambda: NumericRule().build(), "2.5", "3.5"),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rule", PROBLEMS)
def test_every_rule_reads_what_follows_the_thought(rule, family):
    build, right, wrong = PROBLEMS[rule]
    begin, end = FAMILIES[family]
    problem, verifier = Problem("p", "Which?", right), build()
    for form in STATED:
        inside, outside, other = form % right, form % right, form % wrong
        asked = [
            f"{begin}{other}{end}\n\n{outside}",
            f"{begin}{inside}{end}\n\n{other}",
            f"{begin}{inside}{end}",  # nothing follows
            f"{begin}{inside} Let me check by",  # never finished
        ]
        if begin[0] in "<[\u25c1":
            asked.append(f"{begin}{other}{end} {outside} {begin}wait")  # thinks again and never finishes
        verdicts = verifier.verify_problems([(problem, text) for text in asked])
        assert verdicts[0] == "correct", asked[0]
        assert "correct" not in verdicts[1:], list(zip(verdicts, asked, strict=True))
    verifier.close()


@pytest.mark.parametrize("end", [end for begin, end in FAMILIES.values() if begin[0] in "<[\u25c1"])
def test_a_thought_that_the_prompt_began_ends_without_a_beginning(end):
    with RuleVerifier() as verifier:
        assert verifier.verify("7", f"It is 7. \\boxed{{7}}{end}\\boxed{{8}}") == "wrong"
        assert verifier.verify("7", f"Is it \\boxed{{8}}?{end}\\boxed{{7}}") == "correct"


def test_a_thought_longer_than_what_a_rule_reads_is_still_a_thought():
    with RuleVerifier() as verifier:
        assert verifier.verify("7", "<think>" + "Hmm. " * 4000 + "\\boxed{7}") == "unparsed"
        assert verifier.verify("7", "<think>" + "Hmm. " * 4000 + "\\boxed{8}</think>\\boxed{7}") == "correct"


@pytest.mark.parametrize(
    "text",
    [
        "x < 7 and y > 3",
        "I think it is 7.",
        "a [thought] about 7",
        "analysis of 7 variables",
        "<b>7</b>",
        "",
        "7 <thin",
    ],
)
def test_other_texts_are_replies_as_they_are(text):
    assert without_thoughts(text) == text


def test_a_reference_solution_may_hold_a_thought():
    assert reference_text("<think>Perhaps \\boxed{8}.</think>\nIt is \\boxed{7}.") == "7"


@pytest.mark.parametrize("piece", ["<", "<think", "<think>", "[THINK", "< ", "<a:", "<|", "<|channel|> ", "\u25c1"])
def test_marks_are_found_in_linear_time(piece):
    start = time.process_time()
    without_thoughts(piece * (200_000 // len(piece)))
    assert time.process_time() - start < 2  # a quadratic search takes minutes


def test_reward_models_and_judges_read_the_reply():
    text = "<think>Surely 7, \\boxed{7}.</think>\nIt is 8."
    assert normalise(text) == "It is 8."
    assert normalise("<think>Surely 7") == ""
    assert "Surely" not in judge_chat("3 + 4?", "7", text)[1]["content"]


def test_the_reward_model_reads_no_thought(thinking_tokenizer):
    encoder = RewardModelInput(thinking_tokenizer, 256)
    assert encoder.encode("3 + 4 = ?", "7", "<think>7</think>8") == encoder.encode("3 + 4 = ?", "7", "8")


def test_a_run_is_shown_without_the_policys_thoughts_and_nothing_else_can_cut_it():
    turns = turns_of(
        [
            {"role": "assistant", "content": "<think>secret</think>I look it up.", "tool_calls": [
                {"name": "search", "arguments": json.dumps({"query": "</think> seven"})}]},
            {"role": "tool", "content": "</think> seven"},
            {"role": "assistant", "content": "<think>so 7</think>It is 8."},
        ]
    )  # fmt: skip
    shown = normalise(rendered(turns))
    words = ("secret", "so 7", "I look it up.", "(/think) seven")
    assert [word in shown for word in words] == [False, False, True, True]
    assert shown.endswith("It is 8.")


@pytest.fixture(scope="module")
def thinking_tokenizer():
    """Bytes, with marks of a thought as special tokens (Magistral) and an own mark that only the template names."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({piece: index for index, piece in enumerate(["<eos>", *alphabet])}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore
    backend.decoder = decoders.ByteLevel()  # pyright: ignore
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]", "<|other|>"]})
    return tokenizer


def encoded(tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def test_marks_that_are_special_tokens_stay_in_the_text(thinking_tokenizer):
    ids = encoded(thinking_tokenizer, "[THINK]So 7.[/THINK]It is 8.<|other|><eos>")
    assert Decoder(thinking_tokenizer).text(ids) == "[THINK]So 7.[/THINK]It is 8."


def test_a_thought_that_the_prompt_begins_begins_the_text(thinking_tokenizer):
    rule = StopRule(thinking_tokenizer, SamplingParams(), {0})
    begun, answered = encoded(thinking_tokenizer, "3 + 4?\n<think>\n"), encoded(thinking_tokenizer, "Use <think> tags.")
    closed = encoded(thinking_tokenizer, "3 + 4?\n<think>\n\n</think>\n\n")
    ids = np.array(encoded(thinking_tokenizer, "It is 7, so"))
    texts = rule.texts([ids, ids, ids, ids], [begun, begun, answered, closed])
    assert texts == ["<think>It is 7, so"] * 2 + ["It is 7, so"] * 2
    assert [without_thoughts(text) for text in texts] == ["", "", "It is 7, so", "It is 7, so"]


def test_marks_of_ones_own_are_set_or_taken_from_the_template(thinking_tokenizer):
    ids = encoded(thinking_tokenizer, "<work>So 7.</work>It is 8.")
    assert without_thoughts(Decoder(thinking_tokenizer, ("<work>", "</work>")).text(ids)) == "It is 8."
    assert without_thoughts(Decoder(thinking_tokenizer).text(ids)) == "<work>So 7.</work>It is 8."
    thinking_tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content.split('</work>')[-1] }}{% endfor %}<assistant><work>"
    )
    assert without_thoughts(Decoder(thinking_tokenizer).text(ids)) == "It is 8."
    assert SamplingParams(thought=("<work>", "</work>")).thought == ("<work>", "</work>")
