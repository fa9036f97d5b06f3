#!/usr/bin/env python3
"""Write the example workspaces beside this file. The standard library is enough; numbers are made
up and always the same.

simple.json        one channel of two bins, a signal, a background with uncorrelated uncertainties
shapes.json        a signal and a control region with all seven modifiers
background.json    shapes.json without its signal
signal.json        a JSON patch that adds the signal to background.json
signals.json       a patch set for background.json with three signal masses
plane.json         a patch set for background.json with signals in the plane of two masses
eft.json           an effective field theory with two operators, and a formula for a rate
points.json        two points to evaluate simple.json at

The Python package has copies of those that `nextstat.example` offers.
"""
import hashlib
import json
import math
from pathlib import Path

HERE = Path(__file__).parent
PACKAGED = HERE.parent / "bindings/ns-py/python/nextstat/examples"


def modifier(name, kind, data=None):
    return {"name": name, "type": kind, "data": data}


def sample(name, data, *modifiers):
    return {"name": name, "data": data, "modifiers": list(modifiers)}


def scaled(data, *factors):
    factors = factors * len(data) if len(factors) == 1 else factors
    return [round(y * f, 4) for y, f in zip(data, factors)]


def shape(name, data, lo, hi):
    return modifier(name, "histosys", {"lo_data": scaled(data, *lo), "hi_data": scaled(data, *hi)})


def norm(name, lo, hi):
    return modifier(name, "normsys", {"lo": lo, "hi": hi})


LUMI = modifier("lumi", "lumi")

SIMPLE = {
    "channels": [
        {
            "name": "singlechannel",
            "samples": [
                sample("signal", [12.0, 11.0], modifier("mu", "normfactor")),
                sample("background", [50.0, 52.0], modifier("uncorr_bkguncrt", "shapesys", [3.0, 7.0])),
            ],
        }
    ],
    "observations": [{"name": "singlechannel", "data": [57.0, 63.0]}],
    "measurements": [{"name": "Measurement", "config": {"poi": "mu", "parameters": []}}],
    "version": "1.0.0",
}


def signal(scale=1.0):
    data = scaled([1.2, 3.5, 6.0, 4.1], scale)
    return sample(
        "signal", data, modifier("mu", "normfactor"), LUMI, norm("theory_signal", 0.92, 1.09),
        shape("jet_energy_scale", data, (1.04, 1.02, 0.98, 0.95), (0.96, 0.98, 1.02, 1.05)),
    )


TTBAR_SR = [48.0, 32.0, 17.0, 6.5]
TTBAR_CR = [310.0, 180.0, 75.0]
WJETS_SR = [21.0, 14.5, 8.0, 3.2]
WJETS_CR = [60.0, 41.0, 22.0]
FAKES_SR = [3.0, 1.5, 0.8, 0.4]
FAKES_CR = [9.0, 4.0, 1.0]

BACKGROUND = {
    "channels": [
        {
            "name": "signal_region",
            "samples": [
                sample(
                    "ttbar", TTBAR_SR, LUMI, modifier("norm_ttbar", "normfactor"), norm("theory_ttbar", 0.94, 1.07),
                    shape("jet_energy_scale", TTBAR_SR, (0.95, 0.97, 0.99, 1.03), (1.05, 1.03, 1.01, 0.97)),
                    modifier("mc_stat_signal_region", "staterror", scaled(TTBAR_SR, 0.03, 0.04, 0.05, 0.08)),
                ),
                sample(
                    "wjets", WJETS_SR, LUMI, norm("theory_wjets", 0.85, 1.2), norm("jet_energy_scale", 0.97, 1.03),
                    modifier("mc_stat_signal_region", "staterror", scaled(WJETS_SR, 0.06, 0.07, 0.1, 0.15)),
                ),
                sample("fakes", FAKES_SR, modifier("fakes_method", "shapesys", scaled(FAKES_SR, 0.3, 0.35, 0.4, 0.5))),
            ],
        },
        {
            "name": "control_region",
            "samples": [
                sample(
                    "ttbar", TTBAR_CR, LUMI, modifier("norm_ttbar", "normfactor"), norm("theory_ttbar", 0.96, 1.05),
                    shape("jet_energy_scale", TTBAR_CR, (0.96, 0.98, 1.02), (1.04, 1.02, 0.98)),
                ),
                sample("wjets", WJETS_CR, LUMI, norm("theory_wjets", 0.88, 1.15)),
                sample("fakes", FAKES_CR, modifier("fakes_control_region", "shapefactor")),
            ],
        },
    ],
    "observations": [
        {"name": "signal_region", "data": [76.0, 55.0, 36.0, 15.0]},
        {"name": "control_region", "data": [391.0, 228.0, 104.0]},
    ],
    "measurements": [
        {
            "name": "search",
            "config": {
                "poi": "mu",
                "parameters": [
                    {"name": "lumi", "auxdata": [1.0], "sigmas": [0.017], "bounds": [[0.9, 1.1]], "inits": [1.0]},
                    {"name": "mu", "bounds": [[0.0, 20.0]], "inits": [1.0]},
                ],
            },
        }
    ],
    "version": "1.0.0",
}


