"""Models: what they tell of themselves, evaluations, pickles, threads, and what is said of wrong
input.
"""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction

import nextstat
import numpy as np
import pytest


@pytest.fixture(scope="module")
def path(root):
    return root / "examples/shapes.json"


@pytest.fixture(scope="module")
def model(path):
    return nextstat.load_workspace(path)


def test_shapes(model):
    n_params, n_bins, n_aux = model.n_params, model.n_bins, model.n_aux
    assert (n_params, n_bins, n_aux) == (18, 7, 13)
    assert len(model.par_names) == len(model.fixed) == n_params
    assert model.init.shape == (n_params,) and model.bounds.shape == (n_params, 2)
    assert model.data.shape == (n_bins + n_aux,)
    assert sum(model.channel_n_bins) == n_bins and len(model.channels) == len(model.channel_n_bins)
    assert model.poi == "mu" == model.pois[0] == model.par_names[model.poi_index]
    sets = model.parameter_sets()
    assert sum(found["len"] for found in sets) == n_params
    assert sum(len(found["aux_indices"]) for found in sets) == n_aux


def test_one_point_or_many(model):
    one = model.nll(model.init)
    assert isinstance(one, float)
    many = model.nll(np.tile(model.init, (100, 1)))
    assert many.shape == (100,) and (many == one).all()
    nll, gradient = model.nll_and_grad(model.init)
    assert nll == one and gradient.shape == (18,)
    nll, gradients = model.nll_and_grad([model.init] * 3)
    assert nll.shape == (3,) and gradients.shape == (3, 18) and (gradients[2] == gradient).all()
    assert model.expected_data(model.init).shape == (20,)
    assert model.expected_data(model.init, aux=False).shape == (7,)
    assert model.expected_data([model.init] * 3).shape == (3, 20)
    for empty in (np.zeros((0, 18)), []):
        if len(np.shape(empty)) == 2:
            assert model.nll(empty).shape == (0,) and model.nll_and_grad(empty)[1].shape == (0, 18)
            assert model.expected_data(empty).shape == (0, 20)


def test_data_of_each_point(model):
    observed = model.data
    other = observed + np.r_[np.ones(7), np.zeros(13)]
    points = [model.init, model.init * 1.01]
    each = model.nll(points, [observed, other])
    assert each[0] == model.nll(points[0]) and each[1] == model.nll(points[1], other)
    assert (model.nll(model.init, [observed, other]) == [model.nll(model.init), model.nll(model.init, other)]).all()
    assert model.nll(model.init, other[:7]) == model.nll(model.init, other)


def test_the_gradient_is_that_of_nll(model):
    rng = np.random.default_rng(1)
    point = model.init + 0.01 * rng.random(18)
    _, gradient = model.nll_and_grad(point)
    step = 1e-5 * np.eye(18)
    numeric = (model.nll(point + step) - model.nll(point - step)) / 2e-5
    assert np.allclose(gradient, numeric, rtol=1e-5, atol=1e-5)


def test_threads_do_not_change_numbers(model):
    points = model.init + 0.01 * np.random.default_rng(2).random((300, 18))
    alone = model.nll_and_grad(points, threads=1)
    shared = model.nll_and_grad(points, threads=5)
    assert (alone[0] == shared[0]).all() and (alone[1] == shared[1]).all()


def test_points_outside_the_domain(root):
    model = nextstat.load_workspace(root / "examples/simple.json")
    point = [-100.0, 1.0, 1.0]
    nll, gradient = model.nll_and_grad(point)
    assert nll == np.inf == model.nll(point) and np.isnan(gradient).all()
    values, gradients = model.nll_and_grad([model.init, point, model.init], threads=2)
    assert np.isfinite(values).tolist() == np.isfinite(gradients).all(axis=1).tolist() == [True, False, True]
    assert "negative" in model.diagnose(point) or "expected" in model.diagnose(point)
    assert model.diagnose(model.init) is None


def test_a_workspace_from_anywhere(path, tmp_path):
    text = path.read_text()
    by_path = nextstat.load_workspace(str(path))
    for source in (text, text.encode(), json.loads(text)):
        assert (nextstat.model_of(source).data == by_path.data).all()
    numpy_too = json.loads(text)
    for observation in numpy_too["observations"]:
        observation["data"] = np.array(observation["data"])
    assert nextstat.model_of(numpy_too).nll(by_path.init) == by_path.nll(by_path.init)
    assert json.loads(by_path.workspace_json())["version"] == "1.0.0"


