"""pyhf 0.7 with NumPy and Minuit; rankings by cabinetry, which is what pyhf's users take for
them."""
import json
import warnings

import cabinetry
import pyhf

from measuring import growing, one_by_one, repeat, timed


class Engine:
    def __init__(self, workspace, threads):
        warnings.filterwarnings("ignore")
        pyhf.set_backend("numpy", pyhf.optimize.minuit_optimizer(maxiter=10_000_000))
        document = pyhf.Workspace(json.loads(workspace.read_text()))
        self.model = document.model()
        self.observed = document.data(self.model)
        self.version, self.threads = f"pyhf {pyhf.__version__}, NumPy, Minuit", 1

    def fit(self, setting):
        work = lambda: pyhf.infer.mle.fit(self.observed, self.model, return_uncertainties=True, return_fitted_val=True)
        seconds, n, result = repeat(work)
        return dict(seconds=seconds, n=n, twice_nll=float(result[1]))

    def cls(self, setting):
        work = lambda: pyhf.infer.hypotest(1.0, self.observed, self.model, test_stat="qtilde", return_expected_set=True)
        seconds, n, (observed, band) = repeat(work)
        return dict(seconds=seconds, n=n, observed=float(observed), band=[float(p) for p in band])

    def limit(self, setting):
        seconds, n, (observed, band) = repeat(lambda: pyhf.infer.intervals.upper_limits.upper_limit(self.observed, self.model))
        return dict(seconds=seconds, n=n, observed=float(observed), band=[float(value) for value in band])

    def scan(self, setting):
        free = lambda: float(pyhf.infer.mle.fit(self.observed, self.model, return_fitted_val=True)[1])
        at = lambda mu: float(pyhf.infer.mle.fixed_poi_fit(mu, self.observed, self.model, return_fitted_val=True)[1])
        free_seconds, lowest = timed(free)
        seconds, curve = one_by_one(setting["values"], at, setting["budget"])
        return dict(seconds=free_seconds + seconds, units=len(curve), curve=[value - lowest for value in curve])

    def ranking(self, setting):
        seconds, result = timed(lambda: cabinetry.fit.ranking(self.model, self.observed))
        columns = [result.prefit_up, result.prefit_down, result.postfit_up, result.postfit_down]
        impacts = {name: [float(down), float(up)] for name, down, up in zip(result.labels, result.postfit_down, result.postfit_up)}
        note = f"by cabinetry {cabinetry.__version__}, pre-fit and post-fit"
        return dict(seconds=seconds, units=sum(int((column != 0).sum()) for column in columns), impacts=impacts, note=note)

    def toys(self, setting):
        truth = pyhf.infer.mle.fit(self.observed, self.model)

        def throw_and_fit(n):
            return [self.converges(toy, truth) for toy in self.model.make_pdf(pyhf.tensorlib.astensor(truth)).sample((n,))]

        n, seconds, converged = growing(throw_and_fit, setting["budget"])
        return dict(seconds=seconds, units=n, n_failed=converged.count(False))

    def converges(self, toy, truth):
        try:
            pyhf.infer.mle.fit(toy, self.model, init_pars=list(truth))
            return True
        except pyhf.exceptions.FailedMinimization:
            return False

    def hypotest_toys(self, setting):
        """Without the band, which pyhf 0.7 cannot make with today's NumPy."""

        def test(n):
            toys = dict(test_stat="qtilde", ntoys=n, track_progress=False)
            calculator = pyhf.infer.calculators.ToyCalculator(self.observed, self.model, **toys)
            observed = calculator.teststatistic(1.0)
            return [float(p) for p in calculator.pvalues(observed, *calculator.distributions(1.0))]

        n, seconds, (clsb, clb, cls) = growing(test, setting["budget"])
        return dict(seconds=seconds, units=2 * n, observed=cls, tails=[clsb, clb], note="without the band")
