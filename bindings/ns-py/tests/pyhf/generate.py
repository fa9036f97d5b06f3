"""What pyhf makes of a few models: the reference for the tests beside this file.

    python generate.py > reference.json        (needs pyhf 0.7.6)
"""

import datetime
import json
import logging
import sys

import numpy
import pyhf
from specifications import OBSERVED, SPECS, data_of, points_of

logging.disable(logging.CRITICAL)


def case(name):
    model = pyhf.Model(SPECS[name])
    data = data_of(model, name)
    config = model.config
    points = points_of(model)
    pars, twice_nll = pyhf.infer.mle.fit(data, model, return_fitted_val=True)
    cls, tails, band = pyhf.infer.hypotest(0.7, data, model, return_tail_probs=True, return_expected_set=True)
    discovery = pyhf.infer.hypotest(0.0, data, model, test_stat="q0")
    return {
        "par_names": config.par_names,
        "parameters": config.parameters,
        "modifiers": config.modifiers,
        "auxdata": config.auxdata,
        "auxdata_order": config.auxdata_order,
        "init": config.suggested_init(),
        "bounds": config.suggested_bounds(),
        "fixed": config.suggested_fixed(),
        "points": points.tolist(),
        "expected_data": [model.expected_data(point).tolist() for point in points],
        "logpdf": [float(model.logpdf(point, data)[0]) for point in points],
        "by_sample": model.main_model.expected_data(points[0], return_by_sample=True).tolist(),
        "bestfit": pars.tolist(),
        "twice_nll": float(twice_nll),
        "cls": float(cls),
        "tails": [float(tail) for tail in tails],
        "band": [float(value) for value in band],
        "p0": float(discovery),
    }


if __name__ == "__main__":
    birth = {
        "tool": "pyhf",
        "version": pyhf.__version__,
        "numpy": numpy.__version__,
        "python": sys.version.split()[0],
        "command": "python generate.py > reference.json",
        "date": datetime.date.today().isoformat(),
    }
    json.dump({"birth": birth, "cases": {name: case(name) for name in OBSERVED}}, sys.stdout, indent=1)
    print()
