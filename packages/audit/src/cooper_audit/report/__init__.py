"""Shows what happens in a run: its record, watch rules and report."""
