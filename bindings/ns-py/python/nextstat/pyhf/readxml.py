"""HistFactory XML and its ROOT files, read into a workspace.

What an element says of input files, paths and names of histograms applies to the elements in it,
unless they say otherwise. Histograms are read by uproot, which the extra `xmlio` installs.
"""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import _xml, compat, exceptions, schema
from ._progress import shown
from .schema._validator import Violation

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = [
    "clear_filecache",
    "dedupe_parameters",
    "extract_error",
    "import_root_histogram",
    "parse",
    "process_channel",
    "process_data",
    "process_measurements",
    "process_sample",
]


def __dir__():
    return __all__


class _Resolver:
    """Where files are, and those that have been opened."""

    def __init__(self, rootdir, mounts):
        self.rootdir, self.mounts, self.files = Path(rootdir), [(Path(local), Path(mounted)) for local, mounted in mounts or []], {}

    def __call__(self, filename):
        path = Path(filename)
        for local, mounted in self.mounts:
            if path.is_relative_to(mounted):
                return local / path.relative_to(mounted)
        return self.rootdir / path

    def close(self):
        """Closes the files."""
        for file in self.files.values():
            file.close()
        self.files.clear()


def resolver_factory(rootdir, mounts):
    """Returns a function from file names in XML to paths: below `rootdir`, or where a pair (local,
    mounted) of `mounts` puts them.
    """
    return _Resolver(rootdir, mounts)


def clear_filecache():
    """Does nothing: `parse` closes the files that it opens."""


def extract_error(hist):
    """Returns the uncertainty of every bin (B) of a histogram of uproot: from its sums of squared
    weights, or √n where there are none.
    """
    return np.sqrt(hist.variances()).tolist()


def import_root_histogram(resolver, filename, path, name, filecache=None):
    """Returns contents and uncertainties (B each) of the histogram `path`/`name`, or `name` if
    there is none.

    Raises
    ------
    FileNotFoundError, KeyError
        A file, or a histogram, that does not exist.
    ValueError
        Something that is not a histogram with one axis and finite contents.
    """
    found = resolver(filename)
    cache = getattr(resolver, "files", {}) if filecache is None else filecache
    key = str(found)
    if key not in cache:
        cache[key] = _opened(found)
    file = cache[key]
    full = "/".join(part for part in (path.strip("/"), name) if part)
    for candidate in (full, name):
        if candidate in file:
            return _contents(file[candidate], f"histogram `{candidate}` of `{found}`")
    raise _xml.MissingEntry(f"there is no histogram `{full}` in `{found}`")


def _opened(path):
    if not path.is_file():
        raise _xml.MissingFile(f"there is no file `{path}`\n{_xml.RELATIVE}")
    uproot = _xml.import_uproot()
    try:
        return uproot.open(path)
    # What uproot raises depends on where the file stops making sense.
    except Exception as error:
        raise _xml.BadValue(f"`{path}` cannot be read as a ROOT file: {' '.join(str(error).split())}") from error


def _contents(hist, place):
    values = np.asarray(hist.values(), dtype=float) if hasattr(hist, "variances") else np.zeros((0, 0))
    if values.ndim != 1:
        raise _xml.BadValue(f"{place} is not a histogram with one axis")
    with np.errstate(invalid="ignore"):
        errors = extract_error(hist)
    if not np.isfinite(values).all():
        raise _xml.BadValue(f"{place} has contents that are not finite")
    return values.tolist(), errors


class _Source(NamedTuple):
    """What modifiers are made from: files, the sample's yields and their uncertainties (B each),
    and the channel's name.
    """

    resolver: Any
    inputfile: str
    histopath: str
    data: Sequence[float] = ()
    errors: Sequence[float] = ()
    channel: str = ""


