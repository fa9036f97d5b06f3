"""Files of fits of data sets: a NumPy array with a record for each, and a document beside it.

The command writes and reads the same files. Fits are the fields of a `FitsResult`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _checksums
from ._nextstat import ToyError, __version__
from ._toy_files import FORMAT, OUTCOMES, columns_in_words, write

if TYPE_CHECKING:
    from collections.abc import Mapping

# What the warnings of the fit to the nominal data begin with in a result.
_NOMINAL = "nominal data: "


def save(fields: Mapping[str, Any], path: str) -> None:
    """Writes `path` (`.npy`) and `path.json`."""
    if not path.endswith(".npy"):
        raise ToyError(f"fits are kept in a NumPy file, and `{path}` does not end in `.npy`")
    if not fields["complete"]:
        raise ToyError(f"{len(fields['outcomes'])} of {fields['n_data_sets_wanted']} data sets were fitted, and files have all")
    n_parameters, has_uncertainties = len(fields["par_names"]), fields["uncertainties"] is not None
    columns: list[tuple[Any, ...]] = [("data_set", "<u8"), ("status", "|u1"), ("twice_nll", "<f8"), ("bestfit", "<f8", (n_parameters,))]
    columns += [("uncertainties", "<f8", (n_parameters,))] * has_uncertainties
    records = np.zeros(len(fields["outcomes"]), dtype=columns)
    records["data_set"] = np.arange(len(records))
    records["status"] = [OUTCOMES.index(outcome) for outcome in fields["outcomes"]]
    for name in ("twice_nll", "bestfit", *["uncertainties"] * has_uncertainties):
        records[name] = fields[name]
    write(path, columns, records, _identity(fields, columns, records))


def _identity(fields: Mapping[str, Any], columns: list[tuple[Any, ...]], records: np.ndarray) -> dict[str, Any]:
    """Returns the document beside the fits."""
    names, n_data_sets = list(fields["par_names"]), len(records)
    settings = {
        "data_sha256": fields["data_sha256"],
        "measurement": fields["measurement"],
        "nextstat_version": __version__,
        "nominal": _nominal(fields),
        "par_names": names,
        "parameters": names,
        "poi": None if fields["poi"] is None else fields["poi"]["name"],
    }
    return {
        "format": FORMAT,
        "format_version": 1,
        "kind": "data_sets",
        "checksums": _checksums.of(records),
        "columns": columns_in_words(columns),
        "n_records": n_data_sets,
        "devices": ["cpu"],
        "n_toys": n_data_sets,
        "settings": settings,
        "shard": {"first": 0, "index": 1, "n_toys": n_data_sets, "of": 1},
    }


def _nominal(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fit to the nominal data."""
    of_all = fields["parameters"]
    return {
        "bestfit": [parameter["bestfit"] for parameter in of_all],
        "converged": fields["nominal"]["converged"],
        "twice_nll": fields["nominal"]["twice_nll"],
        "uncertainties": [parameter["uncertainty"] for parameter in of_all],
        "warnings": [warning.removeprefix(_NOMINAL) for warning in fields["warnings"] if warning.startswith(_NOMINAL)],
    }
