"""A real language model on two CPU cores, hacked and cured: data, warm-up, gold and the arms (README.md)."""
