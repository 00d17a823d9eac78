"""Collects completions from many models."""
