"""Clients of other servers."""
