"""Loads models and tokenizers. Every fault that a user can repair is reported before weights are read."""

import errno
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from cooper_base.data.strict_json import parse_json
from cooper_base.data.text import one_line
from cooper_base.errors import InputError
from cooper_base.files.owned_folder import new_folder
from cooper_rl.data.prompts import render_chat
from cooper_rl.engines.config import LearnerConfig, LoraConfig, ScorerConfig, YesNo
from cooper_rl.engines.local.adapter import four_bit, head_modules
from cooper_rl.engines.model_folder import (
    ADAPTER_CONFIG,
    YES_NO,
    adapter_base,
    check_head,
    check_merge,
    check_tokenizer,
    check_weights,
    download,
    recorded,
)
from cooper_rl.engines.yes_no import yes_no_of

logger = logging.getLogger(__name__)

# Without this setting transformers asks on the terminal whether to run the folder's own code.
_NO_FOREIGN_CODE = {"trust_remote_code": False}


def load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub name. Without a padding token it pads with end-of-sequence. Raises
    InputError for a folder that is missing or has no tokenizer.
    """
    _download(path, "tokenizer")
    check_tokenizer(path)
    with _readable(path, "tokenizer"):
        tokenizer = AutoTokenizer.from_pretrained(path, **_NO_FOREIGN_CODE)
    if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_policy(path: str, quantization: Mapping[str, Any] | None = None) -> PreTrainedModel:
    """A causal language model in float32, in evaluation mode, on the CPU; an adapter is merged into its base.

    `quantization` is what `four_bit` returns. Raises InputError for a missing folder, a folder without config.json or
    with weights missing, a model that is not a causal language model, and a model that comes with its own code.
    """
    if (base := adapter_base(path)) is not None:
        return _merged(path, load_policy(base), quantization)
    _download(path, "model")
    config = _load_config(path)
    claims = _architecture(config)
    if claims.endswith(("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")):
        raise InputError(f"{path}: the folder holds a {claims}, which cannot write text; give a causal language model")
    return _load(AutoModelForCausalLM, path, config, quantization)


def check_reward_model(path: str, new_head: bool = False) -> PretrainedConfig:
    """The config of a reward model, without its weights. Raises InputError like `load_policy`, for a head with several
    outputs, and for none unless it may be a `new_head`.
    """
    config = _load_config(path)
    claims = _architecture(config)
    if claims.endswith("ForSequenceClassification") and config.num_labels != 1:
        raise InputError(f"{path}: the classification head has {config.num_labels} outputs; a reward model has one")
    check_head(path, claims, new_head)
    return config


def check_scorer(config: ScorerConfig) -> None:
    """Raises InputError as `check_reward_model` or `yes_no_of` does, without reading weights."""
    if yes_no_of(config, load_tokenizer(config.model)) is None:
        check_reward_model(config.model)


def load_reward_model(
    path: str,
    new_head_seed: int | None = None,
    quantization: Mapping[str, Any] | None = None,
    yes_no: YesNo | None = None,
) -> PreTrainedModel:
    """A sequence-classification model with one output, else like `load_policy`; or a causal language model, with what
    it is asked (`yes_no`) in its config.

    With `new_head_seed` a causal language model (or a bare backbone) gets a new head drawn with that seed. Raises
    InputError as `check_reward_model` does, and for a classification model whose head is missing.
    """
    if yes_no is not None:
        model = load_policy(path, quantization)
        setattr(model.config, YES_NO, yes_no.model_dump())
        return model
    if (base := adapter_base(path)) is not None:
        return _merged(path, load_reward_model(base, new_head_seed), quantization)
    _download(path, "model")
    config = check_reward_model(path, new_head=new_head_seed is not None)
    seed = None if _architecture(config).endswith("ForSequenceClassification") else new_head_seed
    config.num_labels = 1
    tokenizer = load_tokenizer(path)
    model = _load(AutoModelForSequenceClassification, path, config, quantization, seed)
    vars(model.config).pop(YES_NO, None)  # of a model that was asked before it got a head
    # Plain transformers code refuses batches without a padding id.
    text_config: Any = model.config.get_text_config()
    if text_config.pad_token_id is None or text_config.pad_token_id < 0:
        text_config.pad_token_id = _harmless_padding(tokenizer)
    return model


def _harmless_padding(tokenizer: Any) -> int | None:
    """A token with which no input of a reward model ends; None if the tokenizer has no such token.

    Transformers reads a score before all padding at the end of a row. With a padding token that closes every chat, as
    end-of-sequence often does, a model would be read one token earlier once it has been saved.
    """
    endings = [tokenizer("1")["input_ids"][-1:]]
    if tokenizer.chat_template:
        with suppress(InputError):  # a template that shows no reply is refused as input: chat
            chat = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}]
            text = render_chat(tokenizer, chat, {"continue_final_message": False, "add_generation_prompt": False})
            endings.append(tokenizer.encode(text.rpartition("2")[2], add_special_tokens=False))
    # Unknown characters can end a completion.
    unfit = {None, tokenizer.unk_token_id, *chain.from_iterable(endings)}
    return next((token for token in (tokenizer.pad_token_id, *tokenizer.all_special_ids) if token not in unfit), None)


def _pad_alike(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
    """Saved beside the model, the tokenizer pads with the token before which transformers reads the score."""
    padding = model.config.get_text_config().pad_token_id
    if padding is not None and isinstance(token := tokenizer.convert_ids_to_tokens(padding), str):
        tokenizer.pad_token = token


def load_to_train(
    config: LearnerConfig, scores: bool, new_head_seed: int | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A policy, or a reward model if it `scores`, with its tokenizer.

    Raises InputError as loading either does, and if the tokenizer has ids for which the model has no embedding.
    """
    tokenizer = load_tokenizer(path := config.model)
    yes_no = yes_no_of(config, tokenizer) if scores else None
    if config.lora is not None:
        config.lora.check()
    quantization = four_bit(config.lora, config.device)
    model = load_reward_model(path, new_head_seed, quantization, yes_no) if scores else load_policy(path, quantization)
    if scores and yes_no is None:
        _pad_alike(tokenizer, model)
    rows = model.get_input_embeddings().get_parameter("weight").shape[0]
    largest = max(tokenizer.get_vocab().values())
    if largest >= rows:
        raise InputError(
            f"{path}: the tokenizer has ids up to {largest}, but the model has only {rows} embeddings; use the "
            "tokenizer that was saved with the model"
        )
    return model, tokenizer


