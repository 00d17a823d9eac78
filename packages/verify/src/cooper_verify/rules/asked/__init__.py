"""What only the question can confirm of an answer, and which words may stand beside a value."""
