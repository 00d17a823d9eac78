"""Numbers, and numbers with units."""
