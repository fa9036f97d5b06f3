"""Files of toys: a NumPy array with a record for each toy, and a document beside it.

The command writes and reads the same files. Toys are the fields of a `ToysResult`.
"""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _checksums
from ._errors import shown
from ._files import write_whole
from ._nextstat import ToyError, __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

#: How a fit ends, by its number in files of toys.
OUTCOMES = ("converged", "iteration_limit", "stalled", "saddle", "not_finite")

#: What the document beside a file begins with.
FORMAT = "nextstat toys"
_WORDS = {"<u8": "u64", "|u1": "u8", "<f8": "f64"}


def save(fields: Mapping[str, Any], path: str) -> None:
    """Writes `path` (`.npy`) and `path.json`."""
    if not path.endswith(".npy"):
        raise ToyError(f"toys are kept in a NumPy file, and `{path}` does not end in `.npy`")
    has_uncertainty = fields["poi_uncertainty"] is not None
    columns: list[tuple[Any, ...]] = [("toy", "<u8"), ("status", "|u1"), ("nll", "<f8")]
    columns += [("poi_uncertainty", "<f8")] * has_uncertainty
    columns.append(("parameters", "<f8", (len(fields["par_names"]),)))
    records = np.zeros(len(fields["toys"]), dtype=columns)
    records["toy"], records["nll"] = fields["toys"], fields["nll"]
    records["parameters"] = fields["bestfit"]
    records["status"] = [OUTCOMES.index(outcome) for outcome in fields["outcomes"]]
    if has_uncertainty:
        records["poi_uncertainty"] = fields["poi_uncertainty"]
    write(path, columns, records, _identity(fields, columns, records))


def write(
    path: str, columns: list[tuple[Any, ...]], records: np.ndarray, identity: Mapping[str, Any]
) -> None:
    """Writes records, and the document beside them."""
    text = json.dumps(identity, indent=4, sort_keys=True) + "\n"
    # As the command does: what describes the records is there before they are.
    write_whole(
        {
            Path(path + ".json"): text.encode(),
            Path(path): _header(columns, len(records)) + records.tobytes(),
        }
    )


def columns_in_words(columns: list[tuple[Any, ...]]) -> list[list[Any]]:
    """Returns names, words and lengths of columns, as the document beside a file has them."""
    return [[name, _WORDS[word], *(shape[0] if shape else ())] for name, word, *shape in columns]


def _header(columns: list[tuple[Any, ...]], n_records: int) -> bytes:
    """Returns the header of a NumPy file, with room for any number of records as the command leaves
    it."""

    def text(n: int) -> str:
        return f"{{'descr': {columns}, 'fortran_order': False, 'shape': ({n},), }}"

    preamble = 10
    size = -(-(preamble + len(text(2**64 - 1)) + 1) // 64) * 64 - preamble
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + f"{text(n_records):<{size - 1}}\n".encode()


def _identity(
    fields: Mapping[str, Any], columns: list[tuple[Any, ...]], records: np.ndarray
) -> dict[str, Any]:
    """Returns the document beside the toys."""
    n_toys = len(fields["toys"])
    settings = {key: fields[key] for key in ("aux", "measurement", "seed")}
    settings["poi"] = None if fields["poi"] is None else fields["poi"]["name"]
    settings["par_names"] = settings["parameters"] = list(fields["par_names"])
    at = fields["thrown_at"].tolist()
    settings["thrown_at"] = {"mu": None, "rule": "given", "parameters": at}
    return {
        "format": FORMAT,
        "format_version": 1,
        "kind": "fits",
        "checksums": _checksums.of(records),
        "columns": columns_in_words(columns),
        "n_records": n_toys,
        "devices": list(fields["devices"]),
        "n_toys": n_toys,
        "settings": {**settings, "ensemble": "fits", "nextstat_version": __version__},
        "shard": {"first": 0, "index": 1, "n_toys": n_toys, "of": 1},
    }


def load(path: str) -> dict[str, Any]:
    """Reads `path` and `path.json`; returns the fields of a result."""
    identity = _identity_of(path)
    records = _records(path, _columns(identity))
    if len(records) != identity["n_records"]:
        n_told = identity["n_records"]
        raise ToyError(f"`{path}` has {len(records)} toys, and `{path}.json` says {n_told}")
    if _has_checksums(identity):
        _checksums.require_sound(path, records, identity["checksums"])
    unknown = records["status"] >= len(OUTCOMES)
    if unknown.any():
        status = records["status"][unknown][0]
        raise ToyError(f"in `{path}`: record {unknown.argmax()} has the unknown status {status}")
    settings = identity["settings"]
    converged = records["status"] == 0
    has_uncertainty = "poi_uncertainty" in (records.dtype.names or ())
    return {
        "par_names": settings["parameters"],
        "poi": settings.get("poi"),
        "toys": records["toy"].copy(),
        "bestfit": records["parameters"].reshape(len(records), -1).copy(),
        "nll": records["nll"].copy(),
        "n_failed": int((~converged).sum()),
        "converged": converged,
        "poi_uncertainty": records["poi_uncertainty"].copy() if has_uncertainty else None,
        "outcomes": [OUTCOMES[status] for status in records["status"]],
        "measurement": settings["measurement"],
        "seed": settings["seed"],
        "thrown_at": np.asarray(settings["thrown_at"]["parameters"], dtype=float),
        "aux": settings["aux"],
        # Files of earlier versions do not say.
        "devices": identity.get("devices") or [],
    }


def _identity_of(path: str) -> dict[str, Any]:
    """Returns the document beside the toys, in which everything that is read later has been
    checked."""
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not os.path.exists(path + ".json"):
        raise ToyError(f"`{path}` is not a file of toys: `{path}.json`, which belongs beside it, is not there")
    with open(path + ".json", encoding="utf-8") as file:
        try:
            identity = json.load(file)
        except (ValueError, RecursionError) as error:
            raise ToyError(f"`{path}.json` is not of toys: {error}") from None
    if not isinstance(identity, dict) or identity.get("format") != FORMAT or identity.get("kind") != "fits":
        raise ToyError(f"`{path}.json` is not of fits of toys")
    for place, is_right, expected in _FIELDS + (_CHECKSUM_FIELDS if _has_checksums(identity) else ()):
        _check(path, identity, place, is_right, expected)
    return identity


def _has_checksums(identity: dict[str, Any]) -> bool:
    """Returns whether there are checksums of this kind: files of earlier versions have none, and
    those of later versions may have others."""
    checksums = identity.get("checksums")
    return isinstance(checksums, dict) and checksums.get("algorithm") == _checksums.ALGORITHM


def _check(path: str, identity: dict[str, Any], place: str, is_right: Callable[[Any], bool], expected: str) -> None:
    """Refuses a document whose value at `place` is missing or not valid."""
    value: Any = identity
    for key in place.split("/"):
        value = value.get(key) if isinstance(value, dict) else None
    if not is_right(value):
        raise ToyError(f"in `{path}.json`: `/{place}` must be {expected}, not `{shown(value)}`")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _is_number(value: object) -> bool:
    # Whole numbers may have more digits than a float has room for.
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**64)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_checksum(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{8}", value) is not None


def _list_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_right, value))


