"""What can compute here."""

from __future__ import annotations

from . import _nextstat


def has_cuda() -> bool:
    """Whether this build and this machine have an NVIDIA GPU; it is tried when it is first used.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.has_cuda() == ("cuda" in nextstat.devices())
    True
    """
    return "cuda" in devices()


def has_metal() -> bool:
    """Whether this build and this machine have an Apple GPU; it is tried when it is first used.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.has_metal() == ("metal" in nextstat.devices())
    True
    """
    return "metal" in devices()


def devices() -> list[str]:
    """The devices that functions take as `device`; `nextstat.command(["devices"])` says more about each, and of the others why not.

    Examples
    --------
    >>> import nextstat
    >>> "cpu" in nextstat.devices()
    True
    """
    return ["cpu", *_nextstat.devices()]
