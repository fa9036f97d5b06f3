"""Figures without windows, closed after each test."""

import sys
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("mplhep")
matplotlib.use("agg")

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def closed():
    with matplotlib.style.context("default"):
        yield
    matplotlib.pyplot.close("all")
