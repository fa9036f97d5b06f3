"""Draws the figures of the front page and of the tutorial on histograms, from the examples.

    python docs/assets/figures.py    # with the extra `plot`
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "nextstat"
matplotlib.rcParams["font.size"] = 9

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
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.9), width_ratios=(1, 1.15))
    tests = [nextstat.hypotest(model, mu) for mu in numpy.linspace(0, 5, 81)]
    nextstat.plot.brazil(tests, nextstat.upper_limit(model), ax=left)
    left.set_xlabel("signal strength")
    nextstat.plot.ranking(nextstat.ranking(model), top=8, ax=right)
    figure.tight_layout()
    save(figure, "front")


def tutorial():
    """The figures that the code of the tutorial draws."""
    page = (ROOT / "docs/tutorials/histograms.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict = {"__name__": "page"}
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as work, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(work)
        for block in blocks:
            exec(compile(block, "histograms.md", "exec"), names)
        os.chdir(folder)
    save(names["main"].figure, "histograms-postfit")
    save(names["axes"].figure, "histograms-brazil")
    save(nextstat.plot.ranking(names["ranking"], top=10).figure, "histograms-ranking")


if __name__ == "__main__":
    front()
    tutorial()
