"""Files of toys: a NumPy array with a record per toy, and a document beside it that says what they are; as the command writes and reads them."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ._nextstat import ToyError, __version__
from ._results import OUTCOMES, ToysResult

if TYPE_CHECKING:
    from collections.abc import Mapping

_FORMAT = "nextstat toys"
_WORDS = {"<u8": "u64", "|u1": "u8", "<f8": "f64"}


def save(result: ToysResult, path: str) -> None:
    """Writes `path` (`.npy`) and `path.json`."""
    if not path.endswith(".npy"):
        raise ToyError(f"toys are kept in a NumPy file, and `{path}` does not end in `.npy`")
    fields: Mapping[str, Any] = result._fields
    has_uncertainty = fields["poi_uncertainty"] is not None
    columns: list[tuple[Any, ...]] = [("toy", "<u8"), ("status", "|u1"), ("nll", "<f8")]
    columns += [("poi_uncertainty", "<f8")] * has_uncertainty
    columns.append(("parameters", "<f8", (len(result.par_names),)))
    records = np.zeros(len(result.toys), dtype=columns)
    records["toy"], records["nll"], records["parameters"] = result.toys, result.nll, result.params
    records["status"] = [OUTCOMES.index(outcome) for outcome in result.outcomes]
    if has_uncertainty:
        records["poi_uncertainty"] = fields["poi_uncertainty"]
    with open(path, "wb") as file:
        file.write(_header(columns, len(records)))
        file.write(records.tobytes())
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(_identity(result, columns), file, indent=2, sort_keys=True)
        file.write("\n")


def _header(columns: list[tuple[Any, ...]], n_records: int) -> bytes:
    """The header of a NumPy file, with room for any number of records as the command leaves it."""

    def text(n: int) -> str:
        return f"{{'descr': {columns}, 'fortran_order': False, 'shape': ({n},), }}"

    preamble = 10
    size = -(-(preamble + len(text(2**64 - 1)) + 1) // 64) * 64 - preamble
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + f"{text(n_records):<{size - 1}}\n".encode()


def _identity(result: ToysResult, columns: list[tuple[Any, ...]]) -> dict[str, Any]:
    n_toys = len(result.toys)
    settings = {key: result._fields[key] for key in ("aux", "measurement", "poi", "seed")}
    settings["par_names"] = settings["parameters"] = list(result.par_names)
    settings["thrown_at"] = {"mu": None, "rule": "given", "parameters": result.thrown_at.tolist()}
    return {
        "format": _FORMAT,
        "format_version": 1,
        "kind": "fits",
        "columns": [[name, _WORDS[word], *(shape[0] if shape else ())] for name, word, *shape in columns],
        "n_records": n_toys,
        "devices": list(result.devices),
        "n_toys": n_toys,
        "settings": {**settings, "ensemble": "fits", "nextstat_version": __version__},
        "shard": {"first": 0, "index": 1, "n_toys": n_toys, "of": 1},
    }


def load(path: str) -> ToysResult:
    """Reads `path` and `path.json`."""
    identity, records = _identity_of(path), _records(path)
    if not isinstance(identity, dict) or identity.get("format") != _FORMAT or identity.get("kind") != "fits":
        raise ToyError(f"`{path}.json` is not of fits of toys")
    if len(records) != identity.get("n_records") or not {"toy", "status", "nll", "parameters"} <= set(records.dtype.names or ()):
        raise ToyError(f"`{path}` is not the file that `{path}.json` describes")
    settings = identity["settings"]
    converged = records["status"] == 0
    has_uncertainty = "poi_uncertainty" in (records.dtype.names or ())
    return ToysResult(
        {
            "par_names": settings["parameters"],
            "poi": settings["poi"],
            "toys": records["toy"].copy(),
            "params": records["parameters"].reshape(len(records), -1).copy(),
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
            "devices": identity.get("devices", []),
        }
    )


def _identity_of(path: str) -> Any:
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if not os.path.exists(path + ".json"):
        raise ToyError(f"`{path}` is no file of toys: `{path}.json`, which belongs beside it, is not there")
    with open(path + ".json", encoding="utf-8") as file:
        try:
            return json.load(file)
        except ValueError as error:
            raise ToyError(f"`{path}.json` is not of toys: {error}") from None


def _records(path: str) -> np.ndarray:
    try:
        records = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ToyError(f"`{path}` is no file of toys: {error}") from None
    if not isinstance(records, np.ndarray) or records.ndim != 1:
        raise ToyError(f"`{path}` is no file of toys")
    return records
