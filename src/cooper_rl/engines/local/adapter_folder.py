"""An adapter on disk: a folder as peft writes it, and a file that tells which weights it was trained beside.

Of a sharded model every process takes part; any number of processes, one included, reads what any number has written.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from cooper_rl.engines.local.adapter import ADAPTER, head_modules
from cooper_rl.engines.local.shards import own, own_rows, whole
from cooper_rl.engines.model_folder import ADAPTER_CONFIG, ADAPTER_WEIGHTS
from cooper_rl.errors import InputError

_BASE = "frozen_weights.sha256"
"""The file that tells which weights an adapter was trained beside."""
_SAMPLED = 64
"""Numbers of each frozen tensor that its fingerprint is made of."""


def fingerprint(model: PreTrainedModel) -> str:
    """Tells frozen weights from others, by some numbers of each tensor. Asked before a model is sharded."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            sample = parameter.detach().flatten()[:_SAMPLED].float().cpu()
            digest.update(name.encode() + sample.numpy().tobytes())
    return digest.hexdigest()


def save_adapter(directory: Path, model: PreTrainedModel, base: str, writes: bool = True) -> None:
    """Write the adapter, and the head that is trained with it, as a folder of peft's.

    `base` is the fingerprint of the frozen weights. Of the processes of a sharded model one `writes`.
    """
    trained = {name: whole(value).cpu() for name, value in _trained(model).items()}
    if not writes:
        return
    settings: Any = model.peft_config
    config = settings[ADAPTER].to_dict() | {"inference_mode": True}
    listed = {key: sorted(value) if isinstance(value, set) else value for key, value in config.items()}
    directory.mkdir(parents=True, exist_ok=True)
    save_file(trained, directory / ADAPTER_WEIGHTS, metadata={"format": "pt"})
    text = json.dumps(listed, indent=2, sort_keys=True, default=str)
    (directory / ADAPTER_CONFIG).write_text(text, encoding="utf-8")
    (directory / _BASE).write_text(base, encoding="utf-8")


@torch.no_grad()
def load_adapter(directory: Path, model: PreTrainedModel, base: str | None = None) -> None:
    """Put back what `save_adapter` wrote, or peft; `base` as there.

    Raises InputError for a folder without adapter, with one of other settings, or with one of another base.
    """
    path = directory / ADAPTER_WEIGHTS
    if not path.is_file():
        raise InputError(
            f"{directory}: holds no adapter ({ADAPTER_WEIGHTS}); it was saved without LoRA. Resume it without the "
            "setting lora"
        )
    saved, trained = load_file(path), _trained(model)
    fits = saved.keys() == trained.keys() and all(saved[name].shape == trained[name].shape for name in saved)
    if not fits:
        raise InputError(
            f"{path}: this adapter has other layers or another rank; resume with the settings lora it was trained with"
        )
    beside = directory / _BASE
    if base is not None and beside.is_file() and beside.read_text(encoding="utf-8") != base:  # peft writes no such file
        raise InputError(f"{path}: this adapter was trained beside other weights than those of the model configured")
    for name, value in trained.items():
        own(value).copy_(saved[name][own_rows(value)])


def _trained(model: PreTrainedModel) -> dict[str, Tensor]:
    """Trained tensors by the names that peft gives them on disk."""
    return {
        "base_model.model." + name.replace(f".{ADAPTER}.", "."): parameter.detach()
        for name, parameter in model.named_parameters()
        if ".lora_" in name or name.split(".")[0] in head_modules(model)
    }
