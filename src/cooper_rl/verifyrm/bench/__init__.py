"""Verifiers compared on labelled completions and under attack."""
