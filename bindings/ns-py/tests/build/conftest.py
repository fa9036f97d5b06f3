"""A folder with the ROOT files of the small analysis, as the working directory."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def files(tmp_path, monkeypatch):
    pytest.importorskip("uproot")
    pytest.importorskip("hist")
    import analysis

    analysis.write_histograms(tmp_path / "histograms.root")
    analysis.write_trees(tmp_path / "trees.root")
    monkeypatch.chdir(tmp_path)
    return tmp_path