def _merged(path: str, base: PreTrainedModel, quantization: Any) -> PreTrainedModel:
    check_weights(path)
    if quantization:
        raise InputError(f"{path}: an adapter cannot be merged into weights of 4 bits; merge it with `cooper export`")
    with _readable(path, "adapter"):
        LoraConfig().check()
        from peft import PeftModel  # noqa: PLC0415 - an extra

        merged: Any = PeftModel.from_pretrained(base, path).merge_and_unload()
        return merged.requires_grad_(True)


def _load_config(path: str) -> PretrainedConfig:
    check_weights(path)
    while base := adapter_base(path):
        path = base
    with _readable(path, "config"):
        return AutoConfig.from_pretrained(path, **_NO_FOREIGN_CODE)


def _architecture(config: PretrainedConfig) -> str:
    names = config.architectures
    return names[0] if isinstance(names, list) and names and isinstance(names[0], str) else ""


def _load(
    auto_class: Any, path: str, config: PretrainedConfig, quantization: Any, new_head_seed: int | None = None
) -> PreTrainedModel:
    disable_progress_bar()  # commands show their own progress
    with _readable(path, "model"):
        model, info = auto_class.from_pretrained(
            path,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            use_safetensors=True,  # the other format is pickle
            **(quantization or {}),
            **_NO_FOREIGN_CODE,
        )
    missing = sorted(info["missing_keys"])
    names = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    if missing and (new_head_seed is None or not {name.split(".")[0] for name in missing} <= {*head_modules(model)}):
        raise InputError(f"{path}: weights missing from the folder: {names}; they would start at random")
    if missing and new_head_seed is not None:
        generator, std = torch.Generator().manual_seed(new_head_seed), getattr(model.config, "initializer_range", 0.02)
        for head in map(model.get_parameter, missing):
            nn.init.normal_(head, std=std, generator=generator) if head.ndim > 1 else nn.init.zeros_(head)
        logger.warning("%s: no reward head in this folder, so a new one is made: %s", path, names)
    # Transformers gives the embedding of the padding token no gradient, which freezes end-of-sequence if the two share
    # an id. Padding never reaches a loss here, so it needs no such protection.
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.padding_idx = None
    return model.eval()


def _download(path: str, what: Literal["tokenizer", "model"]) -> None:
    """Download what the checks before loading read of a model on the hub."""
    with _readable(path, what):
        download(path, weights=what == "model")


@contextmanager
def _readable(path: str, what: str) -> Iterator[None]:
    """Turns whatever a library raises for a model that it cannot read into an InputError. An InputError of ours passes
    unchanged."""
    try:
        yield
    except InputError:
        raise
    # No narrower type will do: tokenizers raises plain Exception, and wrong types in a config raise anything.
    except Exception as error:
        first_line = one_line(str(error).strip().partition("\n")[0])
        from_hub = "" if Path(path).is_dir() else "; there is no such folder, so it was taken for a Hugging Face name"
        fault = f"cannot be loaded{from_hub}: {first_line}"
        if "trust_remote_code" in str(error):
            fault = "comes with its own code, which is never run; use a model that transformers supports"
        raise InputError(f"{path}: the {what} {fault}") from error


def context_length(path: str) -> int | None:
    """Most tokens that the model can attend to, according to its config. None if the config does not say."""
    return getattr(_load_config(path), "max_position_embeddings", None)


def merge_folder(source: str, target: Path) -> None:
    """Write the model of a folder with an adapter to `target`, merged, with its tokenizer. Raises InputError for a
    source without adapter, a target in use, and as `load_policy` does; OSError, and no target, if the disk is full.
    """
    check_merge(source, target)
    with disk_errors(target), new_folder(target) as aside:
        task = parse_json((Path(source) / ADAPTER_CONFIG).read_text(encoding="utf-8")).get("task_type")
        tokenizer, asked = load_tokenizer(source), recorded(source)
        model = load_reward_model(source, yes_no=asked) if asked or task == "SEQ_CLS" else load_policy(source)
        if task == "SEQ_CLS" and not asked:
            _pad_alike(tokenizer, model)
        model.save_pretrained(aside)
        tokenizer.save_pretrained(aside)
    logger.info("%s: merged into its base, in %s", source, target)


@contextmanager
def disk_errors(directory: Path) -> Iterator[None]:
    """Turns what libraries raise if the disk is full into an OSError that names the folder."""
    try:
        yield
    except Exception as error:
        # It is a SafetensorError in safetensors, and a bare Exception in tokenizers.
        if isinstance(error, SafetensorError) or type(error) is Exception:
            told = re.search(r"os error (\d+)", str(error))
            raise OSError(int(told[1]) if told else errno.ENOSPC, str(error), str(directory)) from error
        raise
