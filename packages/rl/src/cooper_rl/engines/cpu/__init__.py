"""Faster decoding and linear layers on CPUs. Other packages import only the names below."""

from cooper_rl.engines.cpu.decoder import CompactDecoder, GroupedCache, compact_decoder, drop_decoder
from cooper_rl.engines.cpu.linear import BFloat16Linear, bfloat16_pays, has_bfloat16, use_fast_linear

__all__ = [
    "BFloat16Linear",
    "CompactDecoder",
    "GroupedCache",
    "bfloat16_pays",
    "compact_decoder",
    "drop_decoder",
    "has_bfloat16",
    "use_fast_linear",
]
