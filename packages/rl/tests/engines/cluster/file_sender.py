"""A transfer of weights through a file: what every sender does, with the plainest of ways."""

from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from cooper_rl.engines.local.adapter import whole


class FileSender:
    def __init__(self, folder: Path, model: PreTrainedModel, rank: int):
        self._folder, self._model, self._rank = folder, model, rank

    @torch.no_grad()
    def sync_weights(self, version: str) -> None:
        weights = {name: whole(parameter).contiguous() for name, parameter in self._model.named_parameters()}
        if self._rank == 0:
            save_file(weights, self._folder / f"{version}.safetensors")

    def disconnect(self) -> None:
        (self._folder / f"closed {self._rank}").touch()
