"""Specifications with every kind of modifier, and data for them."""

import numpy as np


def _modifier(kind, name, data=None):
    return {"name": name, "type": kind, "data": data}


def _sample(name, data, *modifiers):
    return {"name": name, "data": data, "modifiers": list(modifiers)}


MU = _modifier("normfactor", "mu")


def _channel(name, *samples):
    return {"name": name, "samples": list(samples)}


SPECS = {
    "uncorrelated": {
        "channels": [_channel("SR", _sample("signal", [12.0, 11.0], MU), _sample("background", [50.0, 52.0], _modifier("shapesys", "bkg", [3.0, 7.0])))]
    },
    "correlated": {
        "channels": [
            _channel(
                "SR",
                _sample("signal", [12.0, 11.0], MU),
                _sample("background", [50.0, 52.0], _modifier("histosys", "shape", {"hi_data": [45.0, 57.0], "lo_data": [55.0, 47.0]})),
            )
        ]
    },
    "staterror": {
        "channels": [
            _channel(
                "SR",
                _sample("signal", [10.0, 10.0, 4.0], MU),
                _sample("a", [50.0, 70.0, 20.0], _modifier("staterror", "stat_SR", [12.0, 12.0, 3.0])),
                _sample("b", [30.0, 20.0, 5.0], _modifier("staterror", "stat_SR", [5.0, 5.0, 1.0])),
                _sample("c", [20.0, 15.0, 8.0]),
            )
        ]
    },
    "two_channels": {
        "channels": [
            _channel(
                "SR",
                _sample("signal", [5.0, 10.0], MU, _modifier("normsys", "acceptance", {"hi": 1.05, "lo": 0.93})),
                _sample(
                    "background",
                    [60.0, 40.0],
                    _modifier("normsys", "xsec", {"hi": 1.2, "lo": 0.85}),
                    _modifier("histosys", "jes", {"hi_data": [66.0, 41.0], "lo_data": [57.0, 36.0]}),
                    _modifier("staterror", "stat_SR", [3.0, 2.5]),
                ),
            ),
            _channel(
                "CR",
                _sample(
                    "background",
                    [200.0, 150.0, 100.0],
                    _modifier("normsys", "xsec", {"hi": 1.2, "lo": 0.85}),
                    _modifier("histosys", "jes", {"hi_data": [210.0, 155.0, 97.0], "lo_data": [195.0, 143.0, 104.0]}),
                ),
                _sample("fakes", [10.0, 12.0, 9.0], _modifier("shapesys", "fakes_shape", [2.0, 3.0, 1.5]), _modifier("normfactor", "fakes_norm")),
            ),
        ],
        "parameters": [{"name": "fakes_norm", "bounds": [[-5.0, 10.0]]}],
    },
    "shapefactor": {
        "channels": [
            _channel("SR", _sample("signal", [5.0, 12.0], MU), _sample("multijet", [20.0, 25.0], _modifier("shapefactor", "shape"))),
            _channel("CR", _sample("multijet", [100.0, 120.0], _modifier("shapefactor", "shape"))),
        ]
    },
    "lumi": {
        "channels": [
            _channel(
                "SR",
                _sample("signal", [8.0, 4.0], MU, _modifier("lumi", "lumi")),
                _sample("background", [30.0, 20.0], _modifier("lumi", "lumi"), _modifier("normsys", "xsec", {"hi": 1.1, "lo": 0.9})),
            )
        ],
        "parameters": [
            {"name": "lumi", "auxdata": [1.0], "sigmas": [0.03], "bounds": [[0.7, 1.3]], "inits": [1.0]},
            {"name": "mu", "inits": [0.5], "bounds": [[-2.0, 5.0]]},
            {"name": "xsec", "fixed": True, "inits": [0.2]},
        ],
    },
    "empty_bins": {
        "channels": [
            _channel("SR", _sample("signal", [3.0, 2.0, 1.0], MU), _sample("background", [10.0, 0.0, 5.0], _modifier("shapesys", "bkg", [1.0, 0.0, 0.0])), _sample("other", [1.0, 2.0, 0.0]))
        ]
    },
}

#: What is observed, per channel.
OBSERVED = {
    "uncorrelated": {"SR": [51.0, 48.0]},
    "correlated": {"SR": [55.0, 60.0]},
    "staterror": {"SR": [112.0, 108.0, 40.0]},
    "two_channels": {"SR": [68.0, 52.0], "CR": [215.0, 158.0, 110.0]},
    "shapefactor": {"SR": [27.0, 35.0], "CR": [104.0, 117.0]},
    "lumi": {"SR": [41.0, 22.0]},
    "empty_bins": {"SR": [12.0, 3.0, 6.0]},
}


def data_of(model, name):
    """Observed counts in the model's order, then auxiliary data."""
    return [count for channel in model.config.channels for count in OBSERVED[name][channel]] + list(model.config.auxdata)


def points_of(model, n=5, seed=1):
    """Parameter values round the suggested ones (n × P)."""
    random = np.random.default_rng(seed)
    init, bounds = np.array(model.config.suggested_init()), np.array(model.config.suggested_bounds(), dtype=float)
    points = init + random.normal(0.0, 0.3, (n, len(init)))
    return np.clip(points, bounds[:, 0] + 0.01, bounds[:, 1] - 0.01)


def workspace(name, measurement="fit", poi="mu"):
    """The specification as a workspace."""
    spec = SPECS[name]
    return {
        "channels": spec["channels"],
        "observations": [{"name": channel["name"], "data": OBSERVED[name][channel["name"]]} for channel in spec["channels"]],
        "measurements": [{"name": measurement, "config": {"poi": poi, "parameters": spec.get("parameters", [])}}],
        "version": "1.0.0",
    }
