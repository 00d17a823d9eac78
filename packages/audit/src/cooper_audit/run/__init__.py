"""A run's record: reading it, its verdict, and what watches it."""