def _histogram(element, source, suffix=""):
    """Returns the histogram that an element names, with its uncertainties."""
    inputfile = element.get(f"HistoFile{suffix}") if suffix else None
    inputfile = inputfile or element.get("InputFile") or source.inputfile
    path = element.get(f"HistoPath{suffix}", source.histopath)
    name = _xml.need(element, f"HistoName{suffix}")
    with _xml.within(_xml.label(element)):
        if not inputfile:
            raise _xml.MissingEntry("there is no attribute `InputFile`, neither here nor around it")
        return import_root_histogram(source.resolver, inputfile, path, name)


def _modifier(element, kind, data=None):
    return {"name": _xml.need(element, "Name"), "type": kind, "data": data}


def _overall_sys(element, source):
    return _modifier(element, "normsys", {"lo": _xml.number(element, "Low"), "hi": _xml.number(element, "High")})


def _histo_sys(element, source):
    (low, _), (high, _) = _histogram(element, source, "Low"), _histogram(element, source, "High")
    return _modifier(element, "histosys", {"lo_data": low, "hi_data": high})


def _norm_factor(element, source):
    return _modifier(element, "normfactor")


def _shape_factor(element, source):
    return _modifier(element, "shapefactor")


def _scaled(relative, source):
    """Returns relative uncertainties (B) as those of the sample's yields."""
    if len(relative) != len(source.data):
        raise _xml.BadValue(f"uncertainties of {len(relative)} bins for {len(source.data)}")
    return [a * b for a, b in zip(relative, source.data)]


def _shape_sys(element, source):
    if element.get("ConstraintType", "Poisson") != "Poisson":
        log.warning(f"shapesys modifier {element.get('Name')} has a non-poisson constraint")
    relative, _ = _histogram(element, source)
    with _xml.within(_xml.label(element)):
        return _modifier(element, "shapesys", _scaled(relative, source))


def _stat_error(element, source):
    if not _xml.truth(element, "Activate"):
        return None
    name = f"staterror_{source.channel}"
    if not element.get("HistoName"):
        if not np.isfinite(source.errors).all():
            raise _xml.BadValue("StatError: the histogram has no sums of squared weights, and contents below zero")
        return {"name": name, "type": "staterror", "data": source.errors}
    relative, _ = _histogram(element, source)
    with _xml.within(_xml.label(element)):
        return {"name": name, "type": "staterror", "data": _scaled(relative, source)}


_MODIFIERS = {
    "OverallSys": _overall_sys,
    "HistoSys": _histo_sys,
    "NormFactor": _norm_factor,
    "ShapeFactor": _shape_factor,
    "ShapeSys": _shape_sys,
    "StatError": _stat_error,
}


def _modifier_of(element, source):
    if element.tag not in _MODIFIERS:
        log.warning(f"not considering modifier tag {element.tag}")
        return None
    return _MODIFIERS[element.tag](element, source)


def _setting(element):
    """Returns what a NormFactor says of its parameter."""
    bounds = [[_xml.number(element, "Low"), _xml.number(element, "High")]]
    setting = {"name": _xml.need(element, "Name"), "bounds": bounds, "inits": [_xml.number(element, "Val")]}
    return {**setting, "fixed": _xml.truth(element, "Const")} if "Const" in element.attrib else setting


def process_sample(sample, resolver, inputfile, histopath, channel_name, track_progress=False):
    """Returns a sample, with settings of its parameters as `parameter_configs`."""
    outer = _Source(resolver, sample.get("InputFile") or inputfile, sample.get("HistoPath", histopath), channel=channel_name)
    data, errors = _histogram(sample, outer)
    source = outer._replace(data=data, errors=errors)
    has_lumi = "NormalizeByTheory" in sample.attrib and _xml.truth(sample, "NormalizeByTheory")
    modifiers = [{"name": "lumi", "type": "lumi", "data": None}] if has_lumi else []
    with _xml.within(_xml.label(sample)):
        for element in shown(list(sample), f"  - sample {sample.get('Name')}", "modifier", track_progress):
            modifier = _modifier_of(element, source)
            modifiers += [] if modifier is None else [modifier]
        settings = [_setting(element) for element in sample.iter("NormFactor")]
    return {"name": _xml.need(sample, "Name"), "data": data, "modifiers": modifiers, "parameter_configs": settings}


