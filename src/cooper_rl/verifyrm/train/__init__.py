"""Trains a reward model on labelled completions."""
