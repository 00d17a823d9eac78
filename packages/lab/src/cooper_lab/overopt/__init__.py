"""`cooper overopt`: how gold and reward diverge with the distance from the start policy."""
