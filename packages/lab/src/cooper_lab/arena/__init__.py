"""Designs against planted holes, cell by cell: `cooper arena`."""