def add_signal(scale=1.0):
    return [{"op": "add", "path": "/channels/0/samples/-", "value": signal(scale)}]


def shapes():
    workspace = json.loads(json.dumps(BACKGROUND))
    workspace["channels"][0]["samples"].append(signal())
    return workspace


def eft():
    """A signal of two operators, and a background whose rate is a formula."""
    def term(expression, *data):
        return {"expression": expression, "data": list(data)}

    operators = modifier("eft", "morphing", {"terms": [
        term("cW", 1.6, 2.5, 3.1, 3.4, 3.0),
        term("cW^2", 0.4, 1.0, 2.2, 4.1, 6.8),
        term("cB", 4.2, 2.8, 1.6, 0.8, 0.3),
        term("cB^2", 0.5, 0.4, 0.3, 0.2, 0.1),
        term("cW*cB", 0.2, 0.3, 0.5, 0.7, 0.8),
    ]})
    rate = modifier("rate", "formula", {"expression": "@0 * exp(0.05 * @1)", "parameters": ["k", "tilt"]})
    background = [120.0, 85.0, 52.0, 28.0, 12.0]
    jes = {"lo_data": [round(y * (1 - 0.02 * (i - 2)), 2) for i, y in enumerate(background)],
           "hi_data": [round(y * (1 + 0.02 * (i - 2)), 2) for i, y in enumerate(background)]}
    signal_region = [
        sample("signal", [42.0, 31.0, 20.0, 12.0, 6.0], operators, norm("theory", 0.96, 1.04)),
        sample("background", background, rate, modifier("JES", "histosys", jes), norm("tilt", 0.97, 1.03)),
    ]
    parameters = [
        {"name": "cW", "inits": [0.0], "bounds": [[-5.0, 5.0]]},
        {"name": "cB", "inits": [0.0], "bounds": [[-10.0, 10.0]]},
        {"name": "k", "inits": [1.0], "bounds": [[0.5, 1.5]]},
    ]
    return {
        "channels": [{"name": "SR", "samples": signal_region},
                     {"name": "CR", "samples": [sample("background", [900.0], rate)]}],
        "observations": [{"name": "SR", "data": [166.0, 121.0, 80.0, 50.0, 32.0]}, {"name": "CR", "data": [905.0]}],
        "measurements": [{"name": "eft", "config": {"poi": "cW", "parameters": parameters}}],
        "version": "1.0.0",
    }


