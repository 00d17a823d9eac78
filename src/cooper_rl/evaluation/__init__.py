"""Measures a policy and a reward model: accuracy, gold, attacks."""
