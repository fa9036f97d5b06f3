"""The figures whose look is tested, by name: each made of the results of an example."""

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
def background_fit():
    return nextstat.fit(shapes(), fixed={"mu": 0.0})


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
def region():
    grid = {"mu": [0.0, 0.7, 1.4, 2.1, 2.8, 3.5], "norm_ttbar": [0.7, 0.85, 1.0, 1.15, 1.3]}
    return nextstat.region(shapes(), grid, tolerance=0.3, seed=1)


@cache
def toys():
    return nextstat.hypotest_toys(nextstat.load_workspace(EXAMPLES / "simple.json"), 2.0, n_toys=2000, seed=1)


@cache
def exclusion():
    grid = nextstat.every_patch(EXAMPLES / "background.json", EXAMPLES / "plane.json", nextstat.hypotest)
    return nextstat.exclusion(grid, "m_gluino", "m_lsp")


@cache
def search():
    return nextstat.search(EXAMPLES / "spectrum.json", EXAMPLES / "bumps.json", toys=100)


@cache
def goodness():
    return nextstat.goodness_of_fit(shapes(), toys=200, seed=1)


# What is drawn in the examples, and how: the edges, and words for samples.
EDGES = {"signal_region": [0, 50, 100, 200, 400], "control_region": [0, 1, 2, 3]}
WORDS = {"ttbar": r"$t\bar{t}$", "wjets": "$W$ + jets", "signal": r"$Z'$ (500 GeV)", "signal_region": "Signal region"}
MASS = "$m_{jj}$ [GeV]"


def figures():
    """Each figure's name, and what draws it, given the arguments of its look, and returns it."""
    from nextstat import plot

    region = {"edges": EDGES, "signal": "signal", "xlabel": MASS, "labels": WORDS}
    masses = {"xlabel": r"$m(\tilde{g})$ [GeV]", "ylabel": r"$m(\tilde{\chi}^0_1)$ [GeV]"}
    theory = {"theory": {"Theory": [3.0, 1.5, 1.0]}, "theory_errors": {"Theory": [0.5, 0.3, 0.2]}}
    return {
        "pulls": lambda **look: plot.pulls(fit(), **look).figure,
        "pulls_several": lambda **look: plot.pulls({"B-only": background_fit(), "S+B": fit()}, groups={"Theory": "theory_*"}, **look).figure,
        "ranking": lambda **look: plot.ranking(ranking(), **look).figure,
        "ranking_global": lambda **look: plot.ranking(ranking(), impacts="global", top=8, **look).figure,
        "correlation": lambda **look: plot.correlation(fit(), **look).figure,
        "scan": lambda **look: plot.scan(scan(), **look).figure,
        "grid": lambda **look: plot.scan(grid(), **look).figure,
        "contours": lambda **look: plot.contours(contours(), **look).figure,
        "toys": lambda **look: plot.toys(toys(), **look).figure,
        "variations": lambda **look: plot.variations(shapes(), "signal_region", "jet_energy_scale", edges=EDGES["signal_region"], **look)[0].figure,
        "prefit": lambda **look: plot.data_mc(yields(), "signal_region", fit="prefit", signal="signal", **look)[0].figure,
        "postfit": lambda **look: plot.data_mc(yields(), "signal_region", goodness=goodness(), overlay=5, **region, **look)[0].figure,
        "logarithmic": lambda **look: plot.data_mc(yields(), "control_region", log=True, bins=["a", "b", "c"], blind="control_region[1]", **look)[0].figure,
        "regions": lambda **look: plot.regions(yields(), signal="signal", **look)[0].figure,
        "brazil": lambda **look: plot.brazil(tests(), limit(), **look).figure,
        "brazil_linear": lambda **look: plot.brazil(limit(), log=False, palette="accessible", **look).figure,
        "limits": lambda **look: plot.limits(SIGNALS, limits(), xlabel="$m$ [GeV]", **theory, **look).figure,
        "exclusion": lambda **look: plot.exclusion(exclusion(), forbidden=True, **masses, **look).figure,
        "search": lambda **look: plot.search(search(), xlabel=MASS, **look).figure,
        "gof": lambda **look: plot.gof(goodness(), labels=WORDS, **look).figure,
    }


#: What every figure is drawn with in the tests of its look.
LOOK = {"label": "Internal", "energy": 13.6, "luminosity": 140}
STYLES = ("plain", "ATLAS", "CMS", "LHCb")

#: Images that figures are compared with: every figure in one style, and one in every style.
IMAGES = {**{name: (name, "plain") for name in figures()}, **{f"postfit_{style}": ("postfit", style) for style in STYLES[1:]}}


def image(name, path):
    """Draws an image and writes it to `path`."""
    from matplotlib import pyplot

    figure, style = IMAGES[name]
    drawn = figures()[figure](style=style, **LOOK)
    drawn.savefig(path, dpi=55, metadata={"Software": None})
    pyplot.close(drawn)
