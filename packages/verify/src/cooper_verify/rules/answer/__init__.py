"""Where in a completion the answer is, and what stands around it."""
