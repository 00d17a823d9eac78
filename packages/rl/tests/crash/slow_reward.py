"""A reward that keeps a step busy, in a place where it cannot be broken off."""

import time


def slow(problem, completion):
    time.sleep(2)
    return 0.0


def stuck(problem, completion):
    time.sleep(60)
    return 0.0
