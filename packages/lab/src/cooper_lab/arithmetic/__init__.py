"""The embedded arithmetic world: its problems, gold labels, models and the demo's arms."""
