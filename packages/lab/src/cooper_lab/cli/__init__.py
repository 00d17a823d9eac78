"""The lab's commands of `cooper`."""
