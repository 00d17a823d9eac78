"""Prompts, and which problems come next."""
