"""The models that `evaluate.py` writes as HS3: pyhf JSON, with keys that only nextstat reads."""


def modifier(name, kind, data=None, **more):
    return {"name": name, "type": kind, "data": data, **more}


def signal(*modifiers):
    return {"name": "signal", "data": [5.0, 10.0], "modifiers": [modifier("mu", "normfactor"), *modifiers]}


def background(*modifiers, data=(50.0, 60.0)):
    return {"name": "background", "data": list(data), "modifiers": list(modifiers)}


def measurement(*parameters, name="search", poi="mu"):
    return {"name": name, "config": {"poi": poi, "parameters": list(parameters)}}


def workspace(*samples, settings=(), control=(), data=(57.0, 68.0), measurements=()):
    """A signal region, and a control region if it has samples."""
    channels = [{"name": "SR", "samples": list(samples)}]
    observations = [{"name": "SR", "data": list(data)}]
    if control:
        channels.append({"name": "CR", "samples": list(control)})
        observations.append({"name": "CR", "data": [104.0, 88.0][: len(control[0]["data"])]})
    return {
        "channels": channels,
        "observations": observations,
        "measurements": [measurement(*settings), *measurements],
        "version": "1.0.0",
    }


def normsys(name, lo, hi, **more):
    return modifier(name, "normsys", {"lo": lo, "hi": hi}, **more)


def histosys(name, lo, hi, **more):
    return modifier(name, "histosys", {"lo_data": lo, "hi_data": hi}, **more)


def constrained(setting):
    """A model with a factor `k` and a systematic `a`, of which one has another constraint term."""
    return workspace(signal(), background(modifier("k", "normfactor"), normsys("a", 0.9, 1.2)), settings=[setting])


JES = histosys("JES", [47.0, 62.0], [54.0, 57.0])
SHAPE = modifier("shape", "shapesys", [5.0, 7.0])
STAT = modifier("staterror_SR", "staterror", [3.0, 9.0])
LUMI = {"name": "lumi", "auxdata": [1.0], "sigmas": [0.0171234567], "bounds": [[0.5, 1.5]], "inits": [1.0]}
OTHER = {"name": "lumi", "auxdata": [1.02], "sigmas": [0.05], "bounds": [[0.6, 1.4]], "inits": [1.02], "fixed": False}

