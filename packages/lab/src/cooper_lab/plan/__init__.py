"""Computes the memory and time of a step before anything starts."""
