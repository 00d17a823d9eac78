"""Stage 2: sources and filters of pairs, the assistant, the pair buffer, and the update of the reward model."""
