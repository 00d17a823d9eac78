"""Labels by rule and judge."""
