"""What a run writes: its record, and the trackers that it is sent to."""
