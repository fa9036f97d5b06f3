"""The analysis of run.sh in Python, with figures: the same numbers.

    python make_histograms.py && python analysis.py [FOLDER]    # in the folder of histograms.root

`run` asks for every result, `draw` makes the figures of them.
"""

import sys
from pathlib import Path

import nextstat
import nextstat.build
import numpy

HERE = Path(__file__).resolve().parent
GROUPS = {"jets": ["JES", "JER"], "theory": ["*_theory", "*_scale", "*_generator"], "MC": "staterror_*"}


def blinded(model):
    """What is known before the data of the signal region are."""
    control = nextstat.fit(model, fit_channels="CR_*", fixed={"mu": 0.0})
    asimov = nextstat.asimov_data(model, {"mu": 0.0}, fit=control)
    return {
        "cr": control,
        "validation": nextstat.goodness_of_fit(model, fit=control, fit_channels="VR"),
        "prediction": nextstat.yields(model, fit=control, blind="SR"),
        "blinded": nextstat.report(model, fit=control, blind="SR", mask="CR_*"),
        "expected": nextstat.upper_limit(model, data=asimov),
    }


def unblinded(model):
    """What the data say."""
    best = nextstat.fit(model, minos="mu")
    return {
        "fit": best,
        "gof": nextstat.goodness_of_fit(model),
        "ranking": nextstat.ranking(model, fit=best, groups=GROUPS),
        "scan": nextstat.profile_scan(model, numpy.linspace(0, 3, 7)),
        "significance": nextstat.significance(model),
        "limit": nextstat.upper_limit(model),
        "yields": nextstat.yields(model, groups={"others": ["diboson", "fakes"]}),
        "toys": nextstat.hypotest_toys(model, test_stat="q0", n_toys=10000, n_toys_b=1000, seed=1),
    }


def run(config=HERE / "config.yml"):
    """Builds the workspace of histograms.root, and returns the model and all results by name."""
    built = nextstat.build.build(config)
    print(built.summary())
    model = built.model()
    results = {"check": nextstat.check(model, blind="SR"), **blinded(model), **unblinded(model)}
    return model, results


def draw(model, results, folder="."):
    """Writes a PNG of each figure to `folder`."""
    import nextstat.plot as plot

    edges = {"SR": numpy.linspace(200, 1000, 9)}
    options = {"edges": edges, "signal": "signal", "xlabel": "mass [GeV]"}
    after = nextstat.yields(model, fit=results["fit"])
    grid = [nextstat.hypotest(model, mu) for mu in numpy.linspace(0, 3, 31)]
    figures = {
        "blinded": plot.data_mc(results["prediction"], "SR", **options)[0],
        "prefit": plot.data_mc(after, "SR", fit="prefit", **options)[0],
        "postfit": plot.data_mc(after, "SR", **options)[0],
        "pulls": plot.pulls(results["fit"]),
        "ranking": plot.ranking(results["ranking"], top=12),
        "scan": plot.scan(nextstat.profile_scan(model)),
        "brazil": plot.brazil(grid, results["limit"]),
    }
    for name, axes in figures.items():
        axes.figure.savefig(Path(folder) / f"{name}.png", dpi=100)
    return figures


def main(folder="."):
    model, results = run()
    best, limit, significance = results["fit"], results["limit"], results["significance"]
    interval = best.minos[0]
    print(f"validation region: p = {results['validation'].p_value:.3f}")
    print(f"expected limit before unblinding: {results['expected'].expected[2]:.3f}")
    print(f"mu = {best.value('mu'):.2f} {interval['down']:+.2f} {interval['up']:+.2f}")
    print(f"significance {significance.Z_obs:.2f}, p = {significance.p0_obs:.4f}, by toys {results['toys'].CLsb_obs:.4f}")
    print(f"limit {limit.observed:.3f}, expected {limit.expected[2]:.3f}")
    draw(model, results, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
