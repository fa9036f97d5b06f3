"""Outputs agree with PyTorch's, and bits with bits, whatever the arrays look like."""

import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest
import torchless
from conftest import MODELS, case, model_of_one_node

OFFSET_TYPES = ("int32", "uint32", "int64")


def ragged(rows, offsets):
    return {name: torchless.Ragged(array, offsets) for name, array in rows.items()}


def offsets_of(counts, dtype=np.int64):
    return np.concatenate([[0], np.cumsum(counts)]).astype(dtype)


@pytest.mark.parametrize("name", MODELS)
def test_outputs_agree_with_double_precision_of_pytorch(name):
    path, inputs, expected = case(name)
    found = torchless.Encoder(path).encode(inputs)["logits"]
    assert found.dtype == np.float32 and found.shape == expected.shape
    # Single precision: the logits reach a few units.
    assert np.abs(found - expected).max() < 5e-6
    double = torchless.Encoder(path, precision="double").encode(inputs)["logits"]
    assert double.dtype == np.float64
    # Weights and constants are of single precision in the file.
    assert np.abs(double - expected).max() < 1e-7


@pytest.mark.parametrize("dtype", OFFSET_TYPES)
def test_ragged_events_have_the_bits_of_padded_ones(jets, dtype):
    path, padded, rows, counts = jets
    model = torchless.Encoder(path)
    expected = model.encode(padded)["logits"]
    assert (model.encode(padded, mask="mask")["logits"] == expected).all()
    events = ragged(rows, offsets_of(counts, dtype))
    for threads in (1, 2, 0):
        found = model.encode(events, mask="mask", threads=threads, events_at_once=5)["logits"]
        assert found.tobytes() == expected.tobytes()
    columns = {name: torchless.Ragged(dict(enumerate(array.T.astype(np.float64))), offsets_of(counts)) for name, array in rows.items()}
    assert model.encode(columns, mask="mask")["logits"].tobytes() == expected.tobytes()


def awkward_forms(ak, rows, counts):
    """Yields the particles of events as awkward arrays of many layouts."""
    whole = ak.unflatten(ak.from_numpy(rows), counts)
    yield "rows", whole
    yield "regular rows", ak.unflatten(ak.from_regular(ak.from_numpy(rows, regulararray=True), axis=1), counts)
    fields = {f"c{column}": ak.unflatten(np.ascontiguousarray(rows[:, column]), counts) for column in range(rows.shape[1])}
    yield "records", ak.zip(fields)
    yield "records of a structured array", ak.unflatten(ak.from_numpy(rows.copy().view([(name, rows.dtype) for name in fields])[:, 0]), counts)
    yield "a part of a longer array", ak.concatenate([whole[:3], whole])[3:]
    yield "events in an order", whole[np.argsort(counts)][np.argsort(np.argsort(counts))]
    yield "particles in an order", whole[ak.local_index(whole, axis=1)]
    yield "an option without missing values", ak.mask(whole, np.ones(len(whole), bool))
    yield "double precision", ak.values_astype(whole, np.float64)


def test_awkward_arrays_have_the_bits_of_padded_ones(jets):
    ak = pytest.importorskip("awkward")
    path, padded, rows, counts = jets
    model = torchless.Encoder(path)
    expected = model.encode(padded)["logits"].tobytes()
    forms = {name: dict(awkward_forms(ak, array, counts)) for name, array in rows.items()}
    for form in forms["x"]:
        found = model.encode({"x": forms["x"][form], "v": forms["v"][form]}, mask="mask")["logits"]
        assert found.tobytes() == expected, form
    # With a mask of their own, and one event at a time.
    mask = ak.unflatten(np.ones(counts.sum(), bool), counts)
    found = model.encode({"x": forms["x"]["rows"], "v": forms["v"]["records"], "mask": mask})["logits"]
    assert found.tobytes() == expected
    single = [model.encode({name: forms[name]["rows"][event : event + 1] for name in rows}, mask="mask")["logits"] for event in range(len(counts))]
    assert np.concatenate(single).tobytes() == expected
    # Events of one length are padded arrays of rows; those have another order of axes.
    same = ak.to_regular(ak.unflatten(np.arange(12), 4))
    text = torchless.Encoder(case("text17")[0])
    ids = text.encode({"ids": same, "mask": np.ones((3, 4), bool)})["logits"]
    assert ids.tobytes() == text.encode({"ids": np.arange(12).reshape(3, 4), "mask": np.ones((3, 4), bool)})["logits"].tobytes()


