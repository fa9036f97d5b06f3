"""What is not run, and why: the entries of `exclusions.toml`."""

import fnmatch
import tomllib
from pathlib import Path

_ENTRIES = tomllib.loads((Path(__file__).parent / "exclusions.toml").read_text())


def _reason(entries, name):
    return next((entry["reason"] for entry in entries if any(fnmatch.fnmatch(name, pattern) for pattern in entry["names"])), None)


def of_example(name):
    """Why the docstring example `name` is not run; None if it is."""
    return _reason(_ENTRIES["pyhf_examples"], name)


def of_cabinetry(name):
    """Why the test `name` of cabinetry is not run; None if it is."""
    return _reason(_ENTRIES["cabinetry_tests"], name)


def of_name(path):
    """Why pyhf's name `path` is not offered, or takes other arguments; None if it is."""
    return _reason(_ENTRIES["pyhf_names"], path)
