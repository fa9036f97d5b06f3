"""HistFactory XML: not read yet."""

__all__ = ["parse", "clear_filecache"]


def parse(*args, **kwargs):
    """Raises `NotImplementedError`."""
    raise NotImplementedError("HistFactory XML cannot be read yet; `pyhf xml2json` writes the JSON that can")


def clear_filecache():
    """There is no cache."""
