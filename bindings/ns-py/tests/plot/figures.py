"""The figures whose looks are tested, by name: each made of the results of an example."""

from functools import cache
from pathlib import Path

import nextstat

EXAMPLES = Path(__file__).parents[4] / "examples"
BASELINE = Path(__file__).parent / "baseline"
SIGNALS = (300, 500, 800)
GRID = [0.25 * i for i in range(21)]


@cache
def shapes():
    return nextstat.load_workspace(EXAMPLES / "shapes.json")


@cache
def fit():
    return nextstat.fit(shapes())


@cache
def ranking():
    return nextstat.ranking(shapes())


@cache
def yields():
    return nextstat.yields(shapes())


@cache
def tests():
    return [nextstat.hypotest(shapes(), mu) for mu in GRID]


@cache
def limit():
    return nextstat.upper_limit(shapes())


@cache
def limits():
    background = EXAMPLES / "background.json"
    names = [f"signal_{mass}" for mass in SIGNALS]
    models = [nextstat.load_workspace(background, patchset=EXAMPLES / "signals.json", patch_name=name) for name in names]
    return [nextstat.upper_limit(model) for model in models]


@cache
def scan():
    return nextstat.profile_scan(shapes())


@cache
def grid():
    return nextstat.profile_scan(shapes(), parameter=("mu", "norm_ttbar"), points=15)


@cache
def contours():
    return nextstat.contours(shapes(), ("mu", "norm_ttbar"))


@cache
def toys():
    return nextstat.hypotest_toys(nextstat.load_workspace(EXAMPLES / "simple.json"), 2.0, n_toys=2000, seed=1)


@cache
def exclusion():
    grid = nextstat.every_patch(EXAMPLES / "background.json", EXAMPLES / "plane.json", nextstat.hypotest)
    return nextstat.exclusion(grid, "m_gluino", "m_lsp")


def figures():
    """Each figure's name, and what draws it and returns it."""
    from nextstat import plot

    edges = {"signal_region": [0, 50, 100, 200, 400]}
    return {
        "pulls": lambda: plot.pulls(fit()).figure,
        "ranking": lambda: plot.ranking(ranking()).figure,
        "ranking_global": lambda: plot.ranking(ranking(), impacts="global", top=8).figure,
        "correlation": lambda: plot.correlation(fit()).figure,
        "scan": lambda: plot.scan(scan()).figure,
        "grid": lambda: plot.scan(grid()).figure,
        "contours": lambda: plot.contours(contours()).figure,
        "prefit": lambda: plot.data_mc(yields(), "signal_region", fit="prefit", signal="signal")[0].figure,
        "postfit": lambda: plot.data_mc(yields(), "signal_region", edges=edges, signal="signal", xlabel="mass")[0].figure,
        "logarithmic": lambda: plot.data_mc(yields(), "control_region", log=True, bins=["a", "b", "c"])[0].figure,
        "brazil": lambda: plot.brazil(tests(), limit()).figure,
        "exclusion": lambda: plot.exclusion(exclusion(), forbidden=True).figure,
        "limits": lambda: plot.limits(SIGNALS, limits(), theory=[3.0, 1.5, 1.0]).figure,
        "toys": lambda: plot.toys(toys()).figure,
    }


def write(figure, path):
    """Saves a figure without its text and legends, which no two versions of the fonts draw alike,
    and with its axes where they are without a layout.
    """
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.ticker import NullFormatter

    for axes in figure.findobj(lambda artist: hasattr(artist, "xaxis")):
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(NullFormatter())
            axis.set_minor_formatter(NullFormatter())
    for legend in figure.findobj(Legend):
        legend.remove()
    for text in figure.findobj(Text):
        text.set_text("")
    figure.set_layout_engine("none")
    figure.savefig(path, dpi=60, metadata={"Software": None})
