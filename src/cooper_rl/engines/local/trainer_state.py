"""What training knows beside the weights, on disk: AdamW's moments (safetensors, by parameter name) and counters.

Moments stand in one file, or in one for each process that holds rows of them (`optimizer-00001-of-00002.safetensors`).
Any number of processes reads what any number has written.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from cooper_rl.engines.local.shards import like, own, own_rows
from cooper_rl.errors import InputError

_FOLDER = "trainer_state"


@contextmanager
def disk_errors(directory: Path) -> Iterator[None]:
    """Raise OSError if safetensors or tokenizers, which have their own exceptions, could not write a file."""
    try:
        yield
    except Exception as error:
        # A full disk is a SafetensorError in one library and a bare Exception in the other.
        if isinstance(error, SafetensorError) or type(error) is Exception:
            raise OSError(f"{directory}: {error}") from error
        raise


def save_trainer_state(
    directory: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer | None,
    counters: dict[str, Any],
    rank: int = 0,
    ranks: int = 1,
) -> None:
    """Write `directory/trainer_state/`, process `rank` its rows of the moments and the first one the counters.

    An optimizer that has not stepped yet has nothing to write.
    """
    folder = directory / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    moments = {
        f"{name}:{key}": own(value).contiguous()
        for name, parameter in model.named_parameters()
        for key, value in (optimizer.state.get(parameter, {}) if optimizer else {}).items()
    }
    part = f"-{rank + 1:05d}-of-{ranks:05d}" if ranks > 1 else ""
    save_file(moments, folder / f"optimizer{part}.safetensors")
    if rank == 0:
        (folder / "state.json").write_text(json.dumps(counters, indent=1), encoding="utf-8")


def load_trainer_state(directory: Path, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> dict[str, Any]:
    """Restore the moments of `optimizer` and return the counters.

    Raises InputError for a folder that `save_trainer_state` did not write, or that it wrote for another model.
    """
    folder = directory / _FOLDER
    parts = sorted(folder.glob("optimizer*.safetensors"))
    if not (folder / "state.json").is_file() or not parts:
        raise InputError(f"{directory}: no {_FOLDER} in this folder; it is not a checkpoint of a learner")
    if optimizer is not None:
        _restore_moments(parts, model, optimizer)
    return json.loads((folder / "state.json").read_text(encoding="utf-8"))


def _restore_moments(paths: list[Path], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    with ExitStack() as stack:
        parts = [stack.enter_context(safe_open(path, "pt")) for path in paths]
        for full_name in sorted({name for part in parts for name in part.keys()}):  # noqa: SIM118 - not a mapping
            name, _, key = full_name.rpartition(":")
            slices = [part.get_slice(full_name) for part in parts if full_name in part.keys()]  # noqa: SIM118
            shape = _shape(slices)
            parameter = parameters.get(name)
            if parameter is None or (shape and shape != tuple(parameter.shape)):
                raise InputError(f"{paths[0]}: optimizer state for {name!r} {shape} does not fit this model")
            if shape:
                rows = _rows(slices, own_rows(parameter)).to(parameter.device)
                optimizer.state[parameter][key] = like(parameter, rows)
            else:  # AdamW's count of steps, the same in every part
                optimizer.state[parameter][key] = slices[0][...].to(parameter.device)


def _shape(slices: list[Any]) -> tuple[int, ...]:
    """Of the whole tensor; () for a number."""
    shapes = [tuple(piece.get_shape()) for piece in slices]
    return (sum(shape[0] for shape in shapes), *shapes[0][1:]) if shapes[0] else ()


def _rows(slices: list[Any], wanted: slice) -> Tensor:
    """Some rows of a tensor whose rows stand one after the other in these slices; nothing else is read."""
    pieces: list[Tensor] = []
    start = 0
    for piece in slices:
        size = piece.get_shape()[0]
        first, last = max(0, wanted.start - start), min(size, wanted.stop - start)
        if first < last:
            pieces.append(piece[first:last])
        start += size
    return torch.cat(pieces) if pieces else slices[0][:0]
