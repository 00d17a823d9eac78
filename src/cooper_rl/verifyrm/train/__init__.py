"""A reward model from labelled completions."""
