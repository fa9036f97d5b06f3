"""cabinetry's whole workflow on `nextstat.pyhf`, unmodified: templates, workspace, fit, ranking,
scan, limit, significance, yields, figures.

    python workflow.py shim|pyhf [--json FILE] [--figures DIR]

Run once with each; the numbers are compared by `run.py`.
"""

import argparse
import json
import sys
import time
import tempfile
from pathlib import Path

import numpy as np
from specifications import workspace


def numbers(name, cabinetry, figures):
    """What the steps return for the workspace `name`."""
    spec = workspace(name)
    model, data = cabinetry.model_utils.model_and_data(spec)
    results = {}
    fit = cabinetry.fit.fit(model, data, minos=["mu"], goodness_of_fit=True)
    results["fit"] = {"bestfit": fit.bestfit, "uncertainty": fit.uncertainty, "twice_nll": fit.best_twice_nll, "goodness": fit.goodness_of_fit, "minos": fit.minos_uncertainty["mu"]}
    custom = cabinetry.fit.fit(model, data, custom_fit=True)
    results["custom fit"] = {"bestfit": custom.bestfit, "twice_nll": custom.best_twice_nll}
    ranking = cabinetry.fit.ranking(model, data, fit_results=fit)
    results["ranking"] = {"labels": list(ranking.labels), "prefit_up": ranking.prefit_up, "postfit_up": ranking.postfit_up, "postfit_down": ranking.postfit_down}
    scan = cabinetry.fit.scan(model, data, "mu", par_range=(0.1, 2.5), n_steps=5)
    results["scan"] = {"values": scan.parameter_values, "delta_nlls": scan.delta_nlls}
    limit = cabinetry.fit.limit(model, data, bracket=(0.1, 4.9))
    results["limit"] = {"observed": limit.observed_limit, "expected": limit.expected_limit}
    significance = cabinetry.fit.significance(model, data)
    results["significance"] = {"observed": significance.observed_significance, "expected": significance.expected_significance}
    prefit = cabinetry.model_utils.prediction(model)
    postfit = cabinetry.model_utils.prediction(model, fit_results=fit)
    for label, prediction in (("prefit", prefit), ("postfit", postfit)):
        results[label] = {"yields": flat(prediction.model_yields), "uncertainty": flat(prediction.total_stdev_model_bins)}
    asimov = cabinetry.model_utils.model_and_data(spec, asimov=True)[1]
    results["asimov data"] = {"data": asimov}
    draw(cabinetry, figures, (model, data, prefit, postfit), (fit, ranking, scan, limit))
    cabinetry.tabulate.yields(postfit, data, save_tables=False)
    return results


def flat(value):
    return [number for item in value for number in flat(item)] if isinstance(value, (list, tuple, np.ndarray)) else [float(value)]


def draw(cabinetry, figures, predictions, results):
    model, data, prefit, postfit = predictions
    fit, ranking, scan, limit = results
    where = {"figure_folder": figures}
    for prediction in (prefit, postfit):
        cabinetry.visualize.data_mc(prediction, data, **where)
    cabinetry.visualize.pulls(fit, **where)
    cabinetry.visualize.correlation_matrix(fit, **where)
    cabinetry.visualize.ranking(ranking, **where)
    cabinetry.visualize.scan(scan, **where)
    cabinetry.visualize.limit(limit, **where)
    cabinetry.visualize.modifier_grid(model, **where)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("engine", choices=["shim", "pyhf"])
    parser.add_argument("--json", default=None)
    parser.add_argument("--figures", default=None)
    arguments = parser.parse_args()
    if arguments.engine == "shim":
        import alias  # noqa: F401
    import cabinetry
    import pyhf

    figures = arguments.figures or tempfile.mkdtemp()
    start = time.perf_counter()
    results = {name: numbers(name, cabinetry, Path(figures) / name) for name in ("correlated", "staterror", "two_channels", "lumi")}
    document = {"engine": pyhf.__name__, "seconds": time.perf_counter() - start, "figures": len(list(Path(figures).rglob("*.pdf"))), "results": results}
    text = json.dumps(document, default=lambda value: value.tolist())
    if arguments.json:
        Path(arguments.json).write_text(text)
    print(f"{document['engine']}: {document['seconds']:.1f} s, {document['figures']} figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
