"""How gold and reward part along the way from the start policy: `cooper overopt`."""
