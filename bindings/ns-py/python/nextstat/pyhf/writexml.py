"""A workspace written as HistFactory XML and ROOT files, which `pyhf.readxml` and ROOT's
`hist2workspace` read.

Everything is made before the first file is written. What XML cannot say is refused, or, where only
a fit's start and range depend on it, warned of. Histograms are written by uproot, which the extra
`xmlio` installs.
"""

import logging
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np

from .._internal import write_whole
from . import _xml, exceptions, schema
from .readxml import _vectors

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = ["build_channel", "build_data", "build_measurement", "build_modifier", "build_sample", "indent"]

#: What a NormFactor's parameter starts from, and where it may go, unless a measurement says so.
_FREE = {"inits": [1], "bounds": [[0, 10]]}


def __dir__():
    return __all__


def _as_file(name):
    """Returns a name without what means something in paths."""
    return re.sub(r"[^\w.-]", "_", name)


class _Histograms(dict):
    """Contents and variances (B each; None for √n) by name, and the file that they are written to.
    """

    def __init__(self, path="data.root"):
        super().__init__()
        self.path = str(path)

    def add(self, names, values, variances=None):
        """Keeps a histogram; its name."""
        name = wanted = "hist" + _as_file("_".join(names))
        n = 1
        while name in self:
            n += 1
            name = f"{wanted}_{n}"
        self[name] = (np.asarray(values, dtype=float), None if variances is None else np.asarray(variances, dtype=float))
        return name

    def write(self, path):
        """Writes the file."""
        uproot = _xml.import_uproot()
        with uproot.recreate(path) as file:
            for name, (values, variances) in self.items():
                file[name] = (values, np.arange(len(values) + 1.0)) if variances is None else _weighted(uproot.writing.identify, name, values, variances)


def _weighted(identify, name, values, variances):
    """Returns a ROOT histogram with sums of squared weights; no under- and overflow."""
    edges = np.arange(len(values) + 1.0)
    centres = edges[:-1] + 0.5
    data, squares = np.pad(values, 1), np.pad(variances, 1)
    sums = (values.sum(), variances.sum(), (values * centres).sum(), (values * centres**2).sum())
    return identify.to_TH1x(name, "", data, float(values.sum()), *sums, squares, identify.to_TAxis("xaxis", "", len(values), 0.0, float(len(values))))


def indent(elem, level=0):
    """Puts every element in `elem` on a line of its own, two spaces for each level."""
    ET.indent(elem, space="  ", level=level)


def build_measurement(measurementspec, modifiertypes, *, n_elements=None, starts=None):
    """Returns the element of a measurement.

    Parameters
    ----------
    measurementspec : dict
    modifiertypes : dict
        The type of each modifier.
    n_elements : dict, optional
        How many elements each vector of parameters has; those of others have no names in ROOT.
    starts : dict, optional
        Where the NormFactors let their parameters start.
    """
    config = measurementspec["config"]
    settings = {setting["name"]: setting for setting in config["parameters"]}
    lumi = settings.get("lumi", {})
    nominal, sigma = (lumi.get(key, [default])[0] for key, default in (("auxdata", 1.0), ("sigmas", 0.0)))
    attributes = {"Name": measurementspec["name"], "Lumi": str(nominal), "LumiRelErr": str(sigma / nominal), "ExportOnly": "True"}
    element = ET.Element("Measurement", attributes)
    ET.SubElement(element, "POI").text = _listed(config["poi"])
    fixed = [name for name, setting in settings.items() if setting.get("fixed")]
    if fixed:
        names = (_rootnames(name, modifiertypes.get(name), (n_elements or {}).get(name)) for name in fixed)
        ET.SubElement(element, "ParamSetting", Const="True").text = " ".join(names)
    for name, setting in settings.items():
        value = _start(setting, modifiertypes.get(name), starts or {})
        if value is not None:
            ET.SubElement(element, "ParamSetting", Val=str(value)).text = _rootnames(name, modifiertypes.get(name), (n_elements or {}).get(name))
    return element


def _listed(name):
    """Returns a name that will stand in a list."""
    if re.search(r"\s", name):
        raise exceptions.Unsupported(f"the parameter `{name}` is of interest, or has settings: XML has such names in lists with blanks between them")
    return name


def _rootnames(name, kind, n):
    """Returns what ROOT calls a parameter, or the elements of a vector."""
    name = _listed(name)
    if kind == "lumi" or name == "lumi":
        return "Lumi"
    if kind in ("normsys", "histosys"):
        return f"alpha_{name}"
    if kind not in ("staterror", "shapesys", "shapefactor"):
        return name
    stem = f"gamma_stat_{name.removeprefix('staterror_')}" if kind == "staterror" else f"gamma_{name}"
    return " ".join(f"{stem}_bin_{i}" for i in range(n)) if n else f"gamma_{name}"


