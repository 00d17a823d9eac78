"""The engine for several devices and machines: learners and samplers as processes of a Ray cluster."""

from cooper_rl.engines.scale.ray.config import ClusterEngine

__all__ = ["ClusterEngine"]
