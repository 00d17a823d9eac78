"""The colours of runs."""

COLOURS = (
    *("#2f7ed8", "#d9480f", "#2b8a3e", "#9c36b5", "#b08900"),
    *("#0b8599", "#c2255c", "#7a828e", "#5f3dc4", "#66a80f"),
)
"""Colours of runs in figures and on pages, each readable on white and on a dark page."""
