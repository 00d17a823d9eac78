"""Sources of pairs: one kind of `cooptimization.pairs` a file."""
