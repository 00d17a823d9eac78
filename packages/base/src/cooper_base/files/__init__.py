"""Everything that survives a crash: checkpoints, journals, random states, durable writes."""
