"""From pyhf's model specifications to the engine's models, and the engine's complaints as pyhf's
exceptions.
"""

import json

from .. import _internal
from ._documents import plain
from . import exceptions
from .parameters import constrained_by_normal, constrained_by_poisson, unconstrained

#: The exception for each fault that the engine finds in a model.
_FAULTS = {
    "ModifierLength": exceptions.InvalidModifier,
    "IncompatibleKinds": exceptions.InvalidNameReuse,
    "ShapeFactorLength": exceptions.InvalidNameReuse,
}

#: Modifiers that a specification may have.
_TYPES = ("histosys", "lumi", "normfactor", "normsys", "shapefactor", "shapesys", "staterror")

_DEFAULT_CODES = {"normsys": "code1", "histosys": "code0"}


def settings(spec, custom):
    """Returns the settings of parameters in `spec`, and of those that its modifiers of the types in
    `custom` bring, by name.
    """
    given = list(spec.get("parameters", []))
    used = {modifier["type"] for channel in spec["channels"] for sample in channel["samples"] for modifier in sample["modifiers"]}
    new = {entry["name"]: entry for name, kind in custom.items() if name in used for entry in kind.settings()}
    for entry in given:
        new[entry["name"]] = {**new.get(entry["name"], {}), **entry}
    return list(new.values())


def compiled(spec, config, clip, custom):
    """Returns the engine's model of `spec`, without parameter of interest: that is for callers to
    choose. `clip` has the least yields, None for no limit, and `custom` the types of modifiers
    beyond HistFactory's.
    """
    settings_of_all = {"poi": "", "parameters": [_setting(entry) for entry in settings(spec, custom)]}
    if limits := {stage: float(least) for stage, least in clip.items() if least is not None}:
        settings_of_all["clip"] = limits
    workspace = {
        "channels": [_channel(channel, custom) for channel in spec["channels"]],
        "observations": [{"name": name, "data": [0.0] * n} for name, n in config.channel_nbins.items()],
        "measurements": [{"name": "measurement", "config": settings_of_all}],
        "version": "1.0.0",
    }
    text = json.dumps(workspace, default=plain).encode()
    try:
        return _internal.Model(text, {"measurement": None, "poi": [], "interp_defaults": "pyhf", "interpolation": dict(_codes(config.modifier_settings))})
    except _internal.ModelError as error:
        raise _FAULTS.get(getattr(error, "fault", None), exceptions.InvalidModel)(error.args[0]) from error
    except _internal.WorkspaceError as error:
        raise exceptions.InvalidModel(error.args[0]) from error


def _channel(channel, custom):
    for sample in channel["samples"]:
        if own := [key for key in ("clip", "normalize") if key in sample]:
            raise exceptions.InvalidModel(f"pyhf has no `{own[0]}` of a single sample, which `{sample['name']}` has")
    samples = [
        {"name": sample["name"], "data": sample["data"], "modifiers": [_modifier(modifier, custom) for modifier in sample["modifiers"]]}
        for sample in channel["samples"]
    ]
    return {"name": channel["name"], "samples": samples}


def _modifier(modifier, custom):
    if modifier["type"] in custom:
        return custom[modifier["type"]].formula(modifier)
    if modifier["type"] not in _TYPES:
        raise exceptions.InvalidModifier(f"{modifier['type']} not among {[*_TYPES, *custom]}")
    if own := [key for key in ("interpolation", "scale") if key in modifier]:
        raise exceptions.InvalidModifier(f"pyhf has no `{own[0]}` of a single modifier, which `{modifier['name']}` has")
    return {"name": modifier["name"], "type": modifier["type"], "data": modifier.get("data")}


def _setting(parameter):
    """Returns a parameter's settings; those that `lumi` may lack in pyhf as long as nothing is
    fitted have values here.
    """
    if parameter["name"] != "lumi" or "auxdata" not in parameter:
        return parameter
    return {"inits": list(parameter["auxdata"]), "bounds": [[0.0, 10.0]], **parameter}


def _codes(settings):
    """Returns the interpolation rule of each kind, as pairs."""
    rules = []
    for kind, default in _DEFAULT_CODES.items():
        code = settings.get(kind, {}).get("interpcode", default)
        if code not in {"normsys": ("code1", "code4"), "histosys": ("code0", "code2", "code4p")}[kind]:
            raise exceptions.InvalidInterpCode(f"{kind} has no interpolation `{code}`")
        rules.append((kind, code))
    return rules


def parameter_map(engine, written):
    """Returns pyhf's `par_map`: the slice and the parameter set of every name, with the numbers of
    its settings as they are `written`.
    """
    written = {setting["name"]: setting for setting in written}
    init, bounds, fixed = engine.init.tolist(), [tuple(pair) for pair in engine.bounds.tolist()], engine.fixed
    auxdata = engine.data[engine.n_bins :].tolist()
    entries = {}
    for found in engine.parameter_sets():
        part = slice(found["start"], found["start"] + found["len"])
        settings = {
            "name": found["name"],
            "n_parameters": found["len"],
            "is_scalar": found["is_scalar"],
            "inits": init[part],
            "bounds": bounds[part],
            "fixed": fixed[part],
        }
        if found["kinds"] == ["normfactor"]:
            # pyhf's are integers, which shows in digests.
            settings["bounds"] = [(0, 10) if pair == (0.0, 10.0) else pair for pair in settings["bounds"]]
        settings.update(_as_written(written.get(found["name"], {})))
        entries[found["name"]] = {"slice": part, "paramset": _paramset(found, settings, auxdata)}
    return entries


def _as_written(setting):
    given = {"inits": list(setting["inits"])} if "inits" in setting else {}
    return {**given, "bounds": [tuple(pair) for pair in setting["bounds"]]} if "bounds" in setting else given


def _paramset(found, settings, auxdata):
    if found["constraint"] is None:
        return unconstrained(**settings)
    if found["constraint"] not in ("normal", "poisson"):
        raise exceptions.InvalidModel(f"pyhf has no `{found['constraint']}` constraint terms, which `{found['name']}` has")
    settings["auxdata"] = [auxdata[i] for i in found["aux_indices"]]
    scales = found["scales"].tolist()
    if found["constraint"] == "poisson":
        return constrained_by_poisson(**settings, factors=scales)
    has_widths = any(kind in ("staterror", "lumi") for kind in found["kinds"])
    return constrained_by_normal(**settings, sigmas=scales if has_widths else None)
