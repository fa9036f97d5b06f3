"""HistFactory XML: not written yet."""

__all__ = ["writexml"]


def writexml(*args, **kwargs):
    """Raises `NotImplementedError`."""
    raise NotImplementedError("HistFactory XML cannot be written yet; `pyhf json2xml` writes it from the same JSON")
