"""Makes documents of any size for the tests of the page, with the keys of the command's.

They hold no physics: the numbers are random, from a fixed seed.
"""

import random

PHASES = ("prefit", "postfit")


def provenance(**settings):
    return {
        "nextstat_version": "0.0.0",
        "command": ["nextstat", "report", "a file.json"],
        "workspace": {"digest": "0" * 64, "file": "a file.json"},
        "measurement": "search",
        "pois": ["mu"],
        "settings": settings,
        "data": {"source": "observed"},
        "device": "cpu",
        "seed": 0,
    }


def names(n_constrained, n_free=2):
    """The parameter of interest, free normalisations, and constrained parameters of groups."""
    groups = ("JES", "JER", "BTAG", "theory", "stat")
    return ["mu", *(f"norm_{i}" for i in range(n_free)), *(f"{groups[i % 5]}_{i}" for i in range(n_constrained))]


def fit(par_names, rng, *, converged=True):
    values = [1.0 if i < 3 else rng.gauss(0, 0.6) for i in range(len(par_names))]
    uncertainties = [rng.uniform(0.3, 1.05) if converged else None for _ in par_names]
    poi = {"name": par_names[0], "index": 0, "bestfit": values[0], "uncertainty": uncertainties[0], "statistical": 0.2, "systematic": 0.1}
    return {
        "par_names": par_names,
        "bestfit": values,
        "uncertainties": uncertainties,
        "converged": converged,
        "outcome": "converged" if converged else "stalled",
        "poi": poi,
        "pois": [poi],
        "twice_nll": 100.0,
        "nll": 50.0,
        "edm": 1e-9,
        "projected_gradient": 1e-9,
        "n_free": len(par_names),
        "n_iterations": 5,
        "n_evaluations": 9,
        "at_bounds": [],
        "flat_directions": [],
        "not_finite": None,
        "minos": [],
        "warnings": [],
    }


def pulls(found, n_free):
    rows = []
    for index in range(n_free, len(found["par_names"])):
        value, sigma = found["bestfit"][index], found["uncertainties"][index]
        rows.append(
            {
                "parameter": found["par_names"][index],
                "index": index,
                "bestfit": value,
                "uncertainty": sigma,
                "prefit": 0.0,
                "prefit_uncertainty": 1.0,
                "pull": value,
                "constraint": sigma,
            }
        )
    return rows


def yields(values, uncertainties):
    return {"yields": values, "uncertainties": uncertainties, "sum": sum(values), "sum_uncertainty": sum(uncertainties)}


def prediction(rng, samples, n_bins):
    rows = []
    for sample in samples:
        values = [rng.uniform(1, 60) for _ in range(n_bins)]
        rows.append({"sample": sample, **yields(values, [0.1 * value for value in values])})
    total = [sum(row["yields"][bin] for row in rows) for bin in range(n_bins)]
    return {"samples": rows, "total": yields(total, [0.08 * value for value in total])}


def channel(rng, name, samples, n_bins, hidden):
    found = {"channel": name, **{phase: prediction(rng, samples, n_bins) for phase in PHASES}}
    data = [float(round(value * rng.uniform(0.8, 1.2))) for value in found["postfit"]["total"]["yields"]]
    found["data"] = [None if bin in hidden else value for bin, value in enumerate(data)]
    return found


def goodness(channels):
    rows = [{"channel": one["channel"], "n_bins": len(one["data"]), "deviance": 3.2, "n_dof": 2.4, "p_value": 0.41} for one in channels]
    counts = {"n_bins": 12, "n_constraints": 5, "n_free": 6, "n_dof": 11, "n_undetermined": 0}
    return {"statistic": 14.2, "p_value": 0.22, "constraint_deviance": 1.5, "warnings": [], "channels": rows, **counts}


def report(*, par_names=None, n_constrained=20, n_channels=3, samples=("signal", "ttbar", "wjets"), n_bins=4, hidden=None, **options):
    """A document of `nextstat report`; `hidden` has the bins by number of the channel."""
    rng = random.Random(11)
    par_names = par_names or names(n_constrained)
    found = fit(par_names, rng, **options)
    channels = [channel(rng, f"region_{i}", samples, n_bins, (hidden or {}).get(i, ())) for i in range(n_channels)]
    size = len(par_names)
    rows = [[1.0 if i == j else rng.uniform(-0.15, 0.15) for j in range(i + 1)] for i in range(size)]
    found["correlation"] = [[rows[max(i, j)][min(i, j)] for j in range(size)] for i in range(size)]
    return {
        "$schema": "urn:nextstat:schema:report:1",
        "nextstat_version": "0.0.0",
        "measurement": "search",
        "provenance": provenance(**({"blinded": {f"region_{i}": sorted(bins) for i, bins in hidden.items()}} if hidden else {})),
        "warnings": ["`mu` is close to a bound"],
        "converged": found["converged"],
        "fit": found,
        "goodness_of_fit": goodness(channels),
        "pulls": pulls(found, 3),
        "yields": {"channels": channels},
    }


