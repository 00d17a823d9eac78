"""Labels completions with a rule and a judge."""
