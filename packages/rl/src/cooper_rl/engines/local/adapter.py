"""Low-rank adapters (LoRA, by peft) in a model and on disk.

A process may hold only some rows of a weight (FSDP2's `DTensor`). Then all processes must call these functions
together, and a checkpoint can be read by another number of processes.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn
from transformers import BitsAndBytesConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from cooper_base.errors import InputError
from cooper_base.files.durable import write_bytes
from cooper_rl.engines.config import LoraConfig
from cooper_rl.engines.local.device import resolve_device, warn_untried
from cooper_rl.engines.model_folder import ADAPTER_CONFIG, ADAPTER_WEIGHTS, YES_NO

ADAPTER = "default"  # peft's name for the only adapter of a model
_BASE = "frozen_weights.sha256"  # the file with the fingerprint of the weights that an adapter was trained beside
_SAMPLED = 64  # numbers of each frozen tensor that its fingerprint is made of


def add_adapter(model: PreTrainedModel, lora: LoraConfig, source: str) -> str:
    """Put an adapter into a model; it and a reward head are trainable, everything else is frozen.

    Returns a fingerprint of the frozen weights: a digest of some numbers of each. Raises MissingExtraError without
    peft.
    """
    lora.check()
    from peft import LoraConfig as PeftConfig  # noqa: PLC0415 - an extra
    from peft import inject_adapter_in_model  # noqa: PLC0415

    targets = target_names(model)
    head = head_modules(model)
    config = PeftConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # pyright: ignore[reportArgumentType] - peft says int, and only divides it
        target_modules=targets,
        base_model_name_or_path=str(Path(source).resolve()) if Path(source).is_dir() else source,
        task_type="SEQ_CLS" if head else "CAUSAL_LM",
    )
    # Drawing the adapter must not advance the run's own stream of random numbers.
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(0)  # of A; B starts at zero
        inject_adapter_in_model(config, model)
    config.modules_to_save = sorted(head) or None  # the original is trained, so no untrained copy of the head is kept
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".lora_" in name or name.split(".")[0] in head)
        if not parameter.requires_grad:
            sample = parameter.detach().flatten()[:_SAMPLED].float().cpu()
            digest.update(name.encode() + sample.numpy().tobytes())
        elif parameter.dtype.itemsize < torch.float32.itemsize:
            parameter.data = parameter.data.float()  # beside 4-bit weights peft makes it what they are multiplied in
    return digest.hexdigest()


def target_names(model: PreTrainedModel) -> list[str]:
    """The last parts of the names of the layers that get an adapter."""
    output, head = model.get_output_embeddings(), head_modules(model)
    return sorted(
        {
            name.rpartition(".")[2]
            for name, module in model.named_modules()
            if isinstance(module, (nn.Linear, Conv1D)) and module is not output and name.split(".")[0] not in head
        }
    )


def four_bit(lora: LoraConfig | None, device: str) -> dict[str, Any]:
    """The arguments of `from_pretrained` for 4-bit weights, if the settings ask for it. Raises InputError if
    bitsandbytes does not run on the device, and MissingExtraError without it.
    """
    if lora is None or not lora.load_in_4bit:
        return {}
    lora.check()
    place = resolve_device(device)
    if place.type == "cuda":
        warn_untried("lora: load_in_4bit", "has drawn completions on a GPU here, and has not learned on one")
    try:
        from bitsandbytes.nn import Linear4bit  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - optional

        # As in a learner: on some CPUs a layer that has computed without gradient no longer computes one.
        layer = Linear4bit(64, 64, quant_type="nf4").to(place).eval()
        inputs = torch.ones(2, 64, device=place)
        layer(inputs)
        layer(inputs.requires_grad_()).sum().backward()
    except Exception as error:  # whatever the library raises on a device that it was not built for
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"lora.load_in_4bit: bitsandbytes does not run on {place} ({reason}); set load_in_4bit: false"
        ) from error
    how = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
    return {"quantization_config": how, "device_map": {"": place}}


@contextmanager
def adapter_off(model: nn.Module) -> Iterator[None]:
    """The model as it was before it had an adapter. Gradients may not be accumulated meanwhile."""
    layers = adapted_layers(model)
    try:
        for layer in layers:
            layer.enable_adapters(False)
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def adapted_layers(model: nn.Module) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "base_layer")]


@torch.no_grad()
def plain_weights(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Names and whole weights of the model without adapter, each once, with the adapter added. All processes must call
    this."""
    modules: Any = model.named_modules()
    layers = {f"{name}.base_layer.weight": module for name, module in modules if hasattr(module, "base_layer")}
    for name, parameter in model.named_parameters():
        if ".lora_" not in name:
            weight = parameter.detach()
            if (adapted := layers.get(name)) is not None:
                weight = weight + sum(adapted.get_delta_weight(name) for name in adapted.active_adapters)
            yield name.replace(".base_layer", ""), whole(weight)


