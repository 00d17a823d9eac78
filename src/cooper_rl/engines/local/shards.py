"""Parameters that may be one process's rows of a tensor (FSDP2's `DTensor`, cut along its first dimension)."""

from typing import Any

from torch import Tensor


def is_sharded(tensor: Tensor) -> bool:
    """Whether other processes hold the rest of this tensor."""
    return hasattr(tensor, "to_local")


def whole(tensor: Tensor) -> Tensor:
    """All of a tensor; of a sharded one, all processes must ask."""
    sharded: Any = tensor
    return sharded.full_tensor() if is_sharded(tensor) else tensor


def own(tensor: Tensor) -> Tensor:
    """The rows that this process holds, as a plain tensor in the same memory."""
    sharded: Any = tensor
    return sharded.to_local() if is_sharded(tensor) else tensor


def own_rows(tensor: Tensor) -> slice:
    """Which rows those are: FSDP2 cuts like `torch.chunk`, and the last processes may have none."""
    if not is_sharded(tensor):
        return slice(0, tensor.shape[0])
    sharded: Any = tensor
    mesh, rows = sharded.device_mesh, tensor.shape[0]
    start = min(rows, mesh.get_local_rank() * -(-rows // mesh.size()))
    return slice(start, start + own(tensor).shape[0])


def like(tensor: Tensor, rows: Tensor) -> Tensor:
    """`rows`, those of this process, as a tensor that is sharded as `tensor` is, or not."""
    if not is_sharded(tensor):
        return rows
    from torch.distributed.tensor import DTensor  # noqa: PLC0415 - one process has no use for it

    sharded: Any = tensor
    return DTensor.from_local(rows, sharded.device_mesh, sharded.placements, shape=tensor.shape, stride=tensor.stride())