def test_choices(path, root):
    kinked = nextstat.load_workspace(path, interp_defaults="pyhf")
    smooth = nextstat.load_workspace(path)
    named = nextstat.load_workspace(path, interpolation={"normsys": "code1", "histosys": "code0"})
    point = smooth.init + 0.3
    assert kinked.nll(point) == named.nll(point) != smooth.nll(point)
    assert nextstat.load_workspace(path, poi="none").poi is None
    assert nextstat.load_workspace(path, poi="norm_ttbar").poi == "norm_ttbar"
    patched = nextstat.load_workspace(root / "examples/background.json", patches=root / "examples/signal.json")
    assert patched.poi == "mu"


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_the_same_model(path, protocol):
    model = nextstat.load_workspace(path, poi="norm_ttbar", interp_defaults="pyhf")
    again = pickle.loads(pickle.dumps(model, protocol))
    assert repr(again) == repr(model) and again.poi == "norm_ttbar"
    point = model.init * 1.1
    assert again.nll(point) == model.nll(point)
    assert nextstat.fit(again) == nextstat.fit(model)
    assert copy.deepcopy(model).nll(point) == model.nll(point)


def test_models_are_frozen(model):
    with pytest.raises(AttributeError):
        model.poi = "other"


@pytest.mark.parametrize("name", ["init", "bounds", "data"])
def test_arrays_of_models_are_read_only(model, name):
    array = getattr(model, name)
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0.0
    assert array.copy().flags.writeable


def test_masked_numbers_are_refused(model):
    masked = np.ma.masked_array(model.data, mask=[True] + [False] * (model.data.size - 1))
    whole = np.ma.masked_array(model.data, mask=False)
    point = np.ma.masked_array(model.init, mask=[True] + [False] * (model.n_params - 1))
    calls = (
        lambda: nextstat.fit(model, data=masked),
        lambda: nextstat.fit(model, data=masked.astype(np.float32)),
        lambda: nextstat.fit(model, init=point),
        lambda: model.nll(point),
        lambda: model.nll([point, point]),
        lambda: model.nll(model.init, masked),
        lambda: model.expected_data(point),
        lambda: nextstat.hypotest(model, np.ma.masked),
        lambda: nextstat.upper_limit(model, grid=np.ma.masked_array([0.0, 1.0, 2.0], mask=[0, 1, 0])),
    )
    for call in calls:
        with pytest.raises(TypeError, match="mask"):
            call()
    assert nextstat.fit(model, data=whole) == nextstat.fit(model, data=model.data)


def test_files_that_are_not_there_have_a_number_and_a_name(tmp_path):
    path = str(tmp_path / "nope.json")
    with pytest.raises(FileNotFoundError) as error:
        nextstat.load_workspace(path)
    assert (error.value.errno, error.value.filename) == (2, path)
    assert str(error.value) == f"[Errno 2] No such file or directory: {path!r}"


def test_a_byte_order_mark_is_no_part_of_a_document(root):
    text = (root / "examples/simple.json").read_text()
    for document in ("\ufeff" + text, ("\ufeff" + text).encode()):
        assert nextstat.model_of(document).par_names == nextstat.model_of(text).par_names


def test_text_that_is_no_document_is_not_quoted_whole():
    for given in ("x" * 100_000, "a/path.json"):
        with pytest.raises(TypeError) as error:
            nextstat.model_of(given)
        assert len(str(error.value)) < 250
    with pytest.raises(nextstat.WorkspaceError, match="empty"):
        nextstat.model_of("")


def test_many_threads_use_one_model(model):
    alone = nextstat.fit(model)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: nextstat.fit(model), range(32)):
            assert result == alone


