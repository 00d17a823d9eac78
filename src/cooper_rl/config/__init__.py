"""The base of every configuration record, and the way from YAML to a checked one."""
