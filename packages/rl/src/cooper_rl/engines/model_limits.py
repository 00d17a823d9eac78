"""Limits on what loading a model's folder may cost. They are checked on its small files, without torch, before anything
is loaded."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cooper_base.errors import InputError
from cooper_rl.data.chat_rendering import CPU_SECONDS, MOST_CHARACTERS, costs_too_much

LARGEST_MIB = 100
"""Largest file of settings or header, in MiB. For safetensors it is the format's own limit, and a vocabulary has up to
30."""
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers")
WIDTHS = ("hidden_size", "n_embd", "d_model")
BESIDE_WIDTH = ("vocab_size", "intermediate_size", "n_inner", "ffn_dim", "n_positions")
"""Sizes of which a model has a matrix, whose other side is the model's width."""
COUNTS = ("num_labels", "num_experts", "num_local_experts", "n_routed_experts", "num_attention_heads", "n_head")
"""Counts of things that each have at least one number in the weights."""
PACKED = 8
"""Most numbers that one element of a file may hold: weights of 4 bits in elements of 32."""
TEMPLATES = ("tokenizer_config.json", "chat_template.json")


def check_templates(folder: Path) -> None:
    """Raises InputError for a chat template that is not text, is too long, or needs too much time or memory to
    render."""
    for file, template in _templates(folder):
        if not isinstance(template, str):
            raise InputError(f"{file}: chat_template: {repr(template)[:40]} is no text; save the tokenizer again")
        if len(template) > MOST_CHARACTERS:
            raise InputError(f"{file}: chat_template: {len(template):,} characters, at most {MOST_CHARACTERS:,} serve")
        if costs_too_much(template):
            raise InputError(
                f"{file}: chat_template: a prompt of two words takes it more than {CPU_SECONDS} s, 1 GiB of memory or "
                f"{MOST_CHARACTERS:,} characters; use the template that the model was published with"
            )


def has_template(folder: Path) -> bool:
    """Whether the tokenizer in a folder has a chat template."""
    return any(True for _ in _templates(folder))


def _templates(folder: Path) -> Iterator[tuple[Path, Any]]:
    for name in TEMPLATES:
        values = _read_json(folder / name) if (folder / name).exists() else {}
        template = values.get("chat_template") if isinstance(values, dict) else None
        if isinstance(template, list):  # several templates, each with its name
            yield from (
                (folder / name, entry.get("template") if isinstance(entry, dict) else entry) for entry in template
            )
        elif template is not None:
            yield folder / name, template
    for file in (folder / "chat_template.jinja", *sorted(folder.glob("additional_chat_templates/*.jinja"))):
        if file.exists():
            yield file, _read(file).decode("utf-8", "replace")


def check_sizes(folder: Path) -> None:
    """Raises InputError for a config.json whose model is larger than what the folder's weights hold."""
    config, file = _read_json(folder / "config.json"), folder / "config.json"
    if not isinstance(config, dict):
        raise InputError(f"{file}: is no JSON object; save the model's config again")
    tensors = elements = 0
    for weights in folder.glob("*.safetensors"):
        if (shapes := _shapes(weights)) is None:
            return
        tensors, elements = tensors + len(shapes), elements + sum(map(math.prod, shapes))
    inner = [value for value in config.values() if isinstance(value, dict)]  # the parts of a model of several kinds
    for part in (config, *inner):
        width = max((value for name in WIDTHS if (value := _size(part, name)) is not None), default=1)
        most = {**dict.fromkeys(LAYERS, tensors), **dict.fromkeys(WIDTHS, PACKED * elements)}
        most |= dict.fromkeys(BESIDE_WIDTH, PACKED * elements // max(width, 1)) | dict.fromkeys(COUNTS, elements)
        for name, limit in most.items():
            if (size := _size(part, name)) is not None and size > limit:
                raise InputError(
                    f"{file}: {name}: {size:,} does not fit the weights beside it, which are {tensors:,} tensors of "
                    f"{elements:,} numbers; use the config that was saved with them"
                )


def _size(config: dict[str, Any], name: str) -> int | None:
    value = config.get(name)
    return value if type(value) is int else None


def _shapes(file: Path) -> list[list[int]] | None:
    """The shapes of the tensors in a safetensors file, from its header. None if it is damaged: loading it says how."""
    if not file.is_file():
        raise InputError(f"{file}: is no file; remove it")
    try:
        with file.open("rb") as weights:
            length = int.from_bytes(weights.read(8), "little")
            if length > min(LARGEST_MIB * 2**20, file.stat().st_size):
                return None
            header = json.loads(weights.read(length))
        shapes = [tensor["shape"] for name, tensor in header.items() if name != "__metadata__"]
        is_sound = all(type(size) is int and size >= 0 for shape in shapes for size in shape)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return shapes if is_sound else None


def _read(file: Path) -> bytes:
    if not file.is_file():
        raise InputError(f"{file}: is no file; remove it")
    if (size := file.stat().st_size) > LARGEST_MIB * 2**20:
        raise InputError(f"{file}: has {size / 2**20:,.0f} MiB, at most {LARGEST_MIB} serve; copy the model anew")
    return file.read_bytes()


def _read_json(file: Path) -> Any:
    try:
        return json.loads(_read(file))
    except RecursionError as error:
        raise InputError(f"{file}: nested too deeply; save it again") from error
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{file}: not JSON ({error}); save it again") from error
