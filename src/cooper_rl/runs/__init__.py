"""Runs: configuration, checkpoints, metrics, records and the report."""
