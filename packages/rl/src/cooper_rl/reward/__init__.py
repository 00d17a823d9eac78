"""Rewards: everything that turns a completion into a number."""