def test_awkward_arrays_are_not_copied(jets):
    ak = pytest.importorskip("awkward")
    from torchless._encoder import usable
    from torchless._ragged import of_awkward

    _, _, rows, counts = jets
    v = np.ascontiguousarray(rows["v"])
    events = ak.Array(ak.contents.ListOffsetArray(ak.index.Index64(offsets_of(counts)), ak.contents.NumpyArray(v)))
    taken = of_awkward("v", events)
    assert np.shares_memory(usable("v", taken.columns()[0], (np.float64, np.float32)), v)
    columns = [np.ascontiguousarray(column) for column in v.T]
    record = ak.contents.RecordArray([ak.contents.NumpyArray(column) for column in columns], ["px", "py", "pz", "energy"])
    events = ak.Array(ak.contents.ListOffsetArray(ak.index.Index32(offsets_of(counts, np.int32)), record))
    # A part of the events, too: offsets that do not begin at 0.
    taken = of_awkward("v", events[2:7])
    assert all(np.shares_memory(found, column) for found, column in zip(taken.columns(), columns))
    assert len(taken.offsets) == 6 and taken.offsets[0] > 0


def test_arrays_of_other_layouts_and_types_have_the_same_bits(jets):
    path, padded, _, _ = jets
    model = torchless.Encoder(path)
    expected = model.encode(padded)["logits"].tobytes()
    unaligned = {name: np.frombuffer(b"\0" + array.tobytes(), array.dtype, offset=1).reshape(array.shape) for name, array in padded.items()}
    others = {
        "Fortran's order": {name: np.asfortranarray(array) for name, array in padded.items()},
        "every other number": {name: np.repeat(array, 2, axis=2)[:, :, ::2] for name, array in padded.items()},
        "other bytes": {name: array.astype(array.dtype.newbyteorder(">")) for name, array in padded.items()},
        "unaligned": unaligned,
        "double precision": padded | {"x": padded["x"].astype(np.float64)},
        "lists": padded | {"mask": padded["mask"].tolist()},
        "truth values of other bytes": padded | {"mask": (padded["mask"].astype(np.uint8) * 7).view(bool)},
    }
    for name, inputs in others.items():
        assert model.encode(inputs, mask="mask")["logits"].tobytes() == expected, name


def test_ports_say_what_the_model_wants(jets):
    model = torchless.Encoder(jets[0])
    assert [port.name for port in model.inputs] == ["x", "v", "mask"]
    assert model.inputs[2] == torchless.Port("mask", "truth values", ("batch", 1, "particles"))
    assert model.outputs[0].name == "logits" and model.precision == "single"
    assert repr(model).endswith("x, v, mask -> logits)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "input `x`"),
        ({"y": np.zeros(3)}, "input `y`: the model has no such input"),
        ({"mask": np.ones((12, 1, 20))}, "input `mask`: it must be made of truth values"),
        ({"x": np.zeros((12, 6, 20), np.float32)}, r"input `x`: its shape is \[12, 6, 20\]"),
        ({"x": np.zeros((11, 5, 20), np.float32)}, "input `v`: it has 12 events, and other inputs have 11"),
        ({"x": np.zeros((12, 5, 20), np.complex64)}, "input `x`: arrays of complex64"),
        ({"x": torchless.Ragged(np.zeros((3, 5)), [0, 3])}, "input `v`: it has an axis of particles, and must be ragged"),
        ({"x": torchless.Ragged(np.zeros((3, 5)), [0.0, 3.0])}, "input `x`: its offsets are an array"),
        ({"x": torchless.Ragged(np.zeros((3, 4)), [0, 3])}, "input `x`: each particle has 4 numbers"),
        ({"x": torchless.Ragged(np.zeros((3, 5)), [0, 4])}, "input `x`: it has 3 particles, and its offsets end at 4"),
        ({"x": torchless.Ragged(np.zeros((3, 5)), [0, 2, 1])}, "input `x`: offset 2 is 1"),
        ({"x": torchless.Ragged(np.zeros((0, 1 << 40)), [0])}, "input `x`: each particle has 0 numbers"),
        ({"x": torchless.Ragged([np.float64(3)], [0])}, "input `x`: a column is a single number"),
        ({"x": torchless.Ragged([], [0, 1])}, "input `x`: each particle has 0 numbers"),
        ({"x": np.ma.masked_array(np.zeros((12, 5, 20)), np.ones((12, 5, 20)))}, "input `x`: it has masked values"),
        ({"x": torchless.Ragged([np.ma.masked_array([1.0, 2.0], [0, 1])], [0, 2])}, "input `x`: it has masked values"),
        ({"x": np.zeros((1 << 40, 5, 0))}, "input `x`: it has 1099511627776 events, and no numbers"),
    ],
)
def test_inputs_that_do_not_fit_are_errors(jets, change, message):
    path, padded, _, _ = jets
    with pytest.raises(torchless.InputError, match=message):
        torchless.Encoder(path).encode(padded | change)


