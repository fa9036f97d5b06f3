"""The package that PyPI has under the name nextstat, version 0.10: another engine than this
repository's."""
import importlib.metadata

import nextstat

from measuring import growing, repeat


class Engine:
    def __init__(self, workspace, threads):
        nextstat.set_threads(threads)
        self.model = nextstat.from_pyhf(workspace.read_text())
        self.version, self.threads = f"PyPI nextstat {importlib.metadata.version('nextstat')}", threads

    def fit(self, setting):
        seconds, n, result = repeat(lambda: nextstat.fit(self.model))
        note = "" if result.converged else "did not converge"
        return dict(seconds=seconds, n=n, twice_nll=result.twice_nll, note=note)

    def cls(self, setting):
        seconds, n, observed = repeat(lambda: nextstat.hypotest(1.0, self.model))
        return dict(seconds=seconds, n=n, observed=observed, note="offers no band")

    def limit(self, setting):
        for lowest in (0.0, 0.01):
            work = lambda: nextstat.upper_limit(self.model, method="root", lo=lowest)
            try:
                seconds, n, (observed, band) = repeat(work)
            except ValueError:
                continue
            note = f"fails from 0, so begun at {lowest}" if lowest > 0 else ""
            return dict(seconds=seconds, n=n, observed=observed, band=list(band), note=note)
        return dict(note="no limit found")

    def scan(self, setting):
        seconds, n, result = repeat(lambda: nextstat.profile_scan(self.model, setting["values"]))
        curve = [2 * (point["nll_mu"] - result["nll_hat"]) for point in result["points"]]
        return dict(seconds=seconds, n=n, units=len(curve), curve=curve)

    def ranking(self, setting):
        seconds, n, entries = repeat(lambda: nextstat.ranking(self.model))
        impacts = {entry["name"]: [entry["delta_mu_down"], entry["delta_mu_up"]] for entry in entries}
        return dict(seconds=seconds, n=n, units=2 * len(entries), impacts=impacts)

    def toys(self, setting):
        truth = nextstat.fit(self.model).parameters
        n, seconds, fits = growing(lambda n: nextstat.fit_toys(self.model, truth, n_toys=n), setting["budget"])
        return dict(seconds=seconds, units=n, n_failed=sum(not one.converged for one in fits))

    def hypotest_toys(self, setting):
        test = lambda n: nextstat.hypotest_toys(1.0, self.model, n_toys=n, return_meta=True)
        n, seconds, result = growing(test, setting["budget"])
        failed = sum(result[key] for key in ("n_error_b", "n_error_sb", "n_nonconverged_b", "n_nonconverged_sb"))
        return dict(seconds=seconds, units=2 * n, observed=result["cls"], tails=[result["clsb"], result["clb"]], n_failed=failed)
