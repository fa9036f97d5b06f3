"""Draws the figures of the documentation from the examples, the same to the byte each time.

    python docs/assets/figures.py    # in the root of the repository, with the extra `plot`
"""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "nextstat"
matplotlib.rcParams["font.size"] = 9

import numpy  # noqa: E402

import nextstat  # noqa: E402
import nextstat.plot  # noqa: E402

HERE = Path(__file__).parent


def main():
    """Writes the figure of the front page."""
    model = nextstat.load_workspace("examples/shapes.json")
    figure, (left, right) = matplotlib.pyplot.subplots(1, 2, figsize=(10, 3.9), width_ratios=(1, 1.15))
    tests = [nextstat.hypotest(model, mu) for mu in numpy.linspace(0, 5, 81)]
    nextstat.plot.brazil(tests, nextstat.upper_limit(model), ax=left)
    left.set_xlabel("signal strength")
    nextstat.plot.ranking(nextstat.ranking(model), top=8, ax=right)
    figure.tight_layout()
    figure.savefig(HERE / "front.svg", metadata={"Date": None}, transparent=False)


if __name__ == "__main__":
    import matplotlib.pyplot

    main()
