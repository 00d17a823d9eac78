"""Random Llamas of the tests' size, in float32 or float64."""

import torch
from transformers import LlamaConfig, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from tiny_size import TINY


def tiny_config(**changes) -> LlamaConfig:
    settings = {
        **TINY,
        "max_position_embeddings": 128,
        "bos_token_id": None,
        "eos_token_id": 0,
        "initializer_range": 0.2,
    }
    return LlamaConfig(**(settings | changes))


def in_precision(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """The model with every computation in `dtype`; Llama's own norms would compute in float32."""
    if dtype == torch.float64:
        for parent in list(model.modules()):
            for name, module in list(parent.named_children()):
                if isinstance(module, LlamaRMSNorm):
                    setattr(parent, name, torch.nn.RMSNorm(module.weight.shape, eps=module.variance_epsilon))
    return model.to(dtype).eval()  # pyright: ignore[reportArgumentType]
