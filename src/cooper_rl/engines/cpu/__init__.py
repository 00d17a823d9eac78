"""What computes faster on a CPU than PyTorch's own kernels. The other rooms call what stands here, and nothing else."""

from cooper_rl.engines.cpu.decoder import CompactDecoder, GroupedCache, compact_decoder, drop_decoder
from cooper_rl.engines.cpu.linear import has_bfloat16, use_fast_linear

__all__ = ["CompactDecoder", "GroupedCache", "compact_decoder", "drop_decoder", "has_bfloat16", "use_fast_linear"]