def _start(setting, kind, starts):
    """Returns the starting value that a ParamSetting must say; None where it is the usual one."""
    name, inits = setting["name"], setting.get("inits")
    if not inits or (kind == "normfactor" and name not in starts):
        return None
    usual = {"lumi": setting.get("auxdata", [1.0])[0], "normsys": 0.0, "histosys": 0.0, "normfactor": starts.get(name)}.get(kind, 1.0)
    if any(value != inits[0] for value in inits):
        raise exceptions.Unsupported(f"`{name}` starts at different values in different bins, which XML cannot say")
    return None if inits[0] == usual else inits[0]


def build_modifier(spec, modifierspec, channelname, samplename, sampledata, *, histograms=None):
    """Returns the element of a modifier; None for `lumi`, which is an attribute of its sample, and,
    with a warning, for an unknown type.
    """
    histograms = _Histograms() if histograms is None else histograms
    if modifierspec["type"] not in _BUILDERS:
        log.warning(f"Skipping modifier {modifierspec['name']}({modifierspec['type']}): XML has no such type")
        return None
    return _BUILDERS[modifierspec["type"]](spec, modifierspec, (channelname, samplename, modifierspec["name"]), sampledata, histograms)


def _norm_factor(spec, modifier, names, sampledata, histograms):
    settings = {**_FREE, **_first_setting(spec, modifier["name"])}
    low, high = settings["bounds"][0]
    return ET.Element("NormFactor", Name=modifier["name"], Val=str(settings["inits"][0]), Low=str(low), High=str(high))


def _first_setting(spec, name):
    """Returns what the first measurement that mentions the parameter says of it."""
    for measurement in spec.get("measurements", []):
        for setting in measurement["config"]["parameters"]:
            if setting["name"] == name:
                return setting
    return {}


def _histo_sys(spec, modifier, names, sampledata, histograms):
    *before, name = names
    low, high = (histograms.add([*before, name + side], modifier["data"][key]) for side, key in (("Low", "lo_data"), ("High", "hi_data")))
    return ET.Element("HistoSys", Name=name, HistoNameLow=low, HistoNameHigh=high)


def _terms(spec, name):
    """Returns what a workspace of the engine sets for the terms of bins: a dictionary beside what
    pyhf's have.
    """
    return spec.get("per_bin", {}).get(name, {})


def _shape_sys(spec, modifier, names, sampledata, histograms):
    nominal = np.asarray(sampledata, dtype=float)
    relative = np.divide(modifier["data"], nominal, out=np.zeros(len(nominal)), where=nominal != 0.0)
    kind = _terms(spec, modifier["name"]).get("constraint", "poisson")
    return ET.Element("ShapeSys", Name=modifier["name"], ConstraintType=kind.capitalize(), HistoName=histograms.add(names, relative))


_BUILDERS = {
    "histosys": _histo_sys,
    "lumi": lambda spec, modifier, names, sampledata, histograms: None,
    "normfactor": _norm_factor,
    "normsys": lambda spec, modifier, *rest: ET.Element(
        "OverallSys", Name=modifier["name"], High=str(modifier["data"]["hi"]), Low=str(modifier["data"]["lo"])
    ),
    "shapefactor": lambda spec, modifier, *rest: ET.Element("ShapeFactor", Name=modifier["name"]),
    "shapesys": _shape_sys,
    # Its uncertainties are those of the sample's histogram.
    "staterror": lambda *arguments: ET.Element("StatError", Activate="True"),
}


def build_sample(spec, samplespec, channelname, *, histograms=None):
    """Returns the element of a sample."""
    histograms = _Histograms() if histograms is None else histograms
    kinds = {modifier["type"]: modifier for modifier in samplespec["modifiers"]}
    variances = np.square(kinds["staterror"]["data"]) if "staterror" in kinds else None
    name = histograms.add([channelname, samplespec["name"]], samplespec["data"], variances)
    element = ET.Element("Sample", Name=samplespec["name"], HistoName=name, InputFile=histograms.path, NormalizeByTheory=str("lumi" in kinds))
    for modifier in samplespec["modifiers"]:
        built = build_modifier(spec, modifier, channelname, samplespec["name"], samplespec["data"], histograms=histograms)
        element.extend([] if built is None else [built])
    return element


def build_data(obsspec, channelname, *, histograms=None):
    """Returns the element of a channel's observed counts; None if there are none."""
    histograms = _Histograms() if histograms is None else histograms
    for observation in obsspec or []:
        if observation["name"] == channelname:
            return ET.Element("Data", HistoName=histograms.add([channelname, "data"], observation["data"]), InputFile=histograms.path)
    return None


