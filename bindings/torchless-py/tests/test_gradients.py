"""Gradients agree with those of PyTorch's autograd, and have the form of the inputs."""

import numpy as np
import pytest
import torchless
from conftest import FIXTURES, case
from test_encoders import awkward_forms, offsets_of, ragged

MODELS = ("mlp", "image", "bert_embeddings", "part", "part3")


def expected_gradients(name):
    with np.load(FIXTURES / f"{name}_gradients.npz") as archive:
        arrays = dict(archive)
    return arrays.pop("cotangent"), arrays


@pytest.fixture
def jet_gradients(jets):
    """Jets as `jets` has them, the model, the cotangent, and padded gradients."""
    path, padded, rows, counts = jets
    cotangent, _ = expected_gradients("part")
    model = torchless.Encoder(path)
    return model, padded, rows, counts, cotangent, model.gradients(padded, cotangents={"logits": cotangent}, mask="mask").inputs


def rows_of(padded, counts):
    return np.concatenate([jet[:, :count].T for jet, count in zip(padded, counts)])


@pytest.mark.parametrize("name", MODELS)
def test_gradients_agree_with_those_of_pytorch(name):
    path, inputs, _ = case(name)
    cotangent, expected = expected_gradients(name)
    for precision, most in (("single", 2e-4), ("double", 1e-6)):
        model = torchless.Encoder(path, precision=precision)
        found = model.gradients(inputs, cotangents={"logits": cotangent}, mask="mask" if "mask" in inputs else None)
        assert found.inputs.keys() == expected.keys()
        for key, value in expected.items():
            assert found.inputs[key].dtype == np.float64 and found.inputs[key].shape == value.shape
            # Of one event and one channel: those of momenta of one pair may be a million times
            # others, and the pair's mass is a difference of large numbers.
            rows = value.reshape(*value.shape[:2], -1)
            scale = np.maximum(np.abs(rows).max(axis=2, keepdims=True), 1e-6)
            assert (np.abs(found.inputs[key].reshape(rows.shape) - rows) / scale).max() < (max(most, 1e-5) if key == "v" else most)


def test_outputs_and_columns(jets):
    path, padded, _, _ = jets
    model = torchless.Encoder(path)
    plain = model.encode(padded, mask="mask")["logits"]
    for column in range(3):
        found = model.gradients(padded, column=column, mask="mask", threads=2, events_at_once=3)
        assert found.outputs["logits"].tobytes() == plain.tobytes()
        ones = np.zeros(plain.shape)
        ones[:, column] = 1
        other = model.gradients(padded, cotangents={"logits": ones}, mask="mask")
        assert all(found.inputs[name].tobytes() == other.inputs[name].tobytes() for name in ("x", "v"))
    assert repr(found) == "Gradients(logits; with respect to x, v)"


def test_ragged_gradients_have_the_bits_of_padded_ones(jet_gradients):
    model, _, rows, counts, cotangent, padded = jet_gradients
    found = model.gradients(ragged(rows, offsets_of(counts, np.int32)), cotangents={"logits": cotangent}, mask="mask").inputs
    for name in ("x", "v"):
        assert isinstance(found[name], torchless.Ragged)
        assert (found[name].offsets == offsets_of(counts)).all()
        assert found[name].content.tobytes() == rows_of(padded[name], counts).tobytes()


def test_awkward_gradients_have_the_form_of_their_input(jet_gradients):
    ak = pytest.importorskip("awkward")
    model, _, rows, counts, cotangent, padded = jet_gradients
    x, expected = ak.unflatten(rows["x"], counts), rows_of(padded["v"], counts)
    for layout, v in awkward_forms(ak, rows["v"], counts):
        if len(v) != len(counts):
            continue
        found = model.gradients({"x": x, "v": v}, cotangents={"logits": cotangent}, mask="mask").inputs
        assert ak.all(ak.num(found["v"]) == counts), layout
        assert ak.fields(found["v"]) == ak.fields(v), layout
        fields = ak.fields(v)
        flat = ak.flatten(found["v"])
        numbers = np.stack([ak.to_numpy(flat[field]) for field in fields], axis=1) if fields else ak.to_numpy(flat)
        assert numbers.tobytes() == expected.tobytes(), layout


def test_integers_have_no_gradient():
    path, inputs, _ = case("text17")
    found = torchless.Encoder(path).gradients(inputs)
    assert found.inputs == {} and found.outputs["logits"].shape == (4, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"column": 3}, "the output `logits` has 3 numbers of an event, and no column 3"),
        ({"output": "score"}, "the model has no output `score`; it has `logits`"),
        ({"cotangents": {"logits": np.ones((12, 2))}}, r"the shape \[\d+, 2\] for events whose output has"),
        ({"cotangents": {"logits": np.ones(3)}}, "and there are 12 events"),
        ({"cotangents": {"score": np.ones((12, 3))}}, "the model has no output `score`"),
        ({"cotangents": {"logits": np.ones((12, 3))}, "column": 1}, "both a column and cotangents"),
    ],
)
def test_targets_that_do_not_fit_are_errors(jets, options, message):
    path, padded, _, _ = jets
    with pytest.raises(torchless.InputError, match=message):
        torchless.Encoder(path).gradients(padded, mask="mask", **options)
