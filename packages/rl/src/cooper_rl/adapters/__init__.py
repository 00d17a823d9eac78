"""Trainers that are not ours: each gets a reward model that learns, through one thin file."""
