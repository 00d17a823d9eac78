"""Answers as values: a file for each type, with its reader, its forms and its comparison, and one table of pairs."""
