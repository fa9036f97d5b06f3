"""Arrays and tables of parameters that take names as well as positions, as those of iminuit do."""

import numpy as np


class Named(np.ndarray):
    """One entry for each parameter (P, or P × …)."""

    names = ()

    @classmethod
    def of(cls, values, names):
        """Returns `values` with an entry for each of `names`."""
        named = np.asarray(values).view(cls)
        named.names = tuple(names)
        return named

    def __array_finalize__(self, source):
        # A part of it is an array as any other.
        same = source is not None and self.shape == source.shape
        self.names = getattr(source, "names", ()) if same else ()

    def _position(self, key):
        if not isinstance(key, str):
            return key
        if key not in self.names:
            raise KeyError(key)
        return self.names.index(key)

    def __getitem__(self, key):
        return super().__getitem__(self._position(key))

    def __setitem__(self, key, value):
        self.view(np.ndarray)[self._position(key)] = value

    def to_dict(self):
        """Returns the entries by name."""
        return dict(zip(self.names, self.tolist()))


class Limits(Named):
    """Ranges (P × 2). One that is set to None is open, and so is an end set to None."""

    def __getitem__(self, key):
        found = super().__getitem__(key)
        return tuple(found.tolist()) if isinstance(key, (str, int, np.integer)) else found

    def __setitem__(self, key, value):
        ends = (None, None) if value is None else value
        if np.ndim(ends) == 1 and any(end is None for end in ends):
            ends = [open_end if end is None else end for end, open_end in zip(ends, (-np.inf, np.inf))]
        super().__setitem__(key, ends)


class ByName(dict):
    """Entries by name, also found by their position."""

    def __missing__(self, key):
        if isinstance(key, (int, np.integer)):
            return list(self.values())[key]
        raise KeyError(key)
