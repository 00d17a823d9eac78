"""Environments: tools that the policy may call between its turns, and how a run of several turns is drawn."""
