"""What a run tells: its record, watch rules, the report."""
