"""A workspace written as HistFactory XML and ROOT files, which `pyhf.readxml` and ROOT's
`hist2workspace` read.

The engine makes everything before the first file is written. What XML cannot say is refused, or,
where only a fit's start and range depend on it, warned of.
"""

import json
import logging
import xml.etree.ElementTree as ET

from .._internal import ParameterError, with_hint, write_whole, xml_for_pyhf
from . import exceptions, schema

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = ["build_channel", "build_data", "build_measurement", "build_modifier", "build_sample", "indent"]

#: A measurement for elements that are made without one.
_MEASUREMENT = {"name": "measurement", "config": {"poi": "", "parameters": []}}

#: The types of modifiers, and what one of them has for one bin.
_DATA = {
    "histosys": {"lo_data": [1.0], "hi_data": [1.0]},
    "lumi": None,
    "normfactor": None,
    "normsys": {"lo": 1.0, "hi": 1.0},
    "shapefactor": None,
    "shapesys": [1.0],
    "staterror": [1.0],
}


def __dir__():
    return __all__


def _made(spec, folders=("config", ""), prefix="fit"):
    """Returns the text of the combination and the files that it names, by path; warns of what they
    cannot say.

    Raises
    ------
    Unsupported
        A workspace that XML cannot express.
    """
    try:
        text, files, warnings = xml_for_pyhf(json.dumps(spec).encode(), [str(folder) for folder in folders], prefix)
    except ParameterError as error:
        raise with_hint(exceptions.Unsupported(error.args[0]), error.hint) from None
    for warning in warnings:
        log.warning(warning)
    return text, dict(files)


def _channel(spec, channelspec, observation):
    """Returns the element of a channel of a workspace that has no other."""
    measurements = spec.get("measurements") or [_MEASUREMENT]
    alone = {"channels": [channelspec], "observations": [observation], "measurements": measurements, "version": "1.0.0"}
    _, files = _made(alone)
    (text,) = (content for path, content in files.items() if path.suffix == ".xml")
    return ET.fromstring(text)


def _empty(channelspec):
    """Returns observations of a channel for elements that do not depend on them."""
    n_bins = len(channelspec["samples"][0]["data"])
    return {"name": channelspec["name"], "data": [0.0] * n_bins}


def indent(elem, level=0):
    """Puts every element in `elem` on a line of its own, two spaces for each level."""
    ET.indent(elem, space="  ", level=level)


def build_measurement(measurementspec, modifiertypes):
    """Returns the element of a measurement.

    Parameters
    ----------
    measurementspec : dict
    modifiertypes : dict
        The type of each modifier; vectors of parameters have one element.
    """
    samples = {}
    for name, kind in modifiertypes.items():
        # A staterror is called after its channel.
        channel = name.removeprefix("staterror_") if kind == "staterror" else "channel"
        samples.setdefault(channel, []).append({"name": name, "type": kind, "data": _DATA[kind]})
    channels = [{"name": name, "samples": [{"name": "sample", "data": [1.0], "modifiers": found}]} for name, found in (samples or {"channel": []}).items()]
    spec = {"channels": channels, "observations": [_empty(channel) for channel in channels], "measurements": [measurementspec], "version": "1.0.0"}
    return ET.fromstring(_made(spec)[0]).find("Measurement")


def build_modifier(spec, modifierspec, channelname, samplename, sampledata):
    """Returns the element of a modifier; None for `lumi`, which is an attribute of its sample, and,
    with a warning, for an unknown type. A complete combination is made in memory for it.
    """
    if modifierspec["type"] not in _DATA:
        log.warning(f"Skipping modifier {modifierspec['name']}({modifierspec['type']}): XML has no such type")
        return None
    if modifierspec["type"] == "lumi":
        return None
    sample = {"name": samplename, "data": list(sampledata), "modifiers": [modifierspec]}
    return build_sample(spec, sample, channelname)[0]


def build_sample(spec, samplespec, channelname):
    """Returns the element of a sample. A complete combination is made in memory for it."""
    channel = {"name": channelname, "samples": [samplespec]}
    return _channel(spec, channel, _empty(channel)).find("Sample")


def build_data(obsspec, channelname):
    """Returns the element of a channel's observed counts; None if there are none. A complete
    combination is made in memory for it.
    """
    for observation in obsspec or []:
        if observation["name"] == channelname:
            sample = {"name": "sample", "data": observation["data"], "modifiers": []}
            return _channel({}, {"name": channelname, "samples": [sample]}, observation).find("Data")
    return None


def build_channel(spec, channelspec, obsspec):
    """Returns the element of a channel."""
    found = [observation for observation in obsspec or [] if observation["name"] == channelspec["name"]]
    element = _channel(spec, channelspec, found[0] if found else _empty(channelspec))
    if not found:
        element.remove(element.find("Data"))
    return element


def writexml(spec, specdir, data_rootdir, resultprefix):
    """Writes the files of channels and histograms of a workspace.

    Parameters
    ----------
    spec : dict
    specdir, data_rootdir : path
        Where ``{resultprefix}_{channel}.xml`` and ``data.root`` go.
    resultprefix : str

    Returns
    -------
    bytes
        The top-level file, which belongs beside `specdir`; names of files in it are as `specdir`
        and `data_rootdir` are given.

    Raises
    ------
    InvalidSpecification
        A document that is not a workspace.
    Unsupported
        A workspace that XML cannot express.
    """
    schema.validate(spec, "workspace.json")
    text, files = _made(spec, (specdir, data_rootdir), resultprefix)
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(files)
    return text.encode()
