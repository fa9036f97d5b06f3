"""HEPData tables of the documents of results.

A table has independent variables (bins, parameters, masses) and dependent ones with their errors,
in the form of https://hepdata-submission.readthedocs.io. Numbers are those of the document; what
it does not have, or hides, is ``"-"``.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .._errors import with_hint
from .._nextstat import ParameterError, RawTable, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_URN = "urn:nextstat:schema:"

# What HEPData takes for a range of numbers.
_RANGE = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*-\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")

# Columns of expected values at -2 … +2 standard deviations.
_BAND = ("expected_minus_2", "expected_minus_1", "expected", "expected_plus_1", "expected_plus_2")

# How the names of columns of uncertainties end.
_UNCERTAINTY = "_uncertainty"

_HEADINGS = {
    "observed": "Observed",
    "asimov": "Asimov data",
    "given": "Given data",
    "Z_obs": "Significance of the data",
    "p0_obs": "p-value of the data",
    "mu_expected": "Signal strength of the expected significance",
    "Z_exp": "Expected significance",
    "twice_delta_nll": "-2 ln(profile likelihood ratio)",
    "ndf": "Degrees of freedom",
    "p_value": "p-value",
    "p_value_toys": "p-value by toys",
    "statistic": "Statistic",
}


class Record(NamedTuple):
    """A table of a submission."""

    title: str
    description: str
    independent: list[dict[str, Any]]
    dependent: list[dict[str, Any]]

    def data(self) -> dict[str, Any]:
        """Returns the data file of the table."""
        return {"independent_variables": self.independent, "dependent_variables": self.dependent}


def records(document: Mapping[str, Any], edges: Mapping[str, Sequence[float]]) -> list[Record]:
    """Returns the tables of a document; `edges` are those of bins, by region.

    Raises
    ------
    WorkspaceError
        If it is not a result, or one without tables, or damaged.
    ParameterError
        If its fit did not converge, or if there is not one bin between any two edges.
    """
    kind = _kind(document)
    if kind not in ("every-patch", "exclusion") and document.get("converged") is False:
        raise ParameterError("a fit of the result did not converge")
    if kind == "exclusion":
        return _contours(document)
    # Looks for damage, and refuses what has no tables.
    first = "parameters" if kind == "report" else None
    table = RawTable(json.dumps(document).encode(), first, [], None, None)
    conditions = _conditions(document)
    if kind == "yields":
        found = _yields(document["channels"], document, edges)
    elif kind == "report":
        _check(document, "yields")
        found = _fit(document["fit"]) + _yields(document["yields"]["channels"], document, edges)
    elif kind == "fit":
        found = _fit(document)
    else:
        found = [_of_table(table, kind)]
    return [record._replace(description=record.description + conditions) for record in found]


def _kind(document: Mapping[str, Any]) -> str:
    urn = document.get("$schema")
    if not isinstance(urn, str) or not urn.startswith(_URN):
        error = WorkspaceError("the document is not a result of nextstat: it has no `$schema`")
        raise with_hint(error, "commands write results with `-o FILE`, and results have `to_json`")
    return urn.removeprefix(_URN).split(":")[0]


def _check(document: Mapping[str, Any], table: str) -> None:
    RawTable(json.dumps(document).encode(), table, [], None, None)


def _variable(name: str, values: Iterable[Any], units: str | None = None) -> dict[str, Any]:
    header = {"name": name} if units is None else {"name": name, "units": units}
    return {"header": header, "values": list(values)}


def _value(number: Any) -> Any:
    return "-" if number is None else number


def _about(value: Any) -> dict[str, Any]:
    """Returns the value of an independent variable; HEPData refuses names such as `600-100`, which
    it takes for ranges, so they get an en dash.
    """
    if isinstance(value, str) and _RANGE.fullmatch(value):
        value = value[0] + value[1:].replace("-", "–")
    return {"value": _value(value)}


def _measured(value: Any, uncertainty: Any, label: str = "total") -> dict[str, Any]:
    found = {"value": _value(value)}
    # HEPData refuses an error of 0.
    if value is not None and uncertainty:
        found["errors"] = [{"symerror": uncertainty, "label": label}]
    return found


def _data_name(document: Mapping[str, Any]) -> str:
    source = ((document.get("provenance") or {}).get("data") or {}).get("source")
    return {"asimov": "Asimov data", "given": "Given data"}.get(source, "Data")


def _conditions(document: Mapping[str, Any]) -> str:
    """Returns what a reader must know beside the numbers: the data, and settings."""
    provenance = document.get("provenance") or {}
    said = []
    if document.get("measurement"):
        said.append(f"Measurement: {document['measurement']}.")
    data = provenance.get("data") or {}
    if data.get("source") not in (None, "observed"):
        said.append(f"Data: {json.dumps(data)}.")
    said += [f"{name}: {json.dumps(value)}." for name, value in (provenance.get("settings") or {}).items()]
    return "".join(f" {text}" for text in said)


def _fit(fit: Mapping[str, Any]) -> list[Record]:
    """Returns the parameters of a fit, and its matrices where it has some."""
    names = [_about(name) for name in fit["par_names"]]
    values = [_measured(*pair, "Hessian") for pair in zip(fit["bestfit"], fit["uncertainties"])]
    dependent = [_variable("Best fit", values)]
    dependent += _intervals(fit)
    found = [Record("Parameters", "Best-fit values of the parameters.", [_variable("Parameter", names)], dependent)]
    known = [i for i, uncertainty in enumerate(fit["uncertainties"]) if uncertainty is not None]
    for key, title in (("correlation", "Correlations"), ("covariance", "Covariance")):
        if fit.get(key) is None:
            continue
        pairs = [(i, j) for i in known for j in known]
        axes = [_variable(f"{which} parameter", [_about(fit["par_names"][pair[k]]) for pair in pairs]) for k, which in enumerate(("First", "Second"))]
        cells = [{"value": _value(fit[key][i][j])} for i, j in pairs]
        found.append(Record(title, f"{title} of the parameters after the fit.", axes, [_variable(title.rstrip("s"), cells)]))
    return found


def _intervals(fit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the best fit with asymmetric intervals, a variable for each confidence level."""
    found = []
    for cl in dict.fromkeys(interval["cl"] for interval in fit.get("minos") or ()):
        of_parameter = {interval["parameter"]: interval for interval in fit["minos"] if interval["cl"] == cl}
        values = []
        for name in fit["par_names"]:
            interval = of_parameter.get(name, {})
            value = {"value": _value(interval.get("bestfit"))}
            if interval.get("down") is not None and interval.get("up") is not None and (interval["down"] or interval["up"]):
                error = {"minus": interval["down"], "plus": interval["up"]}
                value["errors"] = [{"asymerror": error, "label": f"MINOS, {100 * cl:.4g} % CL"}]
            values.append(value)
        found.append(_variable(f"Best fit, {100 * cl:.4g} % interval", values))
    return found


