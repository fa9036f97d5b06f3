"""Writes the images that the tests of figures compare with: `python tests/plot/make_baselines.py
[NAME ...]`. Look at them afterwards.
"""

import sys

import matplotlib
from figures import BASELINE, figures, write

matplotlib.use("agg")
BASELINE.mkdir(exist_ok=True)
for name, draw in figures().items():
    if name in sys.argv[1:] or len(sys.argv) == 1:
        with matplotlib.style.context("default"):
            write(draw(), BASELINE / f"{name}.png")
