"""Waiting for what a browser does in its own time."""

import time


def eventually(condition):
    """Waits until `condition` is true, ten seconds at most: a browser draws when it has time."""
    for _ in range(200):
        if condition():
            return
        time.sleep(0.05)
    assert condition()