WRONG = [
    (lambda m: m.nll([1.0, 2.0]), nextstat.DataError, "2 values for 18 parameters", None),
    (lambda m: m.nll("abc"), TypeError, "`params` must be an array of numbers, not `'abc'`", None),
    (lambda m: m.nll(np.zeros((1, 1, 18))), nextstat.DataError, "`params` has 3 dimensions instead of one or two", None),
    (lambda m: m.nll([m.init] * 2, [m.data] * 3), nextstat.DataError, "2 points and 3 sets of data: give one of either, or as many", None),
    (lambda m: m.nll(m.init, [1.0]), nextstat.DataError, "1 data, but the model has 7 bins and 13 auxiliary data: give the bins, or both", None),
    (
        lambda m: nextstat.fit(m, data=[1, 2, 3, -1, 5, 6, 7]),
        nextstat.DataError,
        "channel `signal_region`, bin 0: -1 is not a valid number of events",
        None,
    ),
    (
        lambda m: nextstat.fit(m, fixed={"Mu": 1}),
        nextstat.ParameterError,
        "`fixed` names the parameter `Mu`, which the model does not have",
        "parameter names are case sensitive; did you mean `mu`?",
    ),
    (lambda m: nextstat.fit(m, fixed=[1]), TypeError, "`fixed` must be a dictionary of names with a value, not `[1]`", None),
    (lambda m: nextstat.fit(m, fixed={"mu": np.nan}), nextstat.ParameterError, "`fixed` sets `mu` to NaN, which is not a finite number", None),
    (lambda m: nextstat.fit(m, bounds={"mu": (2, 1)}), nextstat.ParameterError, "`bounds`: the range 2 to 1 of `mu` is empty", None),
    (lambda m: nextstat.fit(m, bounds={"mu": 2}), TypeError, "`bounds`: the range of `mu` must be two numbers, not `2`", None),
    (lambda m: nextstat.fit(m, init={"mu": np.inf}), nextstat.ParameterError, "`init` sets `mu` to inf, which is not a finite number", None),
    (
        lambda m: nextstat.fit(m, fixed={"fakes_method": 1.0, "fakes_method[0]": 1.0}),
        nextstat.ParameterError,
        "`fixed` sets `fakes_method[0]` twice",
        None,
    ),
    (lambda m: nextstat.fit(m, seed=-1), nextstat.ParameterError, "`seed` must be a whole number from 0 to 18446744073709551615, got `-1`", None),
    (lambda m: nextstat.fit(m, seed=1.5), TypeError, "`seed` must be a whole number, not `1.5`", None),
    (lambda m: nextstat.fit(m, minos="mu", fixed={"mu": 1}), nextstat.ParameterError, "`minos` names the parameter `mu`, which is fixed", None),
    (lambda m: nextstat.profile_scan(m, threads=0), nextstat.ParameterError, "`threads` is 0, and must be at least 1", None),
    (lambda m: nextstat.profile_scan(m, [0, np.inf]), nextstat.ParameterError, "values must be finite, got inf", None),
    (
        lambda m: nextstat.profile_scan(m, parameter=("mu", "mu")),
        nextstat.ParameterError,
        "a scan or a contour takes one or two different parameters, not `mu`, `mu`",
        None,
    ),
    (lambda m: nextstat.profile_scan(m, progress=3), TypeError, "`progress` is True, or a callable that takes (done, total), not `3`", None),
    (
        lambda m: nextstat.profile_scan(m, parameter="fakes_method"),
        nextstat.ParameterError,
        "`parameter` names `fakes_method`, which has 4 elements",
        "name one element, such as `fakes_method[0]`",
    ),
    (
        lambda m: nextstat.contours(m, ("mu", "norm_ttbar"), [68]),
        nextstat.ParameterError,
        "`levels` is 68, which is not between 0 and 1",
        "a confidence level is a probability: 0.68 for 68 %",
    ),
    (lambda m: nextstat.hypotest(m, np.nan), nextstat.ParameterError, "`mu` is NaN, which is not a finite number", None),
    (
        lambda m: nextstat.hypotest(m, test_stat="qmu"),
        nextstat.ParameterError,
        "unknown test statistic `qmu`",
        "choose one of `qtilde`, `q`, `q0`, `t`, `ttilde`",
    ),
    (lambda m: nextstat.hypotest(m, fixed={"mu": 1}), nextstat.ParameterError, "`hypotest` varies `mu`, which is fixed by the measurement or by `fixed`", None),
    (
        lambda m: nextstat.hypotest_toys(m, test_stat="t"),
        nextstat.ParameterError,
        "`hypotest_toys` does not support the test statistic `t`",
        "choose one of `qtilde`, `q`, `q0`",
    ),
    (
        lambda m: nextstat.upper_limit(m, level=5),
        nextstat.ParameterError,
        "`level` is 5, which is not between 0 and 1",
        "the level of CLs is a probability, such as 0.05",
    ),
    (lambda m: nextstat.upper_limit(m, grid=[1, 1]), nextstat.ParameterError, "a grid needs at least two ascending values", None),
    (
        lambda m: nextstat.ranking(m, methods="fast"),
        nextstat.ParameterError,
        "unknown ranking method `fast`",
        "choose one of `classic`, `global`, `covariance`",
    ),
    (
        lambda m: nextstat.ranking(m, groups={"jets": "JES*"}),
        nextstat.ParameterError,
        "the group `jets` matches no free nuisance parameter",
        "`model.par_names` lists the parameters; `*` matches any characters",
    ),
    (lambda m: nextstat.fit_toys(m, n_toys=-1), nextstat.ParameterError, "`n_toys`: `-1` is not a whole number from 1 to 281474976710656", None),
    (lambda m: nextstat.throw_toys(m, m.init[:2]), nextstat.DataError, "`params` has 2 values for 18 parameters", None),
    (lambda m: nextstat.throw_toys(m, m.init, aux="free"), nextstat.ParameterError, "`aux` is `fluctuated` or `fixed`, not `free`", None),
    (
        lambda m: nextstat.upper_limit(m, device="cuda"),
        nextstat.DeviceError,
        "a limit is computed on the CPU only",
        'leave `device` out, or say `device="cpu"`',
    ),
    (
        lambda m: nextstat.fit(m, device="gpu"),
        nextstat.DeviceError,
        "unknown device `gpu`; choose one of `auto`, `cpu`, `cuda`, `metal`, `opencl` or `emulated`",
        None,
    ),
    (
        lambda m: nextstat.fit(m, device="opencl:x"),
        nextstat.DeviceError,
        "`x` is not the number of a device in `opencl:x`",
        "`opencl:0` is the first; `nextstat devices` lists them",
    ),
    (
        lambda m: nextstat.fit(m, device="cpu:1"),
        nextstat.DeviceError,
        "unknown device `cpu:1`; choose one of `auto`, `cpu`, `cuda`, `metal`, `opencl` or `emulated`",
        None,
    ),
    (lambda m: nextstat.fit("ws.json"), TypeError, "expected a Model, not a path: `nextstat.load_workspace('ws.json')` reads it", None),
    (lambda m: nextstat.model_of("{"), nextstat.WorkspaceError, "the document breaks off at line 1, column 2", "was the file copied or downloaded to its end?"),
    (lambda m: nextstat.model_of({"channels": 1}), nextstat.WorkspaceError, None, None),
    (lambda m: nextstat.model_of({"a": object()}), TypeError, "`object` is not part of a JSON document", None),
    (lambda m: nextstat.load_workspace("absent.json"), FileNotFoundError, "[Errno 2] No such file or directory: 'absent.json'", None),
    (lambda m: nextstat.digest({}, "crc"), nextstat.ParameterError, "unknown digest algorithm `crc`", "the algorithms are `md5`, `sha256`"),
    (lambda m: nextstat.command(["fit", "absent.json"]), nextstat.NextstatError, None, None),
    (
        lambda m: nextstat.fit_toys_from_data_gpu(m, device="cpu"),
        TypeError,
        "this is for a GPU: `device` is `cuda`, `metal`, `opencl` or `emulated`, not `cpu`",
        None,
    ),
    # Values that convert to numbers, and values that do not.
    (lambda m: m.nll(["1"] * 18), TypeError, "`params` must be an array of numbers, which this `list` is not: it has text", None),
    (lambda m: m.nll(m.init.astype(complex)), TypeError, "`params` must be an array of numbers, which this `ndarray` is not: it has complex numbers", None),
    (lambda m: m.nll(m.init > 0), TypeError, "`params` must be an array of numbers, which this `ndarray` is not: it has truth values", None),
    (lambda m: m.nll([1.0, None]), TypeError, "`params` must be an array of numbers, which this `list` is not: it has `None`", None),
    (lambda m: m.nll(None), TypeError, "`params` must be an array of numbers, not `None`", None),
    (lambda m: nextstat.fit(m, data=3), TypeError, "`data` must be an array of numbers, not `3`", None),
    (lambda m: nextstat.fit(m, fixed={"mu": None}), TypeError, "`fixed`: the value of `mu` must be a number, not `None`", None),
    (lambda m: nextstat.fit(m, fixed={"mu": "1"}), TypeError, "`fixed`: the value of `mu` must be a number, not `'1'`", None),
    (lambda m: nextstat.fit(m, fixed={"mu": True}), TypeError, "`fixed`: the value of `mu` must be a number, not `True`", None),
    (lambda m: nextstat.fit(m, fixed={3: 1.0}), TypeError, "`fixed` has names of parameters, and `3` is not a name", None),
    (lambda m: nextstat.fit(m, init={"mu": 1j}), TypeError, "`init`: the value of `mu` must be a number, not `1j`", None),
    (lambda m: nextstat.fit(m, bounds={"mu": (0, "5")}), TypeError, "`bounds`: an end of the range of `mu` must be a number, not `'5'`", None),
    (lambda m: nextstat.hypotest(m, "1"), TypeError, "`mu` must be a number, not `'1'`", None),
    (lambda m: nextstat.hypotest(m, np.complex64(1)), TypeError, f"`mu` must be a number, not `{np.complex64(1)!r}`", None),
    (lambda m: nextstat.hypotest(m, [1.0, 2.0]), TypeError, "`mu` must be a number, not `[1.0, 2.0]`", None),
    (lambda m: nextstat.hypotest(m, True), TypeError, "`mu` must be a number, not `True`", None),
    # Arguments of another type than is wanted.
    (lambda m: nextstat.fit(m, minos=3), TypeError, "`minos` is a name or a sequence of names, not `3`", None),
    (lambda m: nextstat.fit(m, covariance=1), TypeError, "`covariance` is True or False, not `1`", None),
    (
        lambda m: nextstat.contours(m, "mu", "norm_ttbar", 0.68),
        TypeError,
        "`parameters` is one argument, a pair: `contours(model, ('mu', 'lumi'), 0.68)`; options are given by name",
        None,
    ),
    (lambda m: nextstat.contours(m, "mu"), TypeError, "`parameters` is a pair of names, such as ('mu', 'lumi'), not `'mu'`", None),
    (lambda m: nextstat.contours(m, ("mu", "mu")), nextstat.ParameterError, "a scan or a contour takes one or two different parameters, not `mu`, `mu`", None),
    (lambda m: nextstat.contours(m, ("mu", "lumi"), []), nextstat.ParameterError, "`levels` is empty: a contour needs a confidence level", None),
    (lambda m: nextstat.contours(m, ("mu", "lumi"), "0.68"), TypeError, "a level of `levels` must be a number, not `'0.68'`", None),
    (
        lambda m: nextstat.ranking(m, groups=["mc_stat*"]),
        TypeError,
        "`groups` is a dictionary of name patterns by group, such as {'jets': 'jes_*'}, not `['mc_stat*']`",
        None,
    ),
    (lambda m: nextstat.ranking(m, minos="yes"), TypeError, "`minos` is True or False, not `'yes'`", None),
    (lambda m: nextstat.ranking(m, methods=()), nextstat.ParameterError, "`methods` is empty: choose one of `classic`, `global`, `covariance`", None),
    (lambda m: nextstat.profile_scan(m, 5), TypeError, "`mu_values` is an array of values, not `5`: `points=` sets their number", None),
    (lambda m: nextstat.profile_scan(m, 5, parameter=("mu", "lumi")), TypeError, "of two parameters `mu_values` has an array, or None, for each", None),
    (lambda m: nextstat.profile_scan(m, parameter=3), TypeError, "`parameter` is a name or a sequence of names, not `3`", None),
    (lambda m: m.index(3), TypeError, "`name` must be that of a parameter, not `3`", None),
    (lambda m: m.expected_data(m.init, aux="x"), TypeError, "`aux` must be True or False, not `'x'`", None),
    (lambda m: m.nll(m.init, threads="2"), TypeError, "`threads` must be a whole number, not `'2'`", None),
    (lambda m: nextstat.hypotest(m, test_stat=3), TypeError, "`test_stat` must be text, not `3`", None),
    (
        lambda m: nextstat.fit(m, device=np.ones(2)),
        nextstat.DeviceError,
        "unknown device `array([1., 1.])`; choose one of `auto`, `cpu`, `cuda`, `metal`, `opencl` or `emulated`",
        None,
    ),
    (lambda m: nextstat.command("fit"), TypeError, "`arguments` is a sequence of words, such as ['fit', 'workspace.json'], not `'fit'`", None),
    (lambda m: nextstat.command(["fit", None]), TypeError, "`arguments` has words, paths and numbers, not `None`", None),
    (lambda m: nextstat.load_toys(3), TypeError, "`path` must be a path, not `3`", None),
    (lambda m: nextstat.fit({"channels": []}), TypeError, "expected a Model, not a `dict`: `nextstat.model_of(...)` makes one of a workspace", None),
    (lambda m: nextstat.asimov_data(3), TypeError, "expected a Model, not `3`: see `load_workspace` and `model_of`", None),
    (
        lambda m: nextstat.model_of("ws.json"),
        TypeError,
        "`workspace` must be JSON or a dictionary: `nextstat.load_workspace('ws.json')` reads a file",
        None,
    ),
    (lambda m: nextstat.load_workspace({}), TypeError, "`path` must be that of a file: `nextstat.model_of` makes a model of a `dict`", None),
    (
        lambda m: nextstat.Model("ws.json"),
        TypeError,
        "`Model` takes JSON in bytes: `load_workspace` reads files, `model_of` takes dictionaries and text",
        None,
    ),
    (lambda m: nextstat.inspect(3), TypeError, "a document is a path, JSON text or a dictionary, not `3`", None),
    (lambda m: nextstat.every_patch({}, {}, "fit"), TypeError, "`question` is a function of a model, such as `nextstat.upper_limit`, not `'fit'`", None),
    # Several parameters of interest.
    (
        lambda m: nextstat.upper_limit(m, poi="Mu"),
        nextstat.ParameterError,
        "this model cannot have the parameter of interest `Mu`, which no modifier uses",
        "parameter names are case sensitive; did you mean `mu`?",
    ),
    (lambda m: nextstat.upper_limit(m, poi=["mu"]), TypeError, "`poi` must be text, not `['mu']`", None),
    (
        lambda m: nextstat.upper_limit(m, poi="lumi", fixed={"lumi": 1}),
        nextstat.ParameterError,
        "`upper_limit` varies `lumi`, which is fixed by the measurement or by `fixed`",
        None,
    ),
    (
        lambda m: m.with_poi("fakes_method"),
        nextstat.ParameterError,
        "the parameter of interest `fakes_method` is a vector of 4 elements",
        "name one element, such as `fakes_method[0]`",
    ),
    (lambda m: nextstat.every_poi(m, "fit"), TypeError, "`question` is a function of a model, such as `nextstat.upper_limit`, not `'fit'`", None),
    (lambda m: nextstat.every_poi(m, lambda model: 3), TypeError, "`question` returns a result of this package, not `3`", None),
    (
        lambda m: nextstat.limit_scan(m, "lumi"),
        TypeError,
        "`at` is a dictionary of a parameter and its values, such as {'b': [0.0, 0.5, 1.0]}, not `'lumi'`",
        None,
    ),
    (lambda m: nextstat.limit_scan(m, {}), nextstat.ParameterError, "`at` has one parameter and its values, such as {'b': [0.0, 0.5, 1.0]}, not 0", None),
    (lambda m: nextstat.limit_scan(m, {"lumi": []}), nextstat.ParameterError, "at least one value is needed", None),
    (lambda m: nextstat.limit_scan(m, {"lumi": 1.0}), TypeError, None, None),
    (
        lambda m: nextstat.limit_scan(m, {"lumi": [2.0]}),
        nextstat.ParameterError,
        "`at` sets `lumi` to 2, outside its range, 0.9 to 1.1",
        "`bounds={\"lumi\": (lo, hi)}` sets another range",
    ),
    (
        lambda m: nextstat.limit_scan(m, {"mu": [2.0]}),
        nextstat.ParameterError,
        "`at` names `mu`, the parameter that the limits are on",
        "name the parameter that the limits are on with `poi=`, and another one than `mu` here",
    ),
    # Toys, as many as the command takes.
    (lambda m: nextstat.throw_toys(m, m.init, n_toys=0), nextstat.ParameterError, "`n_toys`: `0` is not a whole number from 1 to 281474976710656", None),
    (lambda m: nextstat.fit_toys(m, n_toys=2**49), nextstat.ParameterError, f"`n_toys`: `{2**49}` is not a whole number from 1 to 281474976710656", None),
    (lambda m: nextstat.hypotest_toys(m, n_toys=0), nextstat.ParameterError, "`n_toys`: `0` is not a whole number from 1 to 281474976710656", None),
    (
        lambda m: nextstat.hypotest_toys(m, n_toys=9, n_toys_b=-1),
        nextstat.ParameterError,
        "`n_toys_b`: `-1` is not a whole number from 1 to 281474976710656",
        None,
    ),
    (lambda m: nextstat.goodness_of_fit(m, toys=2**64), nextstat.ParameterError, f"`toys` is {2**64}, and must be below 2**64", None),
    (lambda m: nextstat.fit_toys(m, n_toys=True), TypeError, "`n_toys` must be a whole number, not `True`", None),
    (
        lambda m: nextstat.fit_toys(m, n_toys=3, first=2**64 - 1),
        nextstat.ParameterError,
        f"`first` is {2**64 - 1}, and 3 toys from there on go beyond the last number, {2**48 - 1}",
        None,
    ),
    (lambda m: nextstat.hypotest_toys(m, stop_at_error=0.0), nextstat.ParameterError, "`stop_at_error` is 0, and must be positive", None),
    # What does not fit into memory.
    (lambda m: nextstat.throw_toys(m, m.init, n_toys=2**48), MemoryError, f"{2**48} toys of 20 numbers each do not fit into memory", None),
    (lambda m: nextstat.fit_toys(m, n_toys=2**48), MemoryError, f"{2**48} toys of 18 numbers each do not fit into memory", None),
    (lambda m: nextstat.hypotest_toys(m, n_toys=2**48), MemoryError, f"{2**49} toys do not fit into memory", None),
    (lambda m: nextstat.profile_scan(m, points=2**60), MemoryError, f"{2**60} points of 18 numbers each do not fit into memory", None),
    (lambda m: nextstat.contours(m, ("mu", "lumi"), points=2**60), MemoryError, f"{2**60} points of 18 numbers each do not fit into memory", None),
    (lambda m: m.nll(np.broadcast_to(1.0, (2**50, 18))), MemoryError, f"{18 * 2**50} numbers do not fit into memory", None),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_what_is_said_of_wrong_input(model, case):
    call, kind, message, hint = WRONG[case]
    with pytest.raises(kind) as raised:
        call(model)
    assert type(raised.value) is kind
    if message is not None:
        assert str(raised.value) == message
        assert getattr(raised.value, "hint", None) == hint
        if hint is not None and hasattr(raised.value, "add_note"):
            assert raised.value.__notes__ == [f"hint: {hint}"]


def test_numbers_of_every_kind_are_numbers(model):
    one = nextstat.hypotest(model, 1.0)
    for mu in (1, np.float32(1), np.int8(1), np.array(1.0), Fraction(1), Decimal(1)):
        assert nextstat.hypotest(model, mu) == one
    assert nextstat.fit(model, fixed={"mu": np.float32(1)}) == nextstat.fit(model, fixed={"mu": 1})
    assert nextstat.fit_toys(model, n_toys=np.int64(3)) == nextstat.fit_toys(model, n_toys=3, threads=10**6)
    for point in (model.init.tolist(), tuple(model.init), model.init.astype(object), model.init.astype(np.float32), [Fraction(x) for x in model.init]):
        assert abs(model.nll(point) - model.nll(model.init)) < 1e-5
    assert (model.expected_data(model.init, aux=np.bool_(False)) == model.expected_data(model.init, aux=False)).all()


def test_minos_of_every_parameter(model):
    assert nextstat.fit(model, minos=True) == nextstat.fit(model, minos="all")
    assert nextstat.fit(model, minos=False) == nextstat.fit(model)


def test_files_that_are_not_of_toys_say_so(tmp_path, root):
    with pytest.raises(nextstat.ToyError, match=r"README\.md\.json`, which belongs beside it, is not there"):
        nextstat.load_toys(root / "README.md")
    with pytest.raises(FileNotFoundError):
        nextstat.load_toys(tmp_path / "absent.npy")
    toys = nextstat.fit_toys(nextstat.load_workspace(root / "examples/simple.json"), n_toys=3)
    toys.save(tmp_path / "toys.npy")
    whole = (tmp_path / "toys.npy").read_bytes()
    for broken in (b"", b"text", whole[:-8], whole[:100]):
        (tmp_path / "toys.npy").write_bytes(broken)
        with pytest.raises(nextstat.ToyError, match=r"toys\.npy"):
            nextstat.load_toys(tmp_path / "toys.npy")
    np.save(tmp_path / "toys.npy", np.zeros(3))
    with pytest.raises(nextstat.ToyError, match="is not the file that"):
        nextstat.load_toys(tmp_path / "toys.npy")
    (tmp_path / "toys.npy.json").write_text("{")
    with pytest.raises(nextstat.ToyError, match="is not of toys"):
        nextstat.load_toys(tmp_path / "toys.npy")


def test_files_of_toys_keep_the_devices_that_made_them(tmp_path, root):
    path = tmp_path / "toys.npy"
    document = tmp_path / "toys.npy.json"
    nextstat.fit_toys(nextstat.load_workspace(root / "examples/simple.json"), n_toys=3).save(path)
    written = json.loads(document.read_text())
    assert written["devices"] == ["cpu"]
    document.write_text(json.dumps({**written, "devices": ["cpu", "cuda"]}))
    nextstat.load_toys(path).save(tmp_path / "again.npy")
    assert json.loads((tmp_path / "again.npy.json").read_text())["devices"] == ["cpu", "cuda"]


def test_notebooks_show_models(model, root):
    table = model._repr_html_()
    for shown in ("search", "control_region", "norm_ttbar", "fakes_method", "ttbar", "18"):
        assert shown in table
    assert table.startswith("<div><b>") and table.endswith("</div>")
    workspace = json.loads((root / "examples/simple.json").read_text().replace('"mu"', '"<b>mu</b>"'))
    assert "<b>mu</b>" not in nextstat.model_of(workspace)._repr_html_()


def test_every_error_of_ours_is_a_value_error_with_a_hint_attribute():
    for name in ("WorkspaceError", "ModelError", "ParameterError", "DataError", "ToyError", "DeviceError"):
        kind = getattr(nextstat, name)
        assert issubclass(kind, nextstat.NextstatError) and issubclass(kind, ValueError)
        assert kind("text").hint is None
        assert isinstance(pickle.loads(pickle.dumps(kind("text"))), kind)


def test_what_is_public_is_called_so():
    for name in nextstat.__all__:
        member = getattr(nextstat, name)
        if isinstance(member, type):
            assert (member.__module__, member.__qualname__) == ("nextstat", name)
            assert pickle.loads(pickle.dumps(member)) is member


def test_hints_travel_with_errors(model):
    with pytest.raises(nextstat.ParameterError) as raised:
        nextstat.fit(model, fixed={"Mu": 1.0})
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.hint == raised.value.hint is not None


def test_broken_documents_say_where(root):
    gallery = sorted((root / "testdata/gallery").glob("*.json"))
    n_errors = 0
    for path in gallery:
        try:
            nextstat.load_workspace(path)
        except nextstat.NextstatError as error:
            n_errors += 1
            assert str(error), path
            assert error.hint is None or "`--" not in error.hint, path
        except OSError as error:
            assert "cannot read" in str(error)
    assert n_errors > 30


@pytest.fixture(scope="module")
def too_large(root):
    """A model of 300003 parameters: two dense matrices of them have 1.3 TiB."""
    workspace = json.loads((root / "examples/simple.json").read_text())
    modifiers = workspace["channels"][0]["samples"][0]["modifiers"]
    modifiers += [{"name": f"n{i}", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}} for i in range(300000)]
    return nextstat.model_of(workspace)


