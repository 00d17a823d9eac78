"""Imports the engines that a configuration selects by `kind`; the other rooms beside them import torch."""

from cooper_rl.engines import local, ray, vllm

__all__ = ["local", "ray", "vllm"]
