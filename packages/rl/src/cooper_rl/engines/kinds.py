"""The engines of this package. Importing them registers their settings, so a new engine needs a line here."""

from cooper_rl.engines.local import LocalEngine
from cooper_rl.engines.scale.ray.config import ClusterEngine
from cooper_rl.engines.scale.vllm import VllmEngine

__all__ = ["ClusterEngine", "LocalEngine", "VllmEngine"]
