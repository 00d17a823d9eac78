"""The demo: the embedded arithmetic world, its warm-up artefacts, and the four runs that show reward hacking."""
