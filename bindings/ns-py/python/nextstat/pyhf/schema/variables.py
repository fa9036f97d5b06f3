"""Where schemas are read from, and those that have been read: what programs save and restore.

``schemas`` is the folder. That of this package does not exist, because its schemas are tables.
"""

from ._tables import BASE, OWN, VERSION

#: Documents that have been read from a folder, by their ``$id``.
SCHEMA_CACHE: dict = {}
SCHEMA_BASE = BASE
SCHEMA_VERSION = VERSION


def __getattr__(name):
    if name == "schemas":
        # Only set once it is another folder: few ask for it, and `pathlib` takes long to import.
        from pathlib import Path

        return Path(OWN)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
