"""ROOT 6: HistFactory models fitted by Minuit2, and the calculators of RooStats with their usual
settings."""
import json
import re
import warnings

warnings.filterwarnings("ignore")
import ROOT  # noqa: E402

from histfactory import histfactory_workspace  # noqa: E402
from measuring import growing, one_by_one, repeat, timed  # noqa: E402

GRID = 20  # points of the scan that an upper limit is interpolated from


def usual_name(name):
    """A parameter's name as pyhf has it."""
    name = re.sub(r"^gamma_stat_(.*)_bin_(\d+)$", r"staterror_\1[\2]", name)
    return re.sub(r"^gamma_(.*)_bin_(\d+)$", r"\1[\2]", name).removeprefix("alpha_")


class Engine:
    def __init__(self, workspace, threads):
        ROOT.gErrorIgnoreLevel = ROOT.kFatal
        ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
        ROOT.RooRealVar.enableSilentClipping()  # RooStats moves parameters beyond their ranges while it throws toys
        ROOT.Math.MinimizerOptions.SetDefaultMinimizer("Minuit2", "Migrad")
        ROOT.RooStats.AsymptoticCalculator.SetPrintLevel(-1)
        self.workspace = histfactory_workspace(ROOT, json.loads(workspace.read_text()))
        self.config = self.workspace.obj("ModelConfig")
        self.pdf, self.observed = self.config.GetPdf(), self.workspace.data("obsData")
        self.poi = self.config.GetParametersOfInterest().first()
        self.parameters = self.pdf.getParameters(self.observed)
        self.start = self.parameters.snapshot()
        self.version, self.threads = f"ROOT {ROOT.__version__}, Minuit2", 1

    def nll(self, data):
        return self.pdf.createNLL(data, ROOT.RooFit.GlobalObservables(self.config.GetGlobalObservables()))

    def minimize(self, nll, with_hesse=False):
        """Whether Migrad, and Hesse if wanted, ended well."""
        minimizer = ROOT.RooMinimizer(nll)
        minimizer.setPrintLevel(-1)
        status = [minimizer.minimize("Minuit2", "Migrad")] + ([minimizer.hesse()] if with_hesse else [])
        return not any(status)

    def fit(self, setting):
        nll = self.nll(self.observed)
        at_start = nll.getVal()

        def work():
            self.parameters.assign(self.start)
            return self.minimize(nll, with_hesse=True)

        seconds, n, converged = repeat(work)
        note = "with Hesse" + ("" if converged else "; Migrad or Hesse did not end well")
        return dict(seconds=seconds, n=n, above_start=2 * (nll.getVal() - at_start), note=note)

    def hypotheses(self):
        """Models of the background alone and of the tested signal."""
        models = []
        for name, mu in (("background", 0.0), ("tested", 1.0)):
            model = self.config.Clone(name)
            self.poi.setVal(mu)
            model.SetSnapshot(ROOT.RooArgSet(self.poi))
            models.append(model)
        return models

    def asymptotic(self, hypotheses):
        """A calculator; `hypotheses` must live as long as it does."""
        calculator = ROOT.RooStats.AsymptoticCalculator(self.observed, *hypotheses)
        calculator.SetOneSided(True)
        calculator.SetQTilde(True)
        return calculator

    def cls(self, setting):
        hypotheses = self.hypotheses()

        def work():
            self.parameters.assign(self.start)
            result = self.asymptotic(hypotheses).GetHypoTest()
            return result.NullPValue(), result.AlternatePValue()

        seconds, n, p = repeat(work)
        expected = ROOT.RooStats.AsymptoticCalculator.GetExpectedPValues
        band = [float(expected(*p, sigma, True)) for sigma in (-2, -1, 0, 1, 2)]
        return dict(seconds=seconds, n=n, observed=p[0] / p[1], band=band)

    def limit(self, setting):
        hypotheses = self.hypotheses()
        calculator = self.asymptotic(hypotheses)

        def work():
            inverter = ROOT.RooStats.HypoTestInverter(calculator)
            inverter.SetConfidenceLevel(0.95)
            inverter.UseCLs(True)
            inverter.SetVerbose(-1)
            inverter.SetFixedScan(GRID, setting["highest"] / GRID, setting["highest"])
            return inverter.GetInterval()

        seconds, result = timed(work)
        band = [result.GetExpectedUpperLimit(sigma) for sigma in (-2, -1, 0, 1, 2)]
        note = f"interpolated from {GRID} points up to {setting['highest']:.3g}"
        return dict(seconds=seconds, observed=result.UpperLimit(), band=band, note=note)

    def scan(self, setting):
        nll = self.nll(self.observed)

        def at(mu):
            self.poi.setVal(mu)
            self.poi.setConstant(True)
            self.minimize(nll)
            self.poi.setConstant(False)
            return nll.getVal()

        def free():
            self.minimize(nll)
            return nll.getVal()

        free_seconds, lowest = timed(free)
        seconds, curve = one_by_one(setting["values"], at, setting["budget"])
        return dict(seconds=free_seconds + seconds, units=len(curve), curve=[2 * (value - lowest) for value in curve])

    def ranking(self, setting):
        nll = self.nll(self.observed)
        free_seconds, _ = timed(lambda: self.minimize(nll, with_hesse=True))
        best = self.parameters.snapshot()
        poi_name, poi_best = self.poi.GetName(), self.poi.getVal()
        nuisance = [p for p in self.parameters if not p.isConstant() and p.GetName() != poi_name and p.getError() > 0]

        def shifted(pair):
            parameter, sign = pair
            self.parameters.assign(best)
            parameter.setVal(parameter.getVal() + sign * parameter.getError())
            parameter.setConstant(True)
            self.minimize(nll)
            parameter.setConstant(False)
            return self.poi.getVal() - poi_best

        pairs = [(parameter, sign) for parameter in nuisance for sign in (-1, 1)]
        seconds, found = one_by_one(pairs, shifted, setting["budget"])
        names = [usual_name(parameter.GetName()) for parameter in nuisance]
        impacts = {name: found[2 * i : 2 * i + 2] for i, name in enumerate(names[: len(found) // 2])}
        note = "" if len(found) == len(pairs) else f"stopped after {setting['budget']:g} s of {len(pairs)} refits"
        return dict(seconds=free_seconds + seconds, units=len(found), impacts=impacts, note=note)

    def toys(self, setting):
        self.minimize(self.nll(self.observed))
        truth = self.parameters.snapshot()
        auxiliary, counts = self.config.GetGlobalObservables(), self.config.GetObservables()

        def one(_):
            self.parameters.assign(truth)
            auxiliary.assign(self.pdf.generateSimGlobal(auxiliary, 1).get(0))
            toy = self.pdf.generate(counts, ROOT.RooFit.AllBinned(), ROOT.RooFit.Extended())
            return self.minimize(self.nll(toy))

        seconds, converged = one_by_one(range(1000), one, setting["budget"])
        return dict(seconds=seconds, units=len(converged), n_failed=converged.count(False))

    def hypotest_toys(self, setting):
        background, tested = self.hypotheses()

        def test(n):
            calculator = ROOT.RooStats.FrequentistCalculator(self.observed, background, tested)
            calculator.SetToys(n, n)
            statistic = ROOT.RooStats.ProfileLikelihoodTestStat(tested.GetPdf())
            statistic.SetOneSided(True)
            statistic.SetPrintLevel(-1)
            sampler = calculator.GetTestStatSampler()
            sampler.SetTestStatistic(statistic)
            sampler.SetGenerateBinned(True)
            result = calculator.GetHypoTest()
            return result.NullPValue(), result.AlternatePValue()

        n, seconds, tails = growing(test, setting["budget"])
        return dict(seconds=seconds, units=2 * n, observed=tails[0] / tails[1] if tails[1] > 0 else None, tails=tails)