def process_data(sample, resolver, inputfile, histopath):
    """Returns observed counts (B).

    Raises
    ------
    NotImplementedError
        Data with an empty `HistoName` or `InputFile`, which mean that there are none.
    """
    for attribute in ("HistoName", "InputFile"):
        if sample.get(attribute) == "":
            raise _xml.NoData(f"Data: `{attribute}` is empty, and workspaces without data are not supported")
    return _histogram(sample, _Source(resolver, inputfile, histopath))[0]


def process_channel(channelxml, resolver, track_progress=False):
    """Returns a channel's name, its observed counts, its samples, and settings of their parameters.

    Raises
    ------
    RuntimeError
        A channel without data.
    """
    channel = channelxml.getroot() if hasattr(channelxml, "getroot") else channelxml
    name = _xml.need(channel, "Name")
    with _xml.within(_xml.label(channel)):
        inputfile, histopath = channel.get("InputFile", ""), channel.get("HistoPath", "")
        data = process_data(_observed(channel), resolver, inputfile, histopath)
        found = [
            process_sample(_named(sample, channel), resolver, inputfile, histopath, name, track_progress)
            for sample in shown(channel.findall("Sample"), f"- channel {name}", "sample", track_progress)
        ]
    _warn_of_stat_errors(channel, name)
    settings = [setting for sample in found for setting in sample.pop("parameter_configs")]
    return name, data, found, settings


def _named(element, channel):
    """Returns the element, with the channel's name of histograms if it has none."""
    if "HistoName" not in element.attrib and channel.get("HistoName"):
        element.set("HistoName", channel.get("HistoName"))
    return element


def _observed(channel):
    """Returns the element of the observed counts: the first without a name, or the first."""
    found = channel.findall("Data")
    if not found:
        raise _xml.Incomplete("there are no data: an element `Data` names the histogram of what was observed")
    return _named(next((data for data in found if not data.get("Name")), found[0]), channel)


def _warn_of_stat_errors(channel, name):
    """Warns of statistical uncertainties that are asked to be something else than a workspace's:
    Gaussian, in every bin.
    """
    if not any(error.get("Activate", "").strip().lower() == "true" for error in channel.iter("StatError")):
        return
    for config in channel.findall("StatErrorConfig"):
        kind = config.get("ConstraintType", "Poisson")
        if kind != "Gaussian":
            log.warning(f"channel {name}: statistical uncertainties are asked to have a {kind} constraint; those of a workspace are Gaussian")
        if "RelErrorThreshold" in config.attrib and _xml.number(config, "RelErrorThreshold") > 0.0:
            log.warning(f"channel {name}: statistical uncertainties below {config.get('RelErrorThreshold')} are to be left out; a workspace has all of them")


def dedupe_parameters(parameters):
    """Returns settings without repetitions.

    Raises
    ------
    RuntimeError
        Different settings of one parameter.
    """
    unique = {}
    for parameter in parameters:
        first = unique.setdefault(parameter["name"], parameter)
        if first != parameter:
            log.error(f"{first}\n{parameter}")
            raise RuntimeError(f"cannot import workspace due to incompatible parameter configurations for {parameter['name']}: {first} and {parameter}")
    return list(unique.values())


def process_measurements(toplvl, other_parameter_configs=None, *, n_elements=None):
    """Returns the measurements, each with the settings of the parameters.

    Parameters
    ----------
    toplvl : Element or ElementTree
    other_parameter_configs : list of dict, optional
        Settings from the channels.
    n_elements : dict, optional
        How many elements each vector of parameters has: without it those cannot be set.
    """
    found = toplvl.findall("Measurement")
    return [_measurement(element, other_parameter_configs or [], n_elements or {}) for element in found]