def shifts(size):
    one = {"at": 1.0, "clipped": False, "outcome": "converged"}
    return {"down": {**one, "impact": -size}, "up": {**one, "impact": size}}


def ranking(of):
    """A document of `nextstat ranking` for the fit of a report."""
    rows = []
    for position, pull in enumerate(of["pulls"]):
        size = 0.2 / (1 + position)
        keys = ("parameter", "bestfit", "uncertainty", "prefit_uncertainty", "pull", "constraint")
        extra = {"minos": None, "global": shifts(size), "global_linear": size, "covariance_prefit": size, "covariance_postfit": size}
        rows.append({**{key: pull[key] for key in keys}, "prefit": shifts(1.2 * size), "postfit": shifts(size), **extra})
    poi = {key: of["fit"]["poi"][key] for key in ("name", "index", "bestfit", "uncertainty")}
    parts = dict.fromkeys(("total", "global_systematic", "global_statistical", "frozen_systematic", "frozen_statistical"), 0.2)
    return {"poi": poi, "ranking": rows, "groups": [], "breakdown": parts, "warnings": [], "converged": True, "complete": True}


def scan(name="mu"):
    values = [-1 + 0.2 * i for i in range(21)]
    intervals = [{"parameter": name, "cl": cl, "bestfit": 1.0, "down": -n * 0.5, "up": n * 0.5} for n, cl in ((1, 0.6826894921370859), (2, 0.9544997361036416))]
    rises = [((value - 1) / 0.5) ** 2 for value in values]
    rises[0] = None
    return {
        "parameter": name,
        "values": values,
        "bestfit": 1.0,
        "uncertainty": 0.5,
        "twice_delta_nll": rises,
        "outcomes": ["stalled", *["converged"] * 20],
        "intervals": intervals,
        "warnings": [],
        "converged": True,
        "complete": True,
    }


def limit(name="mu"):
    tested = [{"mu": 0.5 * i, "CLs_obs": 0.9 / 2**i, "CLs_exp": [0.4**i * 0.5, 0.5**i * 0.7, 0.6**i, 0.7**i, 0.8**i]} for i in range(1, 8)]
    poi = {"name": name, "index": 0, "bestfit": 1.0}
    values = {"observed": 2.1, "expected": [0.8, 1.1, 1.6, 2.3, 3.2], "level": 0.05, "test_stat": "qtilde"}
    return {"poi": poi, **values, "range": [0.0, 10.0], "tested": tested, "warnings": [], "converged": True}


def inspect(of):
    channels = [[one["channel"], len(one["data"])] for one in of["yields"]["channels"]]
    samples = [sample["sample"] for sample in of["yields"]["channels"][0]["prefit"]["samples"]]
    systematics = [[name, "constrained_by_normal", ["normsys"]] for name in of["fit"]["par_names"]]
    return {"channels": channels, "samples": samples, "systematics": systematics, "summary": {"bins": 12, "channels": len(channels)}}


def check():
    message = "this histosys moves the yield of `ttbar` to the same side"
    place = {"channel": "region_0", "sample": "ttbar", "modifier": "JES_0"}
    finding = {"severity": "warning", "code": "one_sided", "message": message, **place}
    note = {"severity": "note", "code": "no_effect", "message": "this normsys changes nothing", "modifier": "JER_1"}
    return {"findings": [finding, note], "n_errors": 0, "n_warnings": 1, "n_notes": 1, "warnings": []}


def minima(of):
    best = of["fit"]["bestfit"]
    other = [*best[:3], *(-value for value in best[3:])]
    rows = []
    for depth, values in ((0.0, best), (2.4, other)):
        poi = {"name": "mu", "index": 0, "bestfit": values[0]}
        rows.append({"twice_nll": 100.0 + depth, "depth": depth, "poi": poi, "found_by": "a random start", "n_starts": 3, "bestfit": values})
    return {"minima": rows}


def everything(**options):
    """The arguments of `compose.report_data` with every part."""
    of = report(**options)
    gof = of["goodness_of_fit"] | {"converged": True}
    parts = {"inspect": inspect(of), "check": check(), "gof": gof, "fit": minima(of)}
    return {"report": of, **parts, "ranking": [ranking(of)], "scans": [scan()], "limits": [limit()]}