MODELS = {
    "normsys": workspace(signal(normsys("JES", 0.9, 1.2)), background(normsys("JES", 0.95, 1.02), normsys("theory", 0.8, 1.3))),
    "histosys": workspace(signal(), background(JES, normsys("JES", 0.9, 1.1)), settings=[{"name": "mu", "bounds": [[-5.0, 10.0]]}]),
    "two_histosys": workspace(signal(), background(JES, histosys("JER", [49.0, 58.0], [52.0, 61.0]))),
    "lumi": workspace(signal(modifier("lumi", "lumi")), background(modifier("lumi", "lumi"), modifier("k", "normfactor")), settings=[LUMI, {"name": "k", "fixed": True, "inits": [1.1]}]),
    "shapesys": workspace(signal(), background(SHAPE)),
    "shapesys_gaussian": workspace(signal(), background(SHAPE), settings=[{"name": "shape", "per_bin": {"constraint": "gaussian"}}]),
    "shapesys_of_unit_yields": workspace(signal(), background(modifier("shape", "shapesys", [0.3, 0.2]), modifier("k", "normfactor"), data=[1.0, 1.0]), data=[7.0, 9.0]),
    "shape_of_two_samples": workspace(
        signal(modifier("shape", "shapefactor")),
        background(modifier("shape", "shapefactor")),
        settings=[{"name": "shape", "bounds": [[1e-10, 10.0]] * 2, "constraints": [{"type": "gaussian", "sigma": 0.1}, {"type": "gaussian", "sigma": 0.2}], "auxdata": [1.0, 1.0]}],
    ),
    "staterror": workspace(signal(modifier("staterror_SR", "staterror", [0.5, 0.8])), background(STAT), control=[background(modifier("staterror_CR", "staterror", [9.0]), data=[100.0])]),
    "staterror_poisson": workspace(signal(), background(STAT), settings=[{"name": "staterror_SR", "per_bin": {"constraint": "poisson", "relative_threshold": 0.1}}]),
    "bins_without_uncertainty": workspace(signal(), background(modifier("shape", "shapesys", [5.0, 0.0])), {"name": "other", "data": [3.0, 0.0], "modifiers": [modifier("staterror_SR", "staterror", [1.0, 0.5])]}),
    "shapefactor": workspace(signal(), background(modifier("free", "shapefactor")), control=[background(modifier("free", "shapefactor"), data=[100.0, 90.0])]),
    "two_measurements": workspace(
        signal(modifier("lumi", "lumi")),
        background(modifier("lumi", "lumi"), modifier("k", "normfactor")),
        settings=[LUMI],
        measurements=[measurement(OTHER, {"name": "mu", "bounds": [[0.0, 3.0]], "fixed": True}, name="control", poi="k")],
    ),
    "gaussian_of_a_factor": constrained({"name": "k", "constraints": [{"type": "gaussian", "sigma": 0.123456789}], "auxdata": [1.1]}),
    "gaussian_of_a_systematic": constrained({"name": "a", "constraints": [{"type": "gaussian", "sigma": 0.5}], "auxdata": [0.2]}),
    "shifted_systematic": constrained({"name": "a", "auxdata": [0.4]}),
    "poisson": constrained({"name": "k", "constraints": [{"type": "poisson", "tau": 25.0}], "auxdata": [27.0]}),
    "lognormal_of_the_parameter": constrained({"name": "k", "constraints": [{"type": "lognormal", "kappa": 1.2, "density": "parameter"}], "auxdata": [1.0]}),
    "lognormal_of_the_datum": constrained({"name": "k", "constraints": [{"type": "lognormal", "kappa": 1.2}], "auxdata": [1.1]}),
    **{
        f"normsys_{rule}": workspace(signal(normsys("JES", 0.9, 1.2, interpolation=rule)), background(normsys("theory", 0.8, 1.3)))
        for rule in ("linear", "exponential", "quadratic")
    },
    **{f"histosys_{rule}": workspace(signal(), background({**JES, "interpolation": rule})) for rule in ("linear", "quadratic")},
    # Templates are cut off at zero, and names are those that a document would have beside them.
    "clipped": workspace(signal(), {**background(histosys("steep", [5.0, 2.0], [80.0, 70.0])), "clip": 0}, settings=[{"name": "steep", "bounds": [[-8.0, 8.0]]}]),
    "names": workspace(
        signal(*(modifier(name, "normfactor") for name in ("k_sigma", "nom_k", "p_mean", "p_tau", "log_l", "obs_x_SR", "simPdf", "channelCat", "shape_bin_0"))),
        background(modifier("k", "normfactor"), modifier("p", "normfactor"), modifier("l", "normfactor"), modifier("shape", "shapesys", [5.0, 7.0])),
        settings=[
            {"name": "k", "constraints": [{"type": "gaussian", "sigma": 0.123456789}], "auxdata": [1.1]},
            {"name": "p", "constraints": [{"type": "poisson", "tau": 25.0}], "auxdata": [27.0]},
            {"name": "l", "constraints": [{"type": "lognormal", "kappa": 1.2}], "auxdata": [1.1]},
        ],
        measurements=[measurement({"name": "k", "constraints": [{"type": "gaussian", "sigma": 0.123456789}], "auxdata": [1.1]}, {"name": "p", "constraints": [{"type": "poisson", "tau": 25.0}], "auxdata": [27.0]}, {"name": "l", "constraints": [{"type": "lognormal", "kappa": 1.2}], "auxdata": [1.1]}, name="default")],
    ),
}