def _measurement(element, others, n_elements):
    name = _xml.need(element, "Name")
    with _xml.within(_xml.label(element)):
        lumi, relative = _xml.number(element, "Lumi"), _xml.number(element, "LumiRelErr")
        sigma = lumi * relative
        settings = {"lumi": {"name": "lumi", "auxdata": [lumi], "bounds": [[lumi - 5.0 * sigma, lumi + 5.0 * sigma]], "inits": [lumi], "sigmas": [sigma]}}
        settings.update((other["name"], dict(other)) for other in others)
        for parameter, change in _changes(element, n_elements):
            entry = settings.setdefault(parameter, {"name": parameter})
            entry.update(change)
            if parameter != "lumi":
                # What is set comes last, in the order in which it is set.
                settings[parameter] = settings.pop(parameter)
        _warn_of_rest(element, name)
        return {"name": name, "config": {"poi": _poi(element, name), "parameters": list(settings.values())}}


def _poi(element, measurement):
    found = element.find("POI")
    if found is None:
        raise _xml.Incomplete("there is no element `POI`; it may be empty")
    names = (found.text or "").split()
    if len(names) > 1:
        log.warning(f"measurement {measurement} has the parameters of interest {', '.join(names)}; a workspace has one, the first is taken")
    return names[0] if names else ""


def _warn_of_rest(element, measurement):
    """Warns of what a workspace cannot say of a measurement."""
    for term in element.findall("ConstraintTerm"):
        kind, names = term.get("Type"), (term.text or "").strip()
        log.warning(f"measurement {measurement}: no {kind} constraint of {names}; constraints of a workspace are those of its modifiers")
    for attribute in ("BinLow", "BinHigh"):
        if attribute in element.attrib:
            log.warning(f"measurement {measurement}: {attribute} is not heeded; a workspace has all bins of its histograms")


def _changes(element, n_elements):
    """Returns names of parameters and what changes in their settings, in the order of the file."""
    vectors = {}
    for setting in element.findall("ParamSetting"):
        change = {"fixed": _xml.truth(setting, "Const")} if "Const" in setting.attrib else {}
        if "Val" in setting.attrib:
            change["inits"] = [_xml.number(setting, "Val")]
        for rootname in (setting.text or "").split():
            if rootname.startswith("gamma_"):
                name, elements = _elements(rootname, n_elements)
                for i in elements:
                    vectors.setdefault(name, {}).setdefault(i, {}).update(change)
            else:
                yield compat.interpret_rootname(rootname)["name"], change
    for name, changes in vectors.items():
        yield name, _of_vector(name, changes, n_elements[name])


def _elements(rootname, n_elements):
    """Returns the vector of parameters that `rootname` is in, and its places in it."""
    match = re.fullmatch(r"gamma_(.+?)(?:_bin)?_(\d+)", rootname)
    for name, elements in ((rootname.removeprefix("gamma_"), None), *([(match[1], [int(match[2])])] if match else [])):
        name = f"staterror_{name.removeprefix('stat_')}" if name not in n_elements and name.startswith("stat_") else name
        if name in n_elements:
            return name, range(n_elements[name]) if elements is None else elements
    raise _xml.BadValue(f"ParamSetting: no sample has a modifier with the parameter `{rootname}`")


def _of_vector(name, changes, n):
    if set(changes) != set(range(n)) or any(change != changes[0] for change in changes.values()):
        raise _xml.BadValue(f"ParamSetting: `{name}` has {n} elements, and a workspace says the same of all of them; {len(changes)} are set")
    return {key: value * n if key == "inits" else value for key, value in changes[0].items()}


def _vectors(channels):
    """Returns how many elements each vector of parameters has."""
    sizes, of_stat_errors = {}, {}
    for channel in channels:
        for sample in channel["samples"]:
            for modifier in sample["modifiers"]:
                if modifier["type"] in ("shapesys", "shapefactor", "staterror"):
                    target = of_stat_errors if modifier["type"] == "staterror" else sizes
                    target.setdefault(modifier["name"], {})[channel["name"]] = len(sample["data"])
    return {name: max(found.values()) for name, found in sizes.items()} | {name: sum(found.values()) for name, found in of_stat_errors.items()}


