"""What the tests share: the fixtures of torchless, which PyTorch made."""

import shutil
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "torchless/tests/encoders"
MODELS = ("mlp", "text13", "text17", "text20", "image", "part", "part3")


def case(name):
    """Returns the path of a model, its inputs, and PyTorch's outputs in double precision."""
    with np.load(FIXTURES / f"{name}.npz") as archive:
        arrays = dict(archive)
    return FIXTURES / f"{name}.onnx", arrays, arrays.pop("logits")


@pytest.fixture
def examples_folder(tmp_path, monkeypatch):
    """The working directory: a folder of its own with the models that the pages name."""
    for model in FIXTURES.glob("*.onnx"):
        shutil.copy(model, tmp_path)
    shutil.copy(FIXTURES / "part.onnx", tmp_path / "tagger.onnx")
    shutil.copy(FIXTURES / "part.npz", tmp_path / "jets.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def jets():
    """Jets: the model, padded inputs, rows of each particle, and numbers of particles."""
    path, padded, _ = case("part")
    counts = padded["mask"].sum(axis=(1, 2))
    rows = {}
    for name in ("x", "v"):
        rows[name] = np.concatenate([jet[:, :count].T for jet, count in zip(padded[name], counts)])
    return path, padded, rows, counts
