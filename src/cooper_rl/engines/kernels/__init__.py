"""Fast paths of the local engine: packing, attention, linear layers, decoding."""
