"""Questions become prompts in the form that the model was trained to read."""

from dataclasses import replace

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from cooper_base.data.problem import Problem
from cooper_base.errors import InputError
from cooper_rl.data.chat_rendering import rendered_each
from cooper_rl.data.prompts import PromptEncoder
from cooper_verify.problems.config import PromptConfig

CHAT = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
PROBLEM = Problem("p1", r"What is \frac{1}{2}?", "0.5")


def tokenizer(chat_template: str | None = None, closes: bool = False) -> PreTrainedTokenizerFast:
    """One token per character; `^` begins a sequence and `~` ends it."""
    characters = [chr(code) for code in range(32, 127)] + ["\n"]
    backend = Tokenizer(models.WordLevel({c: i for i, c in enumerate(characters)}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    ends = [(c, characters.index(c)) for c in "^~"]
    backend.post_processor = processors.TemplateProcessing(single="^ $A ~" if closes else "^ $A", special_tokens=ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="^", eos_token="~", unk_token="?", chat_template=chat_template
    )


def decoded(encoder: PromptEncoder) -> str:
    return "".join(encoder.tokenizer.convert_ids_to_tokens(encoder.encode(PROBLEM)))


def test_a_plain_prompt_keeps_latex_braces_and_opens_the_sequence():
    encoder = PromptEncoder(tokenizer(), PromptConfig(system="Be brief.", template="{question}\n\\boxed{}"))
    assert decoded(encoder) == "^Be brief.\n\nWhat is \\frac{1}{2}?\n\\boxed{}"


def test_a_prompt_never_ends_with_end_of_sequence():
    assert (
        decoded(PromptEncoder(tokenizer(closes=True), PromptConfig(template="{question}"))) == r"^What is \frac{1}{2}?"
    )


def test_the_chat_template_is_used_where_there_is_one():
    config = PromptConfig(system="Be brief.", template="Q: {question}")
    assert (
        decoded(PromptEncoder(tokenizer(CHAT), config)) == r"[system]Be brief.[user]Q: What is \frac{1}{2}?[assistant]"
    )


def test_chat_can_be_switched_off():
    assert decoded(PromptEncoder(tokenizer(CHAT), PromptConfig(template="{question}", chat=False))).startswith("^What")


def test_chat_arguments_reach_the_template():
    config = PromptConfig(template="{question}", chat_arguments={"thinking": False})
    assert PromptEncoder(tokenizer("{{ thinking }}"), config).text(PROBLEM) == "False"


def test_requiring_a_missing_chat_template_is_refused():
    with pytest.raises(InputError, match="no chat template"):
        PromptEncoder(tokenizer(), PromptConfig(chat=True))


def test_an_error_explains_a_template_without_a_system_role():
    strict = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}x"
    with pytest.raises(InputError, match=r"no system role.*leave problems\.prompt\.system empty"):
        PromptEncoder(tokenizer(strict), PromptConfig(system="Be brief.")).text(PROBLEM)


PROBLEMS = [Problem("short", "1+1", "2"), Problem("long", "1+" * 20 + "1", "21")]


@pytest.mark.parametrize(("max_prompt_tokens", "context"), [(10, None), (None, 10), (10, 500), (500, 10)])
def test_prompts_over_the_limit_are_named_and_left_out(
    max_prompt_tokens: int | None, context: int | None, caplog: pytest.LogCaptureFixture
):
    config = PromptConfig(template="{question}", max_prompt_tokens=max_prompt_tokens)
    assert PromptEncoder(tokenizer(), config, context).fitting(PROBLEMS) == PROBLEMS[:1]
    assert "1 of 2 prompts are longer than 10 tokens: long (42 tokens); they are left out" in caplog.text


def test_a_run_none_of_whose_prompts_fits_is_refused():
    config = PromptConfig(template="{question}")
    with pytest.raises(InputError, match=r"2 of 2 prompts.*raise problems\.prompt\.max_prompt_tokens"):
        PromptEncoder(tokenizer(), config, context=3).fitting(PROBLEMS)
    encoder = PromptEncoder(tokenizer(), config, context=10, more={"other": config})
    with pytest.raises(InputError, match=r"raise more_problems\.other\.prompt\.max_prompt_tokens"):
        encoder.fitting([PROBLEMS[0], replace(PROBLEMS[1], set="other")])


def test_without_a_limit_every_prompt_fits():
    assert PromptEncoder(tokenizer(), PromptConfig()).fitting(PROBLEMS) == PROBLEMS


RICH = """\
{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}
  <{{ m.role }}>{{ m.content }}{% if 'tool_calls' in m %}{{ m.tool_calls[0].function.name }}{% endif %}</{{ m.role }}>
{%- endfor %}{% if add_generation_prompt %}<assistant>{{ mark }}{% endif %}"""


@pytest.mark.parametrize(
    "options",
    [
        {"add_generation_prompt": True},
        {
            "add_generation_prompt": True,
            "tools": [{"type": "function", "function": {"name": "add"}}],
            "mark": "é\ud800",
        },
        {"continue_final_message": True},
        {"chat_template": "other"},
    ],
    ids=str,
)
def test_chats_are_rendered_as_transformers_renders_them(options):
    coder = tokenizer()
    vars(coder)["chat_template"] = {
        "default": RICH,
        "other": "{{ messages | length }}{{ eos_token }}",
        "tool_use": RICH,
    }
    call = {"type": "function", "function": {"name": "add", "arguments": {}}}
    chats = [
        [{"role": "user", "content": "Zahl\n»ü« {{ 7 }}"}],
        [{"role": "user", "content": "1"}, {"role": "assistant", "content": "It is", "tool_calls": None}],
        [{"role": "user", "content": "1"}, {"role": "assistant", "content": "", "tool_calls": [call]}],
    ][: 2 if "continue_final_message" in options else 3]
    expected = [coder.apply_chat_template(chat, tokenize=False, **options) for chat in chats]
    assert rendered_each(coder, [(chat, options) for chat in chats]) == expected