def test_masks_and_indices_that_cannot_be_meant_are_errors(jets):
    path, padded, _, _ = jets
    model = torchless.Encoder(path)
    inverted = padded | {"mask": ~padded["mask"]}
    with pytest.raises(torchless.InputError, match="it is 1 only where all other inputs are 0"):
        model.encode(inverted, mask="mask")
    with pytest.raises(torchless.InputError, match="and no column 3"):
        model.gradients({name: array[:0] for name, array in padded.items()}, column=3, mask="mask")
    path, inputs, _ = case("text17")
    ids = inputs["ids"].copy()
    ids[2, 0] = 30
    with pytest.raises(torchless.InputError, match="input `ids`: event 2 leads to the index 30"):
        torchless.Encoder(path).encode(inputs | {"ids": ids})


def test_errors_have_hints(jets, tmp_path):
    path, padded, _, _ = jets
    model = torchless.Encoder(path)
    with pytest.raises(torchless.InputError, match="input `mask`: it is not given") as caught:
        model.encode({"x": padded["x"], "v": padded["v"]})
    assert caught.value.hint == "`Encoder.inputs` lists the inputs of a model"
    if sys.version_info >= (3, 11):
        assert caught.value.__notes__ == [f"hint: {caught.value.hint}"]
    with pytest.raises(FileNotFoundError) as caught:
        torchless.Encoder(tmp_path / "absent.onnx")
    assert caught.value.filename.endswith("absent.onnx")
    (tmp_path / "text.onnx").write_text("not a model")
    with pytest.raises(torchless.ModelError, match=r"text\.onnx"):
        torchless.Encoder(tmp_path / "text.onnx")
    with pytest.raises(torchless.InputError, match="`precision` is 'half'"):
        torchless.Encoder(path, precision="half")
    with pytest.raises(torchless.InputError, match="input `bias`: the model has no such input"):
        torchless.Encoder(path, fixed={"bias": [1.0]})


@pytest.mark.parametrize(("weights", "limit"), [("f32", 5e-6), ("f16", 1e-2), ("bf16", 1e-1), ("int8", 0.4)])
def test_weights_are_stored_as_asked_for(weights, limit):
    path, inputs, expected = case("part")
    model, plain = torchless.Encoder(path, weights=weights), torchless.Encoder(path)
    logits = model.encode(inputs, mask="mask")["logits"]
    assert abs(logits - expected).max() < limit
    assert (logits.tobytes() == plain.encode(inputs, mask="mask")["logits"].tobytes()) == (weights == "f32")
    assert model.weights == weights and model.is_approximate == (weights == "int8")
    assert ("(approximate)" in repr(model)) == (weights == "int8")
    assert (model.weight_bytes < plain.weight_bytes) == (weights != "f32")
    copy = pickle.loads(pickle.dumps(model))
    assert copy.weights == weights and copy.encode(inputs, mask="mask")["logits"].tobytes() == logits.tobytes()


def test_forms_of_weights_that_there_are_not_are_errors():
    path, _, _ = case("mlp")
    with pytest.raises(torchless.InputError, match="`weights` is 'int4'") as caught:
        torchless.Encoder(path, weights="int4")
    assert "bf16" in caught.value.hint
    with pytest.raises(torchless.InputError, match="for single precision only"):
        torchless.Encoder(path, weights="f16", precision="double")


