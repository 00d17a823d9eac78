"""The demo: rewards compared in a small embedded world."""
