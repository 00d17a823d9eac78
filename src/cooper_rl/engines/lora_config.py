"""Settings of a low-rank adapter."""

from importlib.util import find_spec

from pydantic import Field

from cooper_rl.config.base import Config
from cooper_rl.errors import MissingExtraError


class LoraConfig(Config):
    """LoRA (Hu et al. 2021, arXiv 2106.09685): weights stay as they are, and the product of two thin matrices, B A
    times `alpha / rank`, is trained beside each of them. B starts at zero, so training starts at the model itself.

    A reward model's head is trained whole. LoRA wants about ten times the learning rate of full training.
    """

    rank: int = Field(default=32, ge=1)
    """Columns of B and rows of A."""
    alpha: float = Field(default=64.0, gt=0)
    """The product is multiplied by `alpha / rank`."""
    rslora: bool = False
    """Multiply by `alpha / sqrt(rank)` instead (rank-stabilised LoRA, arXiv 2312.03732); for large ranks."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of the adapter's inputs dropped in training passes. A policy takes 0 only: its log-probabilities have to
    be those of the sampler."""
    target_modules: tuple[str, ...] = ()
    """Linear layers that get an adapter, by the last part of their name (`q_proj`); empty takes all but the head."""
    load_in_4bit: bool = False
    """Hold the frozen weights in 4-bit NormalFloat (QLoRA, arXiv 2305.14314). Needs bitsandbytes on this device."""
    seed: int = Field(default=0, ge=0)
    """Seeds A."""

    def check(self) -> None:
        """Raises MissingExtraError, before any model is loaded, where a library that this needs is missing."""
        if find_spec("peft") is None:
            raise MissingExtraError("lora: needs peft (the extra `lora`): pip install peft")
        if self.load_in_4bit and find_spec("bitsandbytes") is None:
            raise MissingExtraError(
                "lora.load_in_4bit: needs bitsandbytes: pip install bitsandbytes, or set load_in_4bit: false"
            )
