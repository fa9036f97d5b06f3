"""A bar for long loops, where tqdm is installed."""

import contextlib


def _bar(shows, **settings):
    """Returns a bar, or None."""
    if not shows:
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(leave=False, **settings)


def shown(items, description, unit, shows=True):
    """Returns `items`, with a bar while they are gone through if `shows`."""
    bar = _bar(shows, iterable=items, total=len(items), unit=unit, desc=description)
    return items if bar is None else bar


@contextlib.contextmanager
def counted(total, description, unit, shows):
    """Returns a function that is told how many of `total` are done, if `shows`, else None."""
    bar = _bar(shows, total=total, unit=unit, desc=description)
    if bar is None:
        yield None
        return
    with bar:
        yield lambda done: bar.update(done - bar.n)
