"""Whether another distribution has put its files among those of this package.

The distribution `nextstat-rs` and another engine's, `nextstat`, share the import name; the one
installed last overwrites files of the other.
"""

from __future__ import annotations

import os
import warnings

_OTHER = "nextstat-"
_warned = False


def other_distribution(folder: str) -> str | None:
    """Returns the name and version of the other distribution installed in `folder`, or nothing.

    The names of the folder's entries are enough: pip leaves one for each distribution. Ours begins
    with `nextstat_rs`.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                stem, dot, kind = entry.name.rpartition(".")
                if dot and kind in ("dist-info", "egg-info") and stem.startswith(_OTHER):
                    return f"nextstat {stem[len(_OTHER) :].partition('-')[0]}"
    except OSError:
        pass
    return None


def warn_if_mixed() -> None:
    """Warns, once, where the other distribution is installed beside this package."""
    global _warned
    if _warned:
        return
    _warned = True
    other = other_distribution(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if other is not None:
        warnings.warn(
            f"`{other}` is installed in the same environment as `nextstat-rs`; both are imported as `nextstat`, and one has overwritten files of the "
            "other\nhint: `pip uninstall nextstat nextstat-rs`, then install the one that you want; use an environment for each to have both",
            RuntimeWarning,
            stacklevel=3,
        )
