"""The README of a model folder: the model's input format, what it is and how it was trained."""