@pytest.fixture
def emulated(jets):
    """The emulated device, which builds for tests have on POSIX."""
    try:
        torchless.Encoder(jets[0], device="emulated")
    except torchless.InputError:
        pytest.skip("this build has no emulation")
    return "emulated"


def test_a_device_computes_near_the_cpu_with_bits_of_its_own(jets, emulated):
    path, padded, rows, counts = jets
    model, here = torchless.Encoder(path, device=emulated), torchless.Encoder(path)
    assert (model.device, here.device, torchless.Encoder(path, device="cpu").device) == (emulated, "cpu", "cpu")
    assert f"device='{emulated}'" in repr(model) and "device" not in repr(here)
    found, expected = (one.encode(padded)["logits"] for one in (model, here))
    # Roundings of products and sums, which may be fused or not.
    assert 0 < np.abs(found - expected).max() < 2e-6 * np.abs(expected).max()
    for events in (padded, ragged(rows, offsets_of(counts))):
        for threads, events_at_once in ((1, 1), (2, 5)):
            again = model.encode(events, mask="mask", threads=threads, events_at_once=events_at_once)["logits"]
            assert again.tobytes() == found.tobytes()
    copy = pickle.loads(pickle.dumps(model))
    assert copy.device == emulated and copy.encode(padded)["logits"].tobytes() == found.tobytes()


def test_histograms_have_the_scores_of_a_device(jets, emulated):
    path, padded, _, _ = jets
    model = torchless.Encoder(path, device=emulated)
    edges = np.linspace(-10, 10, 41)
    histograms = torchless.ScoreHistograms(model, edges)
    histograms.fill(padded)
    expected, _ = np.histogram(model.encode(padded)["logits"][:, 0], edges)
    assert expected.sum() > 0 and (histograms.nominal.values() == expected).all()


def test_devices_that_there_are_not_are_errors(jets):
    path, _, _, _ = jets
    with pytest.raises(torchless.InputError, match="`device` is 'gpu'") as caught:
        torchless.Encoder(path, device="gpu")
    assert caught.value.hint.startswith('it is one of "auto", "cpu", "cuda", "metal", "opencl"')
    absent = "cuda" if sys.platform == "darwin" else "metal"
    with pytest.raises(torchless.DeviceError, match=f"{absent} cannot be used: ") as caught:
        torchless.Encoder(path, device=absent)
    assert caught.value.hint == '`device="cpu"` computes here'


def test_what_a_device_does_not_compute_is_an_error(jets, emulated, tmp_path):
    path, padded, _, _ = jets
    (tmp_path / "angle.onnx").write_bytes(model_of_one_node("Atan"))
    with pytest.raises(torchless.ModelError, match=r"node `the node` \(Atan\): devices have no kernel for it") as caught:
        torchless.Encoder(tmp_path / "angle.onnx", device=emulated)
    assert caught.value.hint == '`device="cpu"` computes it'
    on_the_cpu = f"encoders compute this on the CPU only, and not on {emulated}"
    with pytest.raises(torchless.InputError, match=f"double precision: {on_the_cpu}") as caught:
        torchless.Encoder(path, precision="double", device=emulated)
    assert caught.value.hint == '`device="cpu"` computes here'
    with pytest.raises(torchless.InputError, match=f"not stored in single precision: {on_the_cpu}"):
        torchless.Encoder(path, weights="f16", device=emulated)
    with pytest.raises(torchless.InputError, match=f"gradients: {on_the_cpu}"):
        torchless.Encoder(path, device=emulated).gradients(padded, mask="mask")


def test_awkward_arrays_that_do_not_fit_are_errors(jets):
    ak = pytest.importorskip("awkward")
    path, _, rows, counts = jets
    model = torchless.Encoder(path)
    v = ak.unflatten(rows["v"], counts)
    x = ak.unflatten(rows["x"], counts)
    missing = ak.mask(x, np.arange(len(counts)) > 0)
    wrong_ones = (
        (missing, "missing values"),
        (ak.Array([["a"]] * len(counts)), "arrays of <U1 are not taken"),
        (ak.Array([[[1.0], [1.0, 2.0]]] * len(counts)), "its type is `12 .* var .* var"),
        (ak.Array([{"x": [1.0]}] * len(counts)), "its type is"),
        (ak.Array(["a"] * len(counts)), "its type is `12 .* string"),
        (ak.to_regular(ak.Array([[[1.0, None]]] * len(counts)), axis=None), "its type is"),
    )
    for wrong, message in wrong_ones:
        with pytest.raises(torchless.InputError, match=message) as caught:
            model.encode({"x": wrong, "v": v}, mask="mask")
        assert caught.value.hint
    with pytest.raises(torchless.InputError, match="input `v`: event 0 has"):
        model.encode({"x": x, "v": v[::-1]}, mask="mask")


