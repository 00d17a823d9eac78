"""What is said of an answer beside its reference: by value, by option, by text."""
