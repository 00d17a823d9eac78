"""Stage 1: advantages, process credit and the update of the policy."""
