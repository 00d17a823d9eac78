"""Processes that can be killed: texts from outside are read in them."""
