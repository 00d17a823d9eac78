"""Transforms of finished rewards: one file a design, with its settings and its maths."""
