"""The run around the step: settings, inputs, checkpoints, callbacks."""
