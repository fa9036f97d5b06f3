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


def model_of_one_node(operator):
    """Returns an ONNX file with one node, `the node`, from `x` to `y`, four numbers each."""

    def field(number, body):
        return bytes([number << 3 | 2, len(body)]) + body

    def port(name):
        size = field(1, b"\x08\x04")
        return field(1, name) + field(2, field(1, b"\x08\x01" + field(2, size)))

    node = field(1, b"x") + field(2, b"y") + field(3, b"the node") + field(4, operator.encode())
    graph = field(1, node) + field(11, port(b"x")) + field(12, port(b"y"))
    return field(7, graph) + field(8, b"\x10\x11")


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