def head_modules(model: PreTrainedModel) -> list[str]:
    """The names of what a sequence classifier has on top of its base model: `score`, `classifier` or another name."""
    if not type(model).__name__.endswith("ForSequenceClassification"):
        return []
    names = [name for name, part in model.named_children() if next(part.parameters(), None) is not None]
    return [name for name in names if name != model.base_model_prefix]


def adapter_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Only the adapter, by the model's own names, each tensor whole. All processes must call this."""
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            yield name, whole(parameter.detach())


def adapter_files(model: PreTrainedModel) -> dict[str, bytes]:
    """The adapter, and a head trained with it, as the files of peft's folder. All processes must call this."""
    trained = {name: whole(value).cpu().contiguous() for name, value in _trained(model).items()}
    adapters: Any = model.peft_config
    config = adapters[ADAPTER].to_dict() | {"inference_mode": True}
    listed = {key: sorted(value) if isinstance(value, set) else value for key, value in config.items()}
    text = json.dumps(listed, indent=2, sort_keys=True, default=str)
    files = {ADAPTER_WEIGHTS: to_bytes(trained, metadata={"format": "pt"}), ADAPTER_CONFIG: text.encode()}
    asked = getattr(model.config, YES_NO, None)
    return files if asked is None else files | {f"{YES_NO}.json": json.dumps(asked).encode()}


def save_adapter(directory: Path, model: PreTrainedModel, base: str, writes: bool) -> None:
    """Write `adapter_files` and the fingerprint `base` to a folder; one process `writes`."""
    files = adapter_files(model)
    if writes:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in (files | {_BASE: base.encode()}).items():
            write_bytes(directory / name, content, durable=False)


@torch.no_grad()
def load_adapter(directory: Path, model: PreTrainedModel, base: str | None = None) -> None:
    """Restore an adapter that `save_adapter` or peft wrote. Raises InputError for a folder without an adapter, or with
    one of other settings or another base model."""
    path = directory / ADAPTER_WEIGHTS
    if not path.is_file():
        raise InputError(
            f"{directory}: holds no adapter ({ADAPTER_WEIGHTS}); it was saved without LoRA. Resume it without the "
            "setting lora"
        )
    saved, trained = load_file(path), _trained(model)
    if {name: value.shape for name, value in saved.items()} != {name: value.shape for name, value in trained.items()}:
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
    head = head_modules(model)
    return {
        "base_model.model." + name.replace(f".{ADAPTER}.", "."): parameter.detach()
        for name, parameter in model.named_parameters()
        if ".lora_" in name or name.split(".")[0] in head
    }


# A tensor of which other processes hold the rest is a DTensor, whose methods a plain one lacks.


def whole(tensor: Any) -> Tensor:
    """The whole tensor. If it is sharded, all processes must call this."""
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


def own(tensor: Any) -> Tensor:
    """The rows that this process holds, as a plain tensor in the same memory."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def own_rows(tensor: Any) -> slice:
    """The range of the rows that this process holds. FSDP2 cuts like `torch.chunk`, so the last ones may hold none."""
    mesh, rows = getattr(tensor, "device_mesh", None), tensor.shape[0]
    start = 0 if mesh is None else min(rows, mesh.get_local_rank() * -(-rows // mesh.size()))
    return slice(start, start + own(tensor).shape[0])


def like(tensor: Any, rows: Tensor) -> Tensor:
    """`rows`, those of this process, as a tensor that is sharded as `tensor` is, or not."""
    if not hasattr(tensor, "device_mesh"):
        return rows
    from torch.distributed.tensor import DTensor  # noqa: PLC0415 - one process has no use for it

    return DTensor.from_local(rows, tensor.device_mesh, tensor.placements, shape=tensor.shape, stride=tensor.stride())
