"""Transforms of finished rewards: one file each, with its settings and its maths."""
