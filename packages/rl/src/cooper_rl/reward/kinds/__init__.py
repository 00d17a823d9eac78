"""The kinds of reward: one file each, with its settings and its maths."""
