"""The notebooks of the documentation run from top to bottom, and are stored without outputs."""

import json
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[3] / "docs/notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_is_stored_without_outputs(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path, examples_folder, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    document = nbformat.read(path, as_version=4)
    for module in document.metadata["nextstat"]["needs"]:
        pytest.importorskip(module)
    monkeypatch.setenv("NEXTSTAT_DATA", "no-such-folder")
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    client = nbclient.NotebookClient(document, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(examples_folder)}})
    client.execute()
