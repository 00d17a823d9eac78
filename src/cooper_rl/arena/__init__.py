"""Embedded worlds in which rewards are compared; the demo is the smallest."""
