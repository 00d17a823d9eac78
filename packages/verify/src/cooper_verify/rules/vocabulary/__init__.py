"""Words: of the languages that are read, of numbers, of units, of things that are counted."""
