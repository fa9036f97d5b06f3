"""NumPy's numbers and arrays as JSON has them."""


def plain(value):
    """Returns what `json` is to write in place of `value`."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"`{type(value).__name__}` is not part of a JSON document")