# What is read of the document: the place, the condition, and its wording.
_FIELDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("n_records", _is_count, "a count"),
    ("columns", _list_of(lambda column: isinstance(column, list) and len(column) in (2, 3)), "a list of columns"),
    ("settings/parameters", _list_of(_is_text), "a list of names"),
    ("settings/poi", lambda value: value is None or isinstance(value, str), "a name or null"),
    ("settings/measurement", _is_text, "a name"),
    ("settings/seed", _is_count, "a whole number"),
    ("settings/aux", _is_text, "text"),
    ("settings/thrown_at/parameters", _list_of(_is_number), "a list of numbers"),
    ("devices", lambda value: value is None or _list_of(_is_text)(value), "a list of names"),
)

_CHECKSUM_FIELDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("checksums/records_each", lambda value: _is_count(value) and value > 0, "a positive count"),
    ("checksums/n_records", _is_count, "a count"),
    ("checksums/values", _list_of(_is_checksum), "a list of checksums"),
)


def _columns(identity: dict[str, Any]) -> np.dtype:
    """Returns the type of a record: always the same columns, of which the uncertainty may be
    missing."""
    n_parameters = len(identity["settings"]["parameters"])
    columns: list[tuple[Any, ...]] = [("toy", "<u8"), ("status", "|u1"), ("nll", "<f8")]
    columns += [("poi_uncertainty", "<f8")] * any(column[0] == "poi_uncertainty" for column in identity["columns"])
    return np.dtype([*columns, ("parameters", "<f8", (n_parameters,))])


def _records(path: str, columns: np.dtype) -> np.ndarray:
    """Returns the records of a NumPy file, if they have these columns."""
    with open(path, "rb") as file:
        try:
            shape, dtype = _header_of(file)
        except Exception as error:  # Headers are Python text, which fails to parse in many ways.
            raise ToyError(f"`{path}` is not a file of toys: {error}") from None
        if len(shape) != 1 or dtype != columns:
            raise ToyError(f"`{path}` is not the file that `{path}.json` describes: its columns are `{shown(dtype)}`")
        n_there = (os.fstat(file.fileno()).st_size - file.tell()) // columns.itemsize
        if n_there < shape[0]:
            raise ToyError(f"`{path}` ends after {n_there} of {shape[0]} toys")
        return np.fromfile(file, dtype=columns, count=shape[0])


def _header_of(file: BinaryIO) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"version {version[0]}.{version[1]} of the format is not supported")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, dtype
