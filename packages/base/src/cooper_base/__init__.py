"""What the packages of Cooper share."""

__version__ = "0.1.0"
