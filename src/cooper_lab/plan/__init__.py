"""Memory and time of a step on paper, before anything starts."""
