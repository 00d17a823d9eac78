"""Learners: the protocol and its engines."""