@pytest.mark.parametrize("call", ["fit", "check", "upper_limit", "hypotest", "ranking", "report", "profile_scan", "goodness_of_fit"])
def test_models_that_no_memory_holds_are_a_memory_error(too_large, call):
    with pytest.raises(MemoryError, match=r"a fit of 300003 parameters needs at least 1\.3 TiB of memory"):
        getattr(nextstat, call)(too_large)


def test_models_that_no_memory_holds_are_evaluated(too_large):
    assert np.isfinite(too_large.nll(too_large.init))


def test_warnings_about_a_card_are_at_the_line_that_reads_it(root, tmp_path):
    card = tmp_path / "card.txt"
    card.write_text((root / "examples/combine/counting.txt").read_text("utf-8") + "low autoMCStats 10\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="`autoMCStats` has no effect on the channel `low`") as caught:
        nextstat.load_workspace(card)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(("mass", "kind", "message"), [
    ("x", TypeError, "`mass` must be a number, not `'x'`"),
    (float("nan"), nextstat.ParameterError, "`mass` is nan, which is not a finite number"),
])  # fmt: skip
def test_a_mass_that_is_no_number_is_named(mass, kind, message, root):
    with pytest.raises(kind, match=message):
        nextstat.load_workspace(root / "examples/combine/counting.txt", mass=mass)


def test_convert_reads_cards_as_load_workspace_does(tmp_path):
    card = tmp_path / "card.txt"
    card.write_text("imax 1\njmax 1\nkmax 0\nbin SR\nobservation 12\nbin SR SR\nprocess s b\nprocess 0 1\nrate 3.5 10.0\n")
    options = {"mass": 125.0, "physics_model": "multiSignalModel", "model_options": ["map=.*/s:r_s[1,0,10]"], "keywords": {"ERA": "2018"}}
    document = nextstat.convert(card, "extended", **options)
    assert document["measurements"][0]["config"]["poi"] == "r_s"
    loaded = nextstat.load_workspace(card, **options)
    assert loaded.poi == "r_s" and nextstat.model_of(document).expected_data({"r_s": 2.0}).tolist() == [17.0]
    with pytest.raises(nextstat.WorkspaceError, match="is for a Combine card, and the document is a pyhf workspace"):
        nextstat.convert(document, "hs3", mass=125.0)


def test_xml_is_written_with_all_its_files_or_refused(root, tmp_path):
    path = root / "examples/simple.json"
    nextstat.write_xml(path, tmp_path / "model.xml")
    assert nextstat.digest(tmp_path / "model.xml") == nextstat.digest(path)
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert sorted(files) == ["HistFactorySchema.dtd", "model.root", "model.xml", "model_singlechannel.xml"]
    with pytest.raises(nextstat.ParameterError, match=r"model_singlechannel\.xml` is what is read, and would be replaced"):
        nextstat.write_xml(tmp_path / "model.xml", tmp_path / "model.xml")
    for name, named in (("model.root", "model.xml"), ("HistFactorySchema.dtd", "HistFactorySchema.xml")):
        with pytest.raises(nextstat.ParameterError, match=f"a file that it names would both be `.*{name}`") as error:
            nextstat.write_xml(path, tmp_path / name)
        assert error.value.hint == f"name the combination `{tmp_path / named}`"
    with pytest.raises(nextstat.ParameterError, match=r"`\.\.` is not the name of a file"):
        nextstat.write_xml(path, "..")
    with pytest.raises(nextstat.ParameterError, match="HistFactory XML cannot hold a formula") as error:
        nextstat.write_xml(root / "examples/eft.json", tmp_path / "eft.xml")
    assert error.value.hint == '`nextstat.convert(..., "extended")` writes every model'
    with pytest.raises(nextstat.ParameterError, match="HistFactory XML is several files") as error:
        nextstat.convert(path, "xml")
    assert error.value.hint == "`write_xml` writes them"
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == files


def test_formats_that_are_only_read_are_named(path):
    with pytest.raises(nextstat.ParameterError, match="unknown format `card`") as error:
        nextstat.convert(path, "card")
    assert error.value.hint == "choose one of `pyhf`, `extended`, `hs3`, `xml`; data cards are only read"
