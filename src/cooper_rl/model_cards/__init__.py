"""The README of a model folder: what it reads, what it is, how it was trained."""