def _yields(channels: Sequence[Mapping[str, Any]], document: Mapping[str, Any], edges: Mapping[str, Sequence[float]]) -> list[Record]:
    """Returns a table for each region: data, and each sample before and after the fit."""
    found = []
    for channel in channels:
        name = channel["channel"]
        dependent = [_variable(_data_name(document), [{"value": _value(count)} for count in channel["data"]], "events")]
        for stage, words in (("postfit", "post-fit"), ("prefit", "pre-fit")):
            for label, part in _parts(channel[stage]):
                values = [_measured(*pair) for pair in zip(part["yields"], part["uncertainties"])]
                dependent.append(_variable(f"{label}, {words}", values, "events"))
        description = f"Expected and observed events in the region {name}."
        found.append(Record(f"Yields in {name}", description, [_bins(name, len(channel["data"]), edges)], dependent))
    unknown = [name for name in edges if name not in {channel["channel"] for channel in channels}]
    if unknown:
        known = ", ".join(f"`{channel['channel']}`" for channel in channels)
        raise with_hint(ParameterError(f"`edges` names the region `{unknown[0]}`, which the result does not have"), f"the regions are {known}")
    return found


def _parts(prediction: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Returns name and yields of the total, then of each sample, a group instead of its
    samples.
    """
    groups = prediction.get("groups") or []
    parts = [("Total", prediction["total"])]
    shown = set()
    for sample in prediction["samples"]:
        group = next((group for group in groups if sample["sample"] in group["samples"]), None)
        if group is None:
            parts.append((sample["sample"], sample))
        elif group["group"] not in shown:
            shown.add(group["group"])
            parts.append((group["group"], group))
    return parts


def _bins(region: str, n_bins: int, edges: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    if region not in edges:
        return _variable("Bin", [{"value": bin} for bin in range(n_bins)])
    found = [float(edge) for edge in edges[region]]
    if len(found) != n_bins + 1 or any(not low < high for low, high in pairwise(found)):
        raise ParameterError(f"`edges` of `{region}` must be {n_bins + 1} ascending numbers")
    return _variable("Bin", [{"low": low, "high": high} for low, high in pairwise(found)])


_TITLES = {
    "limits": "Upper limits",
    "tests": "CLs",
    "significance": "Significance",
    "scan": "Profile likelihood",
    "contours": "Contours",
    "ranking": "Impacts",
    "goodness": "Goodness of fit",
}

# The last column that says what a row is about; the parameter for other tables.
_LAST_ABOUT = {"goodness": "region"}


def _of_table(table: RawTable, kind: str) -> Record:
    """Returns a table of the facade, whose first columns say what each row is about."""
    columns, what = table.columns(), table.name
    if what not in _TITLES:
        raise with_hint(WorkspaceError(f"a result of `{kind}` has no record"), "HEPData has tables of results, not of each toy or data set")
    values = dict(columns)
    names = [name for name, _ in columns if not name.endswith(_UNCERTAINTY)]
    about = _about_columns(names, what)
    # Names that are the same in every row are said once.
    common = ("parameter", "cl", "mu") if what in ("limits", "tests", "significance") else ()
    fixed = {name: values[name][0] for name in common if name in names and len(set(values[name])) == 1}
    varying = [name for name in about if name not in fixed] or [about[0]]
    independent = [_variable(name, map(_about, values[name])) for name in varying]
    dependent = [_dependent(name, values) for name in names if name not in about and (name not in _BAND or name == "expected")]
    said = [{"name": name, "value": _value(value)} for name, value in fixed.items()]
    if said:
        dependent = [{**variable, "qualifiers": said} for variable in dependent]
    title = _TITLES[what]
    return Record(title, f"{title}{' of every signal' if kind == 'every-patch' else ''}.", independent, dependent)


def _about_columns(names: Sequence[str], what: str) -> list[str]:
    """Returns the columns that say what a row is about."""
    if what == "scan":
        return list(names[: names.index("twice_delta_nll")])
    if what == "contours":
        # Level and first coordinate; what cuts a contour off is no number.
        return [*names[:-2], *names[-1:]]
    about = list(names[: names.index(_LAST_ABOUT.get(what, "parameter")) + 1])
    return about + [name for name in ("cl", "mu") if name in names and name not in about]


def _dependent(name: str, values: Mapping[str, list[Any]]) -> dict[str, Any]:
    errors = values.get(f"{name}{_UNCERTAINTY}")
    if name != "expected":
        found = [{"value": _value(value)} for value in values[name]]
    else:
        found = [_banded(row) for row in zip(*(values[column] for column in _BAND))]
    for value, error in zip(found, errors or ()):
        if error:
            value["errors"] = [{"symerror": error, "label": "Monte Carlo"}, *value.get("errors", [])]
    return _variable("Expected" if name == "expected" else _HEADINGS.get(name, name), found)


def _banded(row: tuple[Any, ...]) -> dict[str, Any]:
    """Returns an expected value with its bands of one and two standard deviations."""
    median = row[2]
    found: dict[str, Any] = {"value": _value(median)}
    errors = []
    for label, low, high in (("1 s.d.", row[1], row[3]), ("2 s.d.", row[0], row[4])):
        if None not in (low, median, high) and (low, high) != (median, median):
            errors.append({"asymerror": {"minus": low - median, "plus": high - median}, "label": label})
    if errors:
        found["errors"] = errors
    return found


def _contours(document: Mapping[str, Any]) -> list[Record]:
    """Returns the vertices of the exclusion contours, observed and expected."""
    curves = [("Observed", document["observed"])]
    words = (" minus 2 s.d.", " minus 1 s.d.", "", " plus 1 s.d.", " plus 2 s.d.")
    curves += [(f"Expected{which}", curve) for which, curve in zip(words, document["expected"])]
    level = f"at {100 * document['cl']:.4g} % confidence level"
    found = []
    for name, curve in curves:
        vertices = [(number, *vertex) for number, contour in enumerate(curve["contours"], 1) for vertex in contour["vertices"]]
        if not vertices:
            continue
        independent = [_variable(document["x"], [{"value": x} for _, x, _ in vertices])]
        if len(curve["contours"]) > 1:
            independent.insert(0, _variable("Contour", [{"value": number} for number, _, _ in vertices]))
        dependent = [_variable(document["y"], [{"value": y} for _, _, y in vertices])]
        found.append(Record(f"{name} exclusion contour", f"{name} exclusion contour {level}.", independent, dependent))
    return found
