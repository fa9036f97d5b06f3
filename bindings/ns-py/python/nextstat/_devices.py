"""The devices that compute here."""

from __future__ import annotations

from . import _nextstat

__all__ = ["devices"]


def devices() -> list[str]:
    """Returns the devices of this machine that functions take as `device`.

    `nextstat.command(["devices"])` says more about each, and why the others are not available.

    Examples
    --------
    >>> import nextstat
    >>> "cpu" in nextstat.devices()
    True
    """
    return ["cpu", *_nextstat.devices()]
