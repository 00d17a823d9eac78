"""Policy maths: advantages, losses, KL estimators and aggregation, as pure functions."""