def test_fixed_inputs_are_constants():
    path, inputs, _ = case("mlp")
    first = {"x": inputs["x"][:1]}
    model = torchless.Encoder(path, fixed=first)
    assert model.inputs == ()
    expected = torchless.Encoder(path).encode(first)["logits"]
    copy = pickle.loads(pickle.dumps(model))
    assert repr(copy) == repr(model) and expected.shape == (1, 2)


@pytest.mark.parametrize(
    ("model", "fixed", "message"),
    [
        ("mlp", {"x": [[1j, 2, 3]]}, "input `x`: numbers of complex128 are not all"),
        ("mlp", {"x": "abc"}, "input `x`: numbers of <U3 are not all"),
        ("mlp", {"x": [1.0, 2.0, 3.0]}, r"input `x`: its shape is \[3\]"),
        ("text17", {"ids": [[np.nan]]}, "input `ids`: number 0 is NaN, and it must be made of integers"),
        ("text17", {"ids": [[2**53 + 1]]}, "input `ids`: numbers of int64 are not all"),
        ("text17", {"mask": [[2]]}, "input `mask`: number 0 is 2, and it must be made of truth values"),
    ],
)
def test_fixed_inputs_that_do_not_fit_are_errors(model, fixed, message):
    with pytest.raises(torchless.InputError, match=message):
        torchless.Encoder(case(model)[0], fixed=fixed)


def test_padded_inputs_of_different_sizes_are_errors(jets):
    path, padded, _, _ = jets
    with pytest.raises(torchless.InputError, match="input `v`: its axis of particles has the size 5"):
        torchless.Encoder(path).encode(padded | {"v": padded["v"][:, :, :5]}, mask="mask")


def test_no_events_are_no_error(jets):
    path, padded, rows, _ = jets
    model = torchless.Encoder(path)
    assert model.encode({name: array[:0] for name, array in padded.items()})["logits"].shape == (0, 3)
    assert model.encode(ragged(rows, [0]), mask="mask")["logits"].shape == (0, 3)


def test_threads_share_a_model(jets):
    path, padded, rows, counts = jets
    model = torchless.Encoder(path)
    expected = model.encode(padded)["logits"].tobytes()
    found = []

    def work(threads):
        for _ in range(5):
            found.append(model.encode(ragged(rows, offsets_of(counts)), mask="mask", threads=threads)["logits"].tobytes())

    workers = [threading.Thread(target=work, args=(1 + index % 3,)) for index in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [expected] * 40


def _in_another_process(model, padded, queue):
    queue.put(model.encode(padded, threads=2, events_at_once=2)["logits"].tobytes())


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_models_work_in_other_processes(jets, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    path, padded, _, _ = jets
    model = torchless.Encoder(path)
    # Threads of this process, which a fork does not have.
    expected = model.encode(padded, threads=2, events_at_once=2)["logits"].tobytes()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=_in_another_process, args=(model, padded, queue))
    process.start()
    assert queue.get(timeout=60) == expected
    process.join(60)
    assert process.exitcode == 0


def test_the_lock_of_the_interpreter_is_released(jets):
    path, padded, _, _ = jets
    model = torchless.Encoder(path, precision="double")
    many = {name: np.repeat(array, 20, axis=0) for name, array in padded.items()}
    start, done, seen = threading.Event(), threading.Event(), 0

    def work():
        start.set()
        model.encode(many)
        done.set()

    # A thread that holds the lock lets others run when it is asked to, but not within a call.
    worker = threading.Thread(target=work)
    worker.start()
    start.wait()
    while not done.wait(0.001):
        seen += 1
    worker.join()
    assert seen > 3
