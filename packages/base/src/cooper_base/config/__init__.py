"""Configuration: the base of every record, kinds of parts, and reading and checking YAML."""
