"""What packages on top of pyhf compute, unmodified, with pyhf and with `nextstat.pyhf`.

    python downstream.py smodels|spey|abcd shim|pyhf|plugin [--data DIR] [--json FILE]

`plugin` is spey with this package's own models, which need no pyhf. Run once with each; `run.py`
compares the numbers.
"""

import argparse
import json
import time
from pathlib import Path

#: A published likelihood (ATLAS-SUSY-2018-31) and a signal for it.
WORKSPACE = "atlas_sbottom_regionA.json"
SIGNAL = "atlas_sbottom_regionA.patch.sbottom_1300_205_60.json"


def smodels(data, engine):
    """SModelS's interface to pyhf: likelihoods, limits and CLs of a published likelihood with a
    signal in its signal regions.
    """
    from smodels.statistics.basicStats import NllEvalType
    from smodels.statistics.pyhfInterface import PyhfData, PyhfUpperLimitComputer

    workspace, patch = published(data)
    [yields] = (operation["value"]["data"] for operation in patch if operation["path"] == "/channels/0/samples/0")
    signals = {f"SR{i}": value for i, value in enumerate(yields)}
    regions = [{"smodels": f"SR{i}", "type": "SR", "pyhf": f"SR_meff[{i}]"} for i in range(len(yields))]
    regions += [{"smodels": None, "type": kind, "pyhf": f"{kind}tt_meff"} for kind in ("CR", "VR")]
    computer = PyhfUpperLimitComputer(PyhfData(signals, workspace, regions=regions, includeCRs=True))
    results = {}
    for kind in (NllEvalType.observed, NllEvalType.apriori):
        name = kind.name
        best = computer.nll_min(kind)
        results[f"{name} nll"] = [computer.nll(mu, kind) for mu in (0.0, 1.0)]
        results[f"{name} nll_min"] = best["nll_min"]
        results[f"{name} muhat"] = best["muhat"]
        assert best["sigma_mu"] > 0.0
        results[f"{name} CLs"] = computer.CLs(1.0, kind, "CLs")
        results[f"{name} limit"] = computer.getUpperLimitOnMu(kind)
    return results


def spey(data, engine):
    """spey: limits, confidence levels and fits of the same likelihood, and of simple counts."""
    import spey

    workspace, patch = published(data)
    if engine == "plugin":
        # The package is only found by its path here, and an entry point needs an installed one.
        from nextstat.spey import FullStatisticalModel as Full, UncorrelatedBackground as Simple
    else:
        from spey_pyhf.interface import FullStatisticalModel as Full, UncorrelatedBackground as Simple
    full = spey.StatisticalModel(Full(background_only_model=workspace, signal_patch=patch), "full")
    counts = {"signal_yields": [12.0, 11.0], "background_yields": [50.0, 52.0], "data": [51, 48], "absolute_uncertainties": [3.0, 7.0]}
    simple = spey.StatisticalModel(Simple(**counts), "simple")
    results = {}
    for name, model in (("full", full), ("simple", simple)):
        for expected in (spey.ExpectationType.observed, spey.ExpectationType.apriori):
            kind = f"{name} {expected.name}"
            results[f"{kind} limit"] = model.poi_upper_limit(expected=expected)
            results[f"{kind} CLs"] = model.exclusion_confidence_level(expected=expected)
            results[f"{kind} fit"] = [float(value) for value in model.maximize_likelihood(expected=expected)]
            results[f"{kind} nll"] = [float(model.likelihood(mu, expected=expected)) for mu in (0.5, 1.0)]
    return results


def abcd(data, engine):
    """abcd-pyhf: fits, scans and limits of an ABCD plane, observed and blinded."""
    import matplotlib

    matplotlib.use("agg")
    from abcd_pyhf import ABCD

    results = {}
    signal = {"A": 10, "B": 2, "C": 1, "D": 0.5}
    for name, observed in (("observed", {"A": 4, "B": 10, "C": 20, "D": 50}), ("blinded", {"B": 10, "C": 20, "D": 50})):
        plane = ABCD(observed, signal, 0.1, 0.2)
        results[f"{name} background fit"] = plane.bkg_only_fit()[:, 0].tolist()
        if name == "observed":
            # Blinded, the signal strength is not determined.
            results[f"{name} fit"] = plane.fit()[:, 0].tolist()
            results[f"{name} scan"] = [values.ravel().tolist() for values in plane.twice_nll()]
            limit, band = plane.upper_limit()
            results[f"{name} limit"] = [float(limit), *map(float, band)]
            plane.brazil_plot()
    return results


def published(data):
    return tuple(json.loads((Path(data) / name).read_text()) for name in (WORKSPACE, SIGNAL))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("package", choices=["smodels", "spey", "abcd"])
    parser.add_argument("engine", choices=["shim", "pyhf", "plugin"])
    parser.add_argument("--data", default=None, help="a folder with published workspaces")
    parser.add_argument("--json", default=None)
    arguments = parser.parse_args()
    if arguments.engine == "shim":
        import alias  # noqa: F401
    package = globals()[arguments.package]
    start = time.perf_counter()
    results = package(arguments.data, arguments.engine)
    document = {"engine": arguments.engine, "seconds": time.perf_counter() - start, "results": results}
    text = json.dumps(document, default=lambda value: value.tolist())
    if arguments.json:
        Path(arguments.json).write_text(text)
    print(f"{arguments.package}, {arguments.engine}: {document['seconds']:.1f} s")


if __name__ == "__main__":
    main()