def parse(configfile, rootdir, mounts=None, track_progress=False, validation_as_error=True):
    """Returns the workspace that a top-level XML file and what it names describe.

    Parameters
    ----------
    configfile : path or file object
    rootdir : path
        What names of files in XML are relative to.
    mounts : list of (path, path), optional
        A local folder, and the name of that folder in XML.
    track_progress : bool
    validation_as_error : bool
        Whether a document that is no workspace is an error, rather than a warning.

    Returns
    -------
    dict

    Raises
    ------
    InvalidSpecification
        What was read makes no workspace.
    FileNotFoundError, KeyError, ValueError, RuntimeError
        A file; an attribute or a histogram; a value; an element that is missing or cannot be used.
    xml.etree.ElementTree.ParseError
        A file that is not XML.
    """
    _xml.import_uproot()
    top = _xml.read(configfile, "Combination")
    resolver = resolver_factory(rootdir, mounts)
    try:
        inputs = [(element.text or "").strip() for element in top.findall("Input")]
        inputs = shown(inputs, "channels", "channel", track_progress)
        read = [process_channel(_xml.read(resolver(name), "Channel"), resolver, track_progress) for name in inputs]
    finally:
        resolver.close()
    for function in top.findall("Function"):
        log.warning(f"function {function.get('Name')} is left out: parameters of a workspace do not depend on one another")
    channels = [{"name": name, "samples": samples} for name, _, samples, _ in read]
    settings = dedupe_parameters([setting for *_, settings in read for setting in settings])
    workspace = {
        "measurements": process_measurements(top, settings, n_elements=_vectors(channels)),
        "channels": channels,
        "observations": [{"name": name, "data": data} for name, data, *_ in read],
        "version": schema.version,
    }
    _validate(workspace, validation_as_error)
    return workspace


def _validate(workspace, is_error):
    try:
        _check_elements(workspace)
        schema.validate(workspace, "workspace.json")
        _check_bins(workspace)
    except exceptions.InvalidSpecification as error:
        if is_error:
            raise
        log.warning(error)


def _check_elements(workspace):
    """Raises `InvalidSpecification` where XML has no elements of a kind that a workspace needs."""
    for element, key in (("Input", "channels"), ("Measurement", "measurements")):
        if not workspace[key]:
            _refuse(f"the combination has no element `{element}`", [key], [])
    for c, channel in enumerate(workspace["channels"]):
        if not channel["samples"]:
            _refuse(f"channel `{channel['name']}` has no element `Sample`", ["channels", c, "samples"], [])


def _check_bins(workspace):
    """Raises `InvalidSpecification` where histograms of one channel have different bins, or
    channels one name.
    """
    names = [channel["name"] for channel in workspace["channels"]]
    for c, (name, channel) in enumerate(zip(names, workspace["channels"])):
        if name in names[:c]:
            _refuse(f"two channels are called `{name}`", ["channels", c, "name"], name)
        wanted = len(workspace["observations"][c]["data"])
        for s, sample in enumerate(channel["samples"]):
            for data, what, path in _lengths(sample):
                if len(data) != wanted:
                    message = f"{what} has {len(data)} bins, and the data of channel `{name}` have {wanted}"
                    _refuse(message, ["channels", c, "samples", s, *path], data)


def _refuse(message, path, instance):
    raise exceptions.InvalidSpecification(Violation(message, path, instance), "workspace.json")


def _lengths(sample):
    """Lists of the sample with one entry for each bin, what they are, and their places."""
    yield sample["data"], f"sample `{sample['name']}`", ["data"]
    for m, modifier in enumerate(sample["modifiers"]):
        if modifier["type"] == "histosys":
            for key, data in modifier["data"].items():
                yield data, f"`{modifier['name']}`", ["modifiers", m, "data", key]
