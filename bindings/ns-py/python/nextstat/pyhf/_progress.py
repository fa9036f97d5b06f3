"""A bar for long loops, where tqdm is installed."""


def shown(items, description, unit, shows=True):
    """`items`, with a bar while they are gone through if `shows`."""
    if not shows:
        return items
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, total=len(items), leave=False, unit=unit, desc=description)
