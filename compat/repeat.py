"""Every likelihood and every expectation that pyhf computes, computed again by `nextstat.pyhf` and
compared on the spot.

pyhf's `Model.logpdf` and `Model.expected_data` are replaced by functions that call both. Then pyhf
does what it is used for: it fits, tests and sets limits on models with every kind of modifier, and
on published ones where they are there.

    python repeat.py [--data DIR] [--json FILE]
"""

import argparse
import json
import logging
import sys
import warnings
import weakref
from pathlib import Path

import numpy as np
import pyhf
from specifications import SPECS, data_of, points_of

import nextstat
import nextstat.pyhf as ours

#: Relative, and absolute below 1.
TOLERANCE = 1e-10

#: Published models larger than this are evaluated but not fitted, larger than a third of it not
#: tested: pyhf would take hours.
MOST_PARAMETERS = 140


class Repeater:
    """Counts evaluations of one of pyhf's functions, and keeps the largest difference to ours."""

    def __init__(self, name):
        self.name, self.count, self.worst, self.at, self.not_a_number, self.beyond = name, 0, 0.0, None, 0, 0
        self.theirs = getattr(pyhf.Model, name)
        self.models = weakref.WeakKeyDictionary()

    def install(self):
        repeater = self

        def both(model, *args, **kwargs):
            result = repeater.theirs(model, *args, **kwargs)
            repeater.compare(model, result, args, kwargs)
            return result

        setattr(pyhf.Model, self.name, both)

    def ours(self, model):
        if model not in self.models:
            settings = {"modifier_settings": model.config.modifier_settings}
            self.models[model] = ours.Model(model.spec, poi_name=None, batch_size=model.batch_size, validate=False, **settings)
        return self.models[model]

    def compare(self, model, theirs, args, kwargs):
        mine = getattr(self.ours(model), self.name)(*args, **kwargs)
        self.count += 1
        theirs, mine = np.asarray(theirs, dtype=float), np.asarray(mine, dtype=float)
        valid = np.isfinite(theirs)
        allowed = TOLERANCE * np.maximum(np.abs(theirs[valid]), 1.0) + (self.rounding(args) if self.name == "logpdf" else 0.0)
        self.not_a_number += int((~valid).any())
        if np.isfinite(mine[~valid]).any():
            raise AssertionError(f"{self.name}: {mine} where pyhf has {theirs}")
        difference = np.abs(theirs - mine)[valid]
        self.beyond += int((difference > allowed).any())
        relative = np.max(difference / np.maximum(np.abs(theirs[valid]), 1.0), initial=0.0)
        if not relative <= self.worst:
            self.worst, self.at = float(relative), f"{len(model.config.par_names)} parameters, {model.config.nmaindata} bins"

    @staticmethod
    def rounding(args):
        """What pyhf's form of ln Pois loses: n ln λ, λ and ln Γ(n + 1) are rounded one by one
        before they cancel.
        """
        data = np.abs(np.asarray(args[1], dtype=float))
        return 4.0 * np.finfo(float).eps * float(np.sum(data * (1.0 + np.log1p(data))))

    def report(self):
        return {"function": f"Model.{self.name}", "evaluations": self.count, "beyond": self.beyond, "worst": self.worst, "at": self.at, "not finite in pyhf": self.not_a_number}


def use(model, data):
    """What pyhf is used for."""
    pyhf.infer.mle.fit(data, model)
    for statistic in ("qtilde", "q0"):
        pyhf.infer.hypotest(0.8, data, model, test_stat=statistic, return_expected_set=True)
    pyhf.infer.intervals.upper_limits.upper_limit(data, model, np.linspace(0.1, 4.0, 5))


def published(folder):
    """(model, data) of the workspaces in `folder`, smallest first."""
    for path in sorted(Path(folder).glob("**/*.json"), key=lambda path: path.stat().st_size):
        if path.stat().st_size > 3_000_000:
            continue
        try:
            workspace = pyhf.Workspace(json.loads(path.read_text()))
            model = workspace.model(poi_name=None)
            poi = workspace.get_measurement()["config"]["poi"]
            model.config.set_poi(poi if poi in model.config.parameters else None)
        except Exception:  # Other documents lie there too.
            continue
        yield path.name, model, workspace.data(model)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--data", default=None, help="a folder with published workspaces")
    parser.add_argument("--json", default=None, help="where to write the result")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    repeaters = [Repeater("logpdf"), Repeater("expected_data")]
    for repeater in repeaters:
        repeater.install()
    n_models = 0
    for name, spec in SPECS.items():
        for codes in (("code4", "code4p"), ("code1", "code0")):
            model = pyhf.Model(spec, modifier_settings={"normsys": {"interpcode": codes[0]}, "histosys": {"interpcode": codes[1]}})
            use(model, data_of(model, name))
            n_models += 1
    for _, model, data in published(arguments.data) if arguments.data else ():
        n_models += 1
        for point in points_of(model, 20):
            model.logpdf(point, data)
            model.expected_data(point)
        if model.config.npars <= MOST_PARAMETERS:
            is_small = model.config.npars <= MOST_PARAMETERS / 3 and model.config.poi_index is not None
            try:
                (use if is_small else lambda model, data: pyhf.infer.mle.fit(data, model))(model, data)
            except nextstat.NextstatError:
                # A ValueError too, but one of ours.
                raise
            except (pyhf.exceptions.FailedMinimization, pyhf.exceptions.InvalidModel, ValueError):
                pass
    reports = {"models": n_models, "functions": [repeater.report() for repeater in repeaters]}
    text = json.dumps(reports, indent=2)
    print(text)
    if arguments.json:
        Path(arguments.json).write_text(text)
    return 0 if all(repeater.beyond == 0 for repeater in repeaters) else 1


if __name__ == "__main__":
    sys.exit(main())
