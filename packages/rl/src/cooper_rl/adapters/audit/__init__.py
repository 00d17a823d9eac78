"""What training adds to `cooper attack` and `cooper audit`, by entry points of `cooper.attack` and `cooper.audit`."""
