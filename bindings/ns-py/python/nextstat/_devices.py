"""What can compute here."""

from __future__ import annotations


def has_cuda() -> bool:
    """Whether this build and this machine can compute on an NVIDIA GPU.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.has_cuda() == ("cuda" in nextstat.devices())
    True
    """
    return False


def has_metal() -> bool:
    """Whether this build and this machine can compute on an Apple GPU.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.has_metal() == ("metal" in nextstat.devices())
    True
    """
    return False


def devices() -> list[str]:
    """The devices that functions take as `device`.

    Examples
    --------
    >>> import nextstat
    >>> "cpu" in nextstat.devices()
    True
    """
    return ["cpu"]
