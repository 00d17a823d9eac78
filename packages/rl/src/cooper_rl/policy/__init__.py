"""Stage 1: advantages and the update of the policy."""
