"""Writes the images that the tests of figures compare with: `python tests/plot/make_baselines.py
[NAME ...]`. Look at them afterwards.
"""

import sys

import matplotlib

matplotlib.use("agg")

import figures as made

made.BASELINE.mkdir(exist_ok=True)
(made.BASELINE / "matplotlib").write_text(f"{matplotlib.__version__}\n", encoding="utf-8")
for name in sys.argv[1:] or made.IMAGES:
    made.image(name, made.BASELINE / f"{name}.png")
