"""Draws the figures of the front page, of two tutorials and of the pages on figures, on building
workspaces and on the scores of torchless, from the examples.

    python docs/assets/figures.py    # with the extras `plot` and `build`, and hist
"""

import contextlib
import io
import os
import re
import runpy
import shutil
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "nextstat"

import matplotlib.pyplot as plt  # noqa: E402
import nextstat  # noqa: E402
import nextstat.plot  # noqa: E402
import numpy  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "docs/assets"


def save(figure, name):
    """Writes a figure that has the same bytes each time."""
    figure.savefig(ASSETS / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight")


def front():
    """CLs with the limit, and a ranking."""
    model = nextstat.load_workspace(ROOT / "examples/shapes.json")
    tests = [nextstat.hypotest(model, mu) for mu in numpy.linspace(0, 5, 41)]
    with nextstat.plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), width_ratios=(1, 1.15), layout="constrained")
        nextstat.plot.ranking(nextstat.ranking(model), top=8, ax=right)
        nextstat.plot.brazil(tests, nextstat.upper_limit(model), xlabel="signal strength", ax=left)
        save(figure, "front")


def names_of(page, images=None):
    """What the code of a page leaves in its names; `images` is a folder for those that it saves."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    names: dict = {"__name__": "page"}
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(work)
        shutil.copytree(ROOT / "examples", "examples")
        for block in blocks:
            exec(compile(block, page, "exec"), names)
        for path in Path().glob("*.png") if images else ():
            shutil.copy(path, images)
        os.chdir(folder)
    return names


def tutorial():
    """The figures that the code of the tutorial draws."""
    names = names_of("tutorials/histograms.md")
    save(names["main"].figure, "histograms-postfit")
    save(names["axes"].figure, "histograms-brazil")
    save(nextstat.plot.ranking(names["ranking"], top=10).figure, "histograms-ranking")


def page_of_figures():
    """The figures that the code of the page on figures saves."""
    names_of("how-to/figures.md", ROOT / "docs/plots")


def build():
    """Templates of a systematic of the example, as a report shows them."""
    from nextstat.build.reports import draw_pair

    pairs = names_of("how-to/build.md")["built"].pairs
    wanted = next(pair for pair in pairs if (pair.region, pair.sample, pair.systematic) == ("signal_region", "ttbar", "JES"))
    save(draw_pair(wanted), "build-templates")


def results_of_the_analysis():
    """The model of the worked analysis, and its results by name."""
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(ROOT / "examples/analysis/make_histograms.py"))["main"](work)
        os.chdir(work)
        results = runpy.run_path(str(ROOT / "examples/analysis/analysis.py"))["run"]()
        os.chdir(folder)
    return results


def analysis():
    """The signal region of the worked analysis, blinded and unblinded, its ranking and limit."""
    model, results = results_of_the_analysis()
    options = {"edges": {"SR": numpy.linspace(200, 1000, 9)}, "signal": "signal", "xlabel": "mass [GeV]"}
    shown = (results["prediction"], nextstat.yields(model, fit=results["fit"]))
    with nextstat.plot.style():
        figure, axes = plt.subplots(2, 2, figsize=(11, 5.2), height_ratios=(3, 1), sharex="col", layout="constrained")
        for column, yields in enumerate(shown):
            nextstat.plot.data_mc(yields, "SR", ax=tuple(axes[:, column]), **options)
        save(figure, "analysis-regions")
    tests = [nextstat.hypotest(model, mu) for mu in numpy.linspace(0, 3, 31)]
    with nextstat.plot.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), width_ratios=(1.15, 1), layout="constrained")
        nextstat.plot.ranking(results["ranking"], top=8, ax=left)
        nextstat.plot.brazil(tests, results["limit"], ax=right)
        save(figure, "analysis-results")


def tagger():
    """Scores of a million jets and a limit, by both packages; minutes."""
    try:
        import torchless
    except ImportError:
        print("note: tagger-limit.svg is not drawn: the package torchless is not installed")
        return
    print(f"torchless {torchless.__version__}: tagger-limit.svg")
    folder = os.getcwd()
    os.chdir(ROOT / "examples/tagger")
    runpy.run_path("limit.py")["main"](["--figure", str(ASSETS / "tagger-limit.svg")])
    os.chdir(folder)


if __name__ == "__main__":
    front()
    tutorial()
    page_of_figures()
    build()
    analysis()
    tagger()
