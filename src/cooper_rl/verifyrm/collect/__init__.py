"""Completions of many models."""