def digest(document):
    text = json.dumps(document, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def patch_set():
    masses = {300: 2.5, 500: 1.0, 800: 0.2}
    return {
        "metadata": {
            "description": "A made-up signal at three masses",
            "digests": {"sha256": digest(BACKGROUND)},
            "labels": ["mass"],
            "references": {"hepdata": "ins0000000"},
        },
        "patches": [
            {"metadata": {"name": f"signal_{mass}", "values": [mass]}, "patch": add_signal(scale)}
            for mass, scale in masses.items()
        ],
        "version": "1.0.0",
    }


def plane():
    """Signals that get rarer with the mass of the gluino, and softer where the masses are close."""

    def patch(gluino, lsp):
        scale = 60.0 * math.exp(-gluino / 220.0) * (1.0 - math.exp(-(gluino - lsp) / 250.0))
        added = sample("signal", scaled([1.2, 3.5, 6.0, 4.1], scale), modifier("mu", "normfactor"))
        operation = {"op": "add", "path": "/channels/0/samples/-", "value": added}
        return {"metadata": {"name": f"gluino_{gluino}_{lsp}", "values": [gluino, lsp]}, "patch": [operation]}

    masses = [(gluino, lsp) for gluino in range(500, 1100, 100) for lsp in range(0, gluino, 200)]
    return {
        "metadata": {
            "description": "A made-up signal in the plane of two masses",
            "digests": {"sha256": digest(BACKGROUND)},
            "labels": ["m_gluino", "m_lsp"],
            "references": {"hepdata": "ins0000000"},
        },
        "patches": [patch(gluino, lsp) for gluino, lsp in masses],
        "version": "1.0.0",
    }


def bump_hunt():
    """A falling spectrum of 30 bins, with fluctuations and a small bump."""
    places = [110.0 + 20.0 * bin for bin in range(30)]
    falling = [round(900.0 * math.exp(-(x - 100.0) / 150.0), 2) for x in places]
    tilt = {"lo_data": [round(y * (1.0 - 0.0002 * (x - 400.0)), 2) for x, y in zip(places, falling)],
            "hi_data": [round(y * (1.0 + 0.0002 * (x - 400.0)), 2) for x, y in zip(places, falling)]}
    # Fluctuations without a random generator, so that every version of Python makes the same.
    fluctuations = [1.1 * math.sin(7.0 * bin * bin + 1.0) for bin in range(30)]
    counts = [round(y + f * math.sqrt(y) + 32.0 * math.exp(-0.5 * ((x - 390.0) / 25.0) ** 2))
              for x, y, f in zip(places, falling, fluctuations)]
    background = sample("background", falling, modifier("norm", "normfactor"), modifier("tilt", "histosys", tilt))
    return {
        "channels": [{"name": "spectrum", "samples": [background]}],
        "observations": [{"name": "spectrum", "data": [float(n) for n in counts]}],
        "measurements": [{"name": "search", "config": {"poi": "mu", "parameters": [{"name": "mu", "bounds": [[0.0, 20.0]]}]}}],
        "version": "1.0.0",
    }


def bumps():
    """Peaks at 24 masses for the spectrum of `bump_hunt`."""

    def patch(mass):
        peak = [round(20.0 * math.exp(-0.5 * ((110.0 + 20.0 * bin - mass) / 25.0) ** 2), 3) for bin in range(30)]
        added = sample("signal", peak, modifier("mu", "normfactor"))
        operation = {"op": "add", "path": "/channels/0/samples/-", "value": added}
        return {"metadata": {"name": f"peak_{mass}", "values": [mass]}, "patch": [operation]}

    return {
        "metadata": {
            "description": "Peaks at 24 masses",
            "digests": {"sha256": digest(bump_hunt())},
            "labels": ["mass"],
            "references": {"hepdata": "ins0000000"},
        },
        "patches": [patch(mass) for mass in range(150, 630, 20)],
        "version": "1.0.0",
    }


def text(value, indent=0, width=110):
    """JSON in which whatever fits on a line stays on one."""
    flat = json.dumps(value)
    pad, inner = " " * indent, " " * (indent + 2)
    if len(flat) + indent <= width or not isinstance(value, (list, dict)):
        return flat
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + text(v, indent + 2) for v in value) + f"\n{pad}]"
    return "{\n" + ",\n".join(f"{inner}{json.dumps(k)}: {text(v, indent + 2)}" for k, v in value.items()) + f"\n{pad}}}"


def signal_events():
    """Events of six signals in the background's bins, with their statistical uncertainties."""
    shapes = [[round(scale * part, 3) for part in (0.5, 2.0, 4.5, 6.0)] for scale in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)]
    return {"signal_region": shapes, "signal_region.uncertainty": [[round(0.1 * y, 4) for y in row] for row in shapes]}


def main():
    documents = {
        "simple": SIMPLE,
        "shapes": shapes(),
        "background": BACKGROUND,
        "signal": add_signal(),
        "signals": patch_set(),
        "plane": plane(),
        "spectrum": bump_hunt(),
        "bumps": bumps(),
        "signal_events": signal_events(),
        "eft": eft(),
        "points": [[1.0, 1.0, 1.0], [0.0, 1.1, 0.9]],
    }
    for name, document in documents.items():
        for folder in (HERE, PACKAGED) if name in ("shapes", "simple") else (HERE,):
            (folder / f"{name}.json").write_text(text(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
