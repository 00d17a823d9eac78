"""Small random reward models that read chats, as folders: tokenizers with the templates of published models."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    GemmaConfig,
    GPT2Config,
    LlamaConfig,
    PreTrainedTokenizerFast,
    Qwen3Config,
    XLNetConfig,
)

CHARACTERS = [chr(code) for code in range(32, 127)] + ["\n", "é", "🙂"]
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>")

CHATML = """\
{%- if tools %}{{ '<|im_start|>system\n' + (tools | tojson) + '<|im_end|>\n' }}{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
{%- elif message.role == 'assistant' %}
{%- set thought = '<think>\n\n</think>\n\n' if loop.last else '' %}
{{- '<|im_start|>assistant\n' + thought + message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\n<tool_call>\n' + (call.function | tojson) + '\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- else %}{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
"""As Qwen3's: thoughts before the last reply, and tools."""
INSTRUCT = """\
{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}{{ '[INST] ' + message.content | trim + ' [/INST]' }}
{%- elif message.role == 'assistant' %}{{ ' ' + message.content | trim + eos_token }}
{%- else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}
{%- endfor %}"""
"""As Llama 2's and Mistral's: it begins and ends with a special token, and refuses tools."""

SHAPE: dict[str, Any] = {"vocab_size": len(SPECIAL) + len(CHARACTERS), "num_labels": 1, "initializer_range": 0.3}
SMALL: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
ARCHITECTURES: dict[str, tuple[Any, str]] = {
    # The head is called `score`, and the padding token is its own.
    "qwen3": (Qwen3Config(**SHAPE, **SMALL, num_key_value_heads=1, head_dim=16, pad_token_id=0), CHATML),
    # The padding token is the end of sequence, with which every chat ends: the score is read before it.
    "llama": (LlamaConfig(**SHAPE, **SMALL, num_key_value_heads=1, pad_token_id=2, eos_token_id=2), INSTRUCT),
    # No padding token: plain transformers then scores a single row at its very end.
    "llama without padding": (LlamaConfig(**SHAPE, **SMALL, pad_token_id=None, eos_token_id=2), INSTRUCT),
    # The padding token is a default of its config, and not in config.json.
    "gemma": (GemmaConfig(**SHAPE, **SMALL, num_key_value_heads=1, head_dim=16), CHATML),
    "gpt2": (GPT2Config(**SHAPE, n_embd=32, n_layer=2, n_head=2, n_positions=512, pad_token_id=0), CHATML),
    # The head has two parts and reads the last place of the row, so the row is padded on its left.
    "xlnet": (XLNetConfig(**SHAPE, d_model=32, d_inner=48, n_layer=2, n_head=2, pad_token_id=0), CHATML),
    # The head is called `classifier` and reads the first token.
    "bert": (BertConfig(**SHAPE, **SMALL, max_position_embeddings=512, pad_token_id=0), CHATML),
}


def chat_tokenizer(template: str | None, **settings: Any) -> Any:
    """One token a character. Like many, it puts a beginning of sequence before a text by itself."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.decoder = decoders.Fuse()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])  # pyright: ignore[reportAttributeAccessIssue]
    usual: dict[str, Any] = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    usual |= {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}
    usual |= {"padding_side": "left", "model_max_length": 512}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **usual | settings)
    fast.chat_template = template
    return fast


def chat_model(folder: Path, name: str) -> Path:
    """A random reward model of one of `ARCHITECTURES` in a folder."""
    config, template = ARCHITECTURES[name]
    torch.manual_seed(0)
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    side = "right" if name == "bert" else "left"
    chat_tokenizer(template, padding_side=side).save_pretrained(folder)
    return folder
