"""The size of a model, from its config alone: no weights are loaded."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, PretrainedConfig
from transformers.pytorch_utils import Conv1D

from cooper_base.data.strict_json import parse_json
from cooper_rl import InputError
from cooper_rl.engines.config import LoraConfig
from cooper_rl.engines.local.adapter import target_names
from cooper_rl.engines.local.learner import freeze_layers
from cooper_rl.engines.model_folder import adapter_base, local_folder

_INSTRUCT = "-Instruct"


@dataclass(frozen=True)
class Shape:
    """The numbers of a model that a plan needs."""

    name: str
    params: int
    """Number of parameters: a policy's with its output layer, a reward model's with its head."""
    layers: int
    hidden: int
    kv_size: int
    """Numbers a token leaves in the key-value cache of one layer: keys and values of all key heads."""
    heads: int
    adapter_params: int = 0
    """Number of parameters of the low-rank adapter; 0 without one."""
    linear_params: int = 0
    """Number of parameters of linear layers that share no weight. If they are not trained, a GPU in bfloat16 holds them
    in bfloat16."""
    frozen_layers: int = 0
    frozen_params: int = 0
    """Number of parameters of the embeddings and the lowest layers, if those are not trained (`frozen_layers`)."""


def shape_of(
    model: str, reward_model: bool = False, lora: LoraConfig | None = None, stands_for: str = "", frozen_layers: int = 0
) -> Shape:
    """The shape of a model folder or name. A known name (`known_models.json`) needs no hub.

    `stands_for` names the model to take instead where `model` does not exist yet. Raises InputError for a folder
    without config.json, for a name that is neither known nor on the hub, for target modules that do not exist, and for
    more frozen layers than there are.
    """
    config = _config(stands_for or model)
    config.num_labels = 1
    auto: Any = AutoModelForSequenceClassification if reward_model else AutoModelForCausalLM
    try:
        with torch.device("meta"):
            built = auto.from_config(config, trust_remote_code=False)
    except ValueError as error:
        raise InputError(f"{model}: transformers cannot build this model: {error}") from error
    freeze_layers(built, frozen_layers)
    text: Any = config.get_text_config()
    head_size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    kv_heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    return Shape(
        name=model,
        params=sum(parameter.numel() for parameter in built.parameters()),
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        kv_size=2 * kv_heads * head_size,
        heads=text.num_attention_heads,
        adapter_params=_adapter_params(built, lora, model),
        linear_params=_linear_params(built),
        frozen_layers=frozen_layers,
        frozen_params=sum(parameter.numel() for parameter in built.parameters() if not parameter.requires_grad),
    )


def known_models() -> Mapping[str, dict[str, Any]]:
    """Configs of published models by name: the parts of their config.json that a plan needs (checked as README.md
    says)."""
    return json.loads(files("cooper_lab.plan").joinpath("known_models.json").read_text(encoding="utf-8"))


def _config(model: str) -> PretrainedConfig:
    shape = known_models().get(model.removesuffix(_INSTRUCT))
    if shape is not None and not Path(model).is_dir():
        return AutoConfig.for_model(**shape)
    base = adapter_base(model)
    folder = local_folder(base or model)
    if folder is None:
        return AutoConfig.from_pretrained(base or model, trust_remote_code=False)
    try:
        values = parse_json((folder / "config.json").read_text(encoding="utf-8"))
        return AutoConfig.for_model(**values)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"{folder}/config.json: cannot be read as a model's config: {error}") from error


def _linear_params(model: torch.nn.Module) -> int:
    uses = Counter(id(parameter) for _, parameter in model.named_parameters(remove_duplicate=False))
    linear = [list(m.parameters(recurse=False)) for m in model.modules() if isinstance(m, torch.nn.Linear)]
    return sum(p.numel() for weights in linear for p in weights if all(uses[id(weight)] == 1 for weight in weights))


def _adapter_params(model: Any, lora: LoraConfig | None, source: str) -> int:
    """Rank times inputs and outputs of every adapted layer."""
    if lora is None:
        return 0
    names = target_names(model)
    output = model.get_output_embeddings()
    adapted = [m for name, m in model.named_modules() if name.rpartition(".")[2] in names and m is not output]
    return sum(lora.rank * sum(m.weight.shape) for m in adapted if isinstance(m, (torch.nn.Linear, Conv1D)))
