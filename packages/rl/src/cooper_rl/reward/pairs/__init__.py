"""Pairs of a right and a wrong completion: their sources and filters, and the assistant that writes wrong ones."""
