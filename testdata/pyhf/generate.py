#!/usr/bin/env python3
"""Random workspaces with every modifier, and what pyhf makes of them: the reference for order, constraints and values.

    python testdata/pyhf/generate.py > testdata/pyhf/cases.json        (needs pyhf 0.7.6)

Each case has names that sorting moves, parameters shared between kinds and channels, empty bins, zero uncertainties and settings in the
measurement. Points lie inside the bounds, some beyond one standard deviation. Values that are not finite are null.
"""
import datetime, json, math, random, sys

import numpy
import pyhf

SETTINGS = {
    "default": {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}},
    "code1_code0": {"normsys": {"interpcode": "code1"}, "histosys": {"interpcode": "code0"}},
}


def sample(rng, channel, name, n_bins, systematics, shapes, shared_shape):
    data = [0.0 if rng.random() < 0.05 else round(rng.uniform(5, 100), 3) for _ in range(n_bins)]
    mods = []
    for s in systematics:
        if rng.random() < 0.5:
            mods.append({"name": s, "type": "normsys", "data": {"lo": round(rng.uniform(0.7, 1.1), 3), "hi": round(rng.uniform(0.9, 1.4), 3)}})
        if rng.random() < 0.4:
            mods.append({"name": s, "type": "histosys", "data": {
                "lo_data": [round(y * rng.uniform(0.8, 1.1), 3) for y in data],
                "hi_data": [round(y * rng.uniform(0.9, 1.2), 3) for y in data]}})
    if rng.random() < 0.5:
        mods.append({"name": f"{shapes}_{channel}", "type": "staterror", "data": [round(0.1 * y * rng.choice([0, 1, 1, 2]), 3) for y in data]})
    if rng.random() < 0.3:
        mods.append({"name": f"uncorrelated_{channel}_{name}", "type": "shapesys", "data": [rng.choice([0.0, 1.5, 4.0]) for _ in data]})
    if rng.random() < 0.4:
        mods.append({"name": "lumi", "type": "lumi", "data": None})
    if rng.random() < 0.3:
        mods.append({"name": f"norm_{name}", "type": "normfactor", "data": None})
    if shared_shape:
        mods.append({"name": "free_shape", "type": "shapefactor", "data": None})
    rng.shuffle(mods)
    return {"name": name, "data": data, "modifiers": mods}


def workspace(rng):
    systematics = [f"syst_{i}" for i in rng.sample(range(20), 5)]
    n_shared = rng.randint(1, 4)
    channels = []
    for c in rng.sample(["SR", "CR_b", "CR_a", "VR"], rng.randint(1, 4)):
        n_bins = n_shared if rng.random() < 0.6 else rng.randint(1, 5)
        names = rng.sample(["top", "Wjets", "Zjets", "fakes"], rng.randint(1, 3))
        # a staterror must be on all or none of the channels of a sample: one name per channel, in an order that is not the channels'
        prefix = rng.choice(["stat", "zstat", "astat"])
        samples = [sample(rng, c, s, n_bins, systematics, prefix, n_bins == n_shared and i == 0 and rng.random() < 0.4) for i, s in enumerate(names)]
        samples.append({"name": "signal", "data": [round(rng.uniform(1, 10), 3) for _ in range(n_bins)], "modifiers": [
            {"name": "mu", "type": "normfactor", "data": None},
            {"name": systematics[0], "type": "normsys", "data": {"lo": 0.93, "hi": 1.06}}]})
        channels.append({"name": c, "samples": samples})
    observations = [{"name": c["name"], "data": [float(round(sum(s["data"][b] for s in c["samples"]) * rng.uniform(0.8, 1.2))) for b in range(len(c["samples"][0]["data"]))]} for c in channels]
    rng.shuffle(observations)
    parameters = [
        {"name": "lumi", "auxdata": [1.0], "sigmas": [0.017], "bounds": [[0.9, 1.1]], "inits": [1.0], "fixed": rng.random() < 0.5},
        {"name": "mu", "bounds": [[-2, 15]], "inits": [1.5]},
        {"name": "not_used_by_any_modifier", "inits": [3.0]},
        {"name": systematics[1], "bounds": [[-3, 3]], "inits": [0.1], "auxdata": [0.2]},
    ]
    used = {m["name"] for c in channels for s in c["samples"] for m in s["modifiers"]}
    parameters = [p for p in parameters if p["name"] in used or p["name"].startswith("not")]
    return {"channels": channels, "observations": observations, "measurements": [{"name": "meas", "config": {"poi": "mu", "parameters": parameters}}], "version": "1.0.0"}


def number(x):
    x = float(x)
    return x if math.isfinite(x) else None


def reference(ws, rng):
    out = {}
    for name, setting in SETTINGS.items():
        model = pyhf.Workspace(ws).model(modifier_settings=setting)
        data = pyhf.Workspace(ws).data(model)
        config = model.config
        bounds = config.suggested_bounds()
        points = [config.suggested_init()]
        for spread in (0.3, 1.5):
            points.append([min(max(i + spread * rng.uniform(-1, 1) * (1.0 if lo < 0 else 0.4), lo), hi) for i, (lo, hi) in zip(config.suggested_init(), bounds)])
        out[name] = {
            "par_names": config.par_names, "init": config.suggested_init(), "bounds": [list(b) for b in bounds],
            "fixed": [bool(f) for f in config.suggested_fixed()], "data": [float(d) for d in data],
            "points": [{"params": [float(x) for x in p], "expected_data": [number(x) for x in model.expected_data(p)],
                        "twice_nll": number(-2 * model.logpdf(p, data)[0])} for p in points],
        }
    return out


def main():
    rng, cases = random.Random(20261121), []
    while len(cases) < 16:
        ws = workspace(rng)
        try:
            with numpy.errstate(all="ignore"):
                cases.append({"workspace": ws, "reference": reference(ws, rng)})
        except AssertionError:  # pyhf's way to say that a staterror's channels differ between samples
            continue
    certificate = {"tool": "pyhf", "version": pyhf.__version__, "numpy": numpy.__version__, "python": sys.version.split()[0],
                   "command": "python testdata/pyhf/generate.py", "date": datetime.date.today().isoformat()}
    json.dump({"certificate": certificate, "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
