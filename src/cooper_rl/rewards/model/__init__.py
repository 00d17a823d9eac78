"""The input format of reward models."""