def build_channel(spec, channelspec, obsspec, *, histograms=None):
    """Returns the element of a channel."""
    histograms = _Histograms() if histograms is None else histograms
    name = channelspec["name"]
    element = ET.Element("Channel", Name=name, InputFile=histograms.path)
    data = build_data(obsspec, name, histograms=histograms)
    element.extend([] if data is None else [data])
    modifiers = [modifier for sample in channelspec["samples"] for modifier in sample["modifiers"]]
    stat_error = next((modifier["name"] for modifier in modifiers if modifier["type"] == "staterror"), None)
    if stat_error is not None:
        # ROOT's own are Poisson, and none where the uncertainty is below 5%.
        terms = _terms(spec, stat_error)
        threshold, kind = terms.get("relative_threshold", 0.0), terms.get("constraint", "gaussian")
        ET.SubElement(element, "StatErrorConfig", RelErrorThreshold=str(threshold), ConstraintType=kind.capitalize())
    element.extend([build_sample(spec, sample, name, histograms=histograms) for sample in channelspec["samples"]])
    return element


def _modifiers(spec):
    """Returns every modifier, with its channel and sample."""
    return [(channel, sample, modifier) for channel in spec["channels"] for sample in channel["samples"] for modifier in sample["modifiers"]]


def _refuse(spec):
    """Raises `Unsupported` for what would be something else in XML."""
    stat_errors = {}
    for channel, sample, modifier in _modifiers(spec):
        name = modifier["name"]
        first = stat_errors.setdefault(channel["name"], name) if modifier["type"] == "staterror" else name
        if first != name:
            place = f"channel `{channel['name']}`, sample `{sample['name']}`"
            raise exceptions.Unsupported(f"{place}: a channel has one staterror in XML, and this one has `{first}` and `{name}`")


def _renamed(spec):
    """Returns the name in XML of every modifier: a staterror is called after its channel."""
    return {modifier["name"]: f"staterror_{channel['name']}" for channel, _, modifier in _modifiers(spec) if modifier["type"] == "staterror"}


def _warn(spec, kinds):
    """Warns of what is lost."""
    for old, new in _renamed(spec).items():
        if old != new:
            log.warning(f"modifier {old} is called {new} in XML: a staterror has no name of its own there")
    for measurement in spec["measurements"]:
        for setting in measurement["config"]["parameters"]:
            kind = kinds.get(setting["name"])
            lost = [key for key in ("bounds", "auxdata", "sigmas") if key in setting and kind != "lumi"]
            if kind == "normfactor":
                first = {**_FREE, **_first_setting(spec, setting["name"])}
                lost = ["bounds"] if setting.get("bounds", first["bounds"]) != first["bounds"] else []
            if lost and kind is not None:
                log.warning(f"measurement {measurement['name']}: XML cannot say {' and '.join(lost)} of {setting['name']}")


def writexml(spec, specdir, data_rootdir, resultprefix, *, per_bin=None):
    """Writes the files of channels and histograms of a workspace.

    Parameters
    ----------
    spec : dict
    specdir, data_rootdir : path
        Where ``{resultprefix}_{channel}.xml`` and ``data.root`` go.
    resultprefix : str
    per_bin : dict, optional
        The kind of terms and the threshold of each staterror and shapesys, where they are not
        pyhf's: the engine's setting of that name, by parameter.

    Returns
    -------
    bytes
        The top-level file, which belongs beside `specdir`; names of files in it are as `specdir`
        and `data_rootdir` are given.

    Raises
    ------
    InvalidSpecification
        A document that is no workspace.
    Unsupported
        A workspace that XML cannot express.
    """
    _xml.import_uproot()
    schema.validate(spec, "workspace.json")
    _refuse(spec)
    spec = {**spec, "per_bin": per_bin or {}}
    kinds = {modifier["name"]: modifier["type"] for _, _, modifier in _modifiers(spec)}
    _warn(spec, kinds)
    histograms = _Histograms(Path(data_rootdir) / "data.root")
    channels = _channels(spec, Path(specdir), resultprefix, histograms)
    top = ET.Element("Combination", OutputFilePrefix=str(Path(specdir) / resultprefix))
    for path in channels:
        ET.SubElement(top, "Input").text = str(path)
    sizes = _vectors(spec["channels"])
    starts = {name: {**_FREE, **_first_setting(spec, name)}["inits"][0] for name, kind in kinds.items() if kind == "normfactor"}
    top.extend([build_measurement(measurement, kinds, n_elements=sizes, starts=starts) for measurement in spec["measurements"]])
    _write({Path(specdir).parent / _xml.DTD: _xml.document_type().encode(), **channels, Path(histograms.path): histograms.write})
    return _document(top, _xml.DTD)


def _channels(spec, folder, resultprefix, histograms):
    """Returns the files of the channels, by path."""
    files = {}
    for channel in spec["channels"]:
        path = folder / f"{resultprefix}_{_as_file(channel['name'])}.xml"
        if path in files:
            raise exceptions.Unsupported(f"channel `{channel['name']}`: another channel's file is called `{path.name}` too")
        files[path] = _document(build_channel(spec, channel, spec["observations"], histograms=histograms), f"../{_xml.DTD}")
    return files


def _document(element, dtd):
    indent(element)
    return f"<!DOCTYPE {element.tag} SYSTEM '{dtd}'>\n\n{ET.tostring(element, encoding='unicode')}\n".encode()


def _write(files):
    """Writes files from bytes, or by functions of a path; all of them, or none."""
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(files)
