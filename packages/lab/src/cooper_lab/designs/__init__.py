"""Designs that are research: rewards, shapings, advantages and process credit, found by their `kind`."""
