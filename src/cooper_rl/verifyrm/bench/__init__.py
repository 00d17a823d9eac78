"""Compares rules, reward models and judges on labelled completions and under attack."""
