"""A text in one notation, and what of a completion is read for an answer."""
