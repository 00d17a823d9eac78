"""What outlasts a crash: checkpoints, journals, random states, durable writes."""
