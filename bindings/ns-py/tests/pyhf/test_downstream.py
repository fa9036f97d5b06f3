"""What packages that import pyhf do with it, and the shim once did not."""

import logging
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import nextstat.pyhf as pyhf
import numpy as np
import pytest
from nextstat.pyhf.optimize import common

sys.path.insert(0, str(Path(__file__).parent))
from specifications import SPECS, data_of, points_of  # noqa: E402

names = pytest.mark.parametrize("name", SPECS)


@pytest.fixture(autouse=True)
def default_backend():
    yield
    pyhf.set_backend("numpy")


def case(name="two_channels"):
    model = pyhf.Model(SPECS[name])
    return model, data_of(model, name)


def run(code):
    """What a new interpreter prints."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def differences(function, point, steps=1e-5):
    """Derivatives (P × …) of `function` by central differences."""
    shifts = steps * np.eye(len(point))
    return np.array([(np.asarray(function(point + shift)) - function(point - shift)) / (2.0 * steps) for shift in shifts])


# -- results of fits --


def test_the_default_method_has_no_inverse_hessian():
    model, data = case()
    result = pyhf.infer.mle.fit(data, model, return_result_obj=True)[-1]
    assert not hasattr(result, "hess_inv")
    assert {"x", "fun", "success", "message", "status", "nit", "nfev", "njev", "jac", "unc", "corr"} <= set(result)
    assert result.status == 0


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B"])
@names
def test_quasi_newton_methods_have_the_inverse_hessian_of_the_objective(name, method):
    model, data = case(name)
    found, result = pyhf.infer.mle.fit(data, model, return_result_obj=True, method=method)
    fixed = model.config.suggested_fixed()
    gradient = lambda pars: 2.0 * np.asarray(model._nll_and_grad(pars, data)[1])
    free = ~np.array(fixed)
    wanted = np.linalg.inv(differences(gradient, found)[np.ix_(free, free)])
    np.testing.assert_allclose(np.asarray(result.hess_inv)[np.ix_(free, free)], wanted, rtol=1e-4, atol=1e-8)
    np.testing.assert_array_equal(result.hess_inv.todense(), result.hess_inv)
    assert result.hess_inv[model.config.poi_index][model.config.poi_index] > 0.0


def test_a_flat_direction_has_no_inverse_hessian():
    factors = [{"name": name, "type": "normfactor", "data": None} for name in ("mu", "second")]
    model = pyhf.Model({"channels": [{"name": "c", "samples": [{"name": "s", "data": [20.0], "modifiers": factors}]}]})
    result = pyhf.infer.mle.fit([21.0], model, return_result_obj=True, method="BFGS")[-1]
    assert not hasattr(result, "hess_inv")


def test_results_are_scipys_where_scipy_is_installed():
    optimize = pytest.importorskip("scipy.optimize")
    model, data = case()
    for optimizer in ("scipy", "minuit"):
        pyhf.set_backend("numpy", optimizer)
        assert isinstance(pyhf.infer.mle.fit(data, model, return_result_obj=True)[-1], optimize.OptimizeResult)


def test_fits_without_a_result_object_do_not_import_scipy():
    code = (
        "import sys, nextstat.pyhf as pyhf; m = pyhf.simplemodels.uncorrelated_background([5.0], [50.0], [7.0]); d = [51.0] + m.config.auxdata;"
        "pyhf.infer.mle.fit(d, m); pyhf.infer.hypotest(1.0, d, m); print('scipy' in sys.modules)"
    )
    assert run(code) == "False"


def test_the_lower_of_two_minima_is_found():
    # pyhf's reference test `2bin_2channel_coupledhistosys`, whose fit at mu = 1 ends in the other
    # minimum, at 31.3751.
    def sample(name, data, low, high):
        shape = {"name": "coupled", "type": "histosys", "data": {"lo_data": low, "hi_data": high}}
        return {"name": name, "data": data, "modifiers": [shape]}

    signal = {"name": "signal", "data": [30.0, 35.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
    first, second = sample("a", [100.0, 100.0], [90.0, 90.0], [110.0, 110.0]), sample("b", [50.0, 120.0], [45.0, 45.0], [55.0, 55.0])
    control = {"name": "control", "samples": [sample("a", [105.0, 100.0], [95.0, 90.0], [110.0, 115.0])]}
    spec = {"channels": [{"name": "signal", "samples": [signal, first, second]}, control]}
    model = pyhf.Model(spec, modifier_settings={"normsys": {"interpcode": "code1"}, "histosys": {"interpcode": "code0"}})
    data = [110.0, 105.0, 170.0, 220.0, *model.config.auxdata]
    pars, twice_nll = pyhf.infer.mle.fixed_poi_fit(1.0, data, model, return_fitted_val=True)
    assert pars[model.config.par_names.index("coupled")] == pytest.approx(-0.3589, abs=1e-3)
    assert twice_nll == pytest.approx(30.871737, abs=1e-5)
    assert pyhf.infer.hypotest(1.0, data, model) == pytest.approx(0.138305, abs=1e-5)


# -- gradients for minimisers of other packages --


@names
def test_the_shim_returns_the_exact_gradient(name):
    pyhf.set_backend("nextstat")
    model, data = case(name)
    config = model.config
    arguments, stitch = common.shim(pyhf.infer.mle.twice_nll, data, model, config.suggested_init(), config.suggested_bounds(), None, True, False)
    assert arguments["x0"] == config.suggested_init() and arguments["bounds"] == config.suggested_bounds() and arguments["do_grad"]
    for point in points_of(model, n=3):
        value, gradient = arguments["func"](point)
        assert value == pytest.approx(float(pyhf.infer.mle.twice_nll(point, data, model)[0]), rel=1e-12)
        np.testing.assert_allclose(gradient, differences(lambda pars: arguments["func"](pars)[0], point), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(stitch(point), point)


def test_the_shim_leaves_out_and_restores_fixed_parameters():
    pyhf.set_backend("nextstat")
    model, data = case()
    config = model.config
    point, fixed = points_of(model)[0], [(config.poi_index, 0.5), (0, 0.1)]
    free = [i for i in range(config.npars) if i not in dict(fixed)]
    whole, _ = common.shim(pyhf.infer.mle.twice_nll, data, model, config.suggested_init(), config.suggested_bounds(), fixed, True, False)
    part, stitch = common.shim(pyhf.infer.mle.twice_nll, data, model, config.suggested_init(), config.suggested_bounds(), fixed, True, True)
    for index, value in fixed:
        point[index] = value
    np.testing.assert_array_equal(stitch(point[free]), point)
    assert len(part["x0"]) == len(part["bounds"]) == len(free) and part["fixed_vals"] == [] and whole["fixed_vals"] == fixed
    assert part["func"](point[free])[0] == whole["func"](point)[0]
    np.testing.assert_array_equal(part["func"](point[free])[1], whole["func"](point)[1][free])
    plain, _ = common.shim(pyhf.infer.mle.twice_nll, data, model, config.suggested_init(), config.suggested_bounds(), fixed, do_stitch=True)
    assert float(plain["func"](point[free])) == pytest.approx(part["func"](point[free])[0], rel=1e-12)


def test_numpy_has_no_gradients():
    model, data = case()
    config = model.config
    with pytest.raises(pyhf.exceptions.Unsupported, match="numpy"):
        common.shim(pyhf.infer.mle.twice_nll, data, model, config.suggested_init(), config.suggested_bounds(), do_grad=True)
    with pytest.raises(pyhf.exceptions.Unsupported, match="numpy"):
        pyhf.infer.mle.fit(data, model, do_grad=True)
    pyhf.set_backend("nextstat")
    assert pyhf.tensorlib.default_do_grad
    pyhf.infer.mle.fit(data, model, do_grad=True)
    with pytest.raises(pyhf.exceptions.Unsupported, match="twice_nll"):
        common.shim(lambda pars, data, pdf: pars[:1], data, model, config.suggested_init(), config.suggested_bounds(), do_grad=True)
    with pytest.raises(pyhf.exceptions.Unsupported, match="twice_nll"):
        pyhf.optimizer.minimize(lambda pars, data, pdf: pars[:1], data, model, config.suggested_init(), config.suggested_bounds(), do_grad=True)


def test_gradients_outside_the_domain_are_no_numbers():
    model, data = case("correlated")
    point = [{"mu": 0.0, "shape": 14.0}[name] for name in model.config.par_names]
    nll, gradient = model._nll_and_grad(point, data)
    assert nll == np.inf and np.isnan(gradient).all() and np.isnan(model._hessian(point, data)).all()


# -- modules, loggers, schemas --


def test_the_class_of_the_backend_stays_where_pyhf_has_it():
    code = (
        "import nextstat.pyhf.alias as alias; alias.install(); import pyhf; from pyhf.tensor.numpy_backend import numpy_backend;"
        "import pyhf.tensor.numpy_backend; print(pyhf.tensor.numpy_backend(precision='32b').precision, pyhf.tensor.numpy_backend is numpy_backend)"
    )
    assert run(code) == "32b True"


def test_loggers_are_called_as_pyhfs(caplog):
    for module in (pyhf.pdf, pyhf.workspace, pyhf.patchset, pyhf.readxml, pyhf.writexml, pyhf.infer.calculators):
        assert module.log.name == module.__name__.removeprefix("nextstat.")
    with caplog.at_level(logging.INFO, logger="pyhf"):
        case()
    assert {record.name for record in caplog.records} == {"pyhf.pdf"}


def test_numpys_tolist_goes_into_lists():
    tolist = pyhf.tensorlib.tolist
    assert tolist([np.array(1.0), np.array([2.0, 3.0])]) == [1.0, [2.0, 3.0]]
    assert tolist((np.float64(1.0), [np.array(2)])) == [1.0, [2]]
    assert type(tolist([np.float64(1.0)])[0]) is float
    with pytest.raises(AttributeError):
        tolist(1.0)


def test_precision_is_that_of_the_backend():
    model, data = case()
    pars = model.config.suggested_init()
    wide = model.logpdf(pars, data)
    pyhf.set_backend("numpy", precision="32b")
    assert model.expected_data(pars).dtype == model.expected_actualdata(pars).dtype == model.expected_auxdata(pars).dtype == np.float32
    assert model.logpdf(pars, data).dtype == np.float32
    assert model.logpdf(pars, data) == pytest.approx(wide, rel=1e-6)


def test_the_place_of_schemas_is_saved_and_restored(tmp_path):
    variables = pyhf.schema.variables
    folder, cache = variables.schemas, variables.SCHEMA_CACHE
    assert folder == pyhf.schema.path and variables.SCHEMA_VERSION == pyhf.schema.version
    (tmp_path / "1.0.0").mkdir()
    (tmp_path / "1.0.0" / "model.json").write_text('{"type": "array"}')
    try:
        variables.schemas = tmp_path
        assert pyhf.schema.path == tmp_path
        assert pyhf.schema.load_schema("1.0.0/model.json") == {"type": "array"} and len(cache) == 1
    finally:
        variables.schemas = folder
    assert pyhf.schema.load_schema("1.0.0/model.json")["$id"].endswith("1.0.0/model.json")


def test_listed_names_are_pyhfs():
    assert "HypoTestFitResults" not in dir(pyhf.infer.calculators) and "writexml" not in dir(pyhf.writexml)
    assert pyhf.infer.calculators.HypoTestFitResults and pyhf.writexml.writexml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("True", True), ("TRUE", True), ("yes", True), ("No", False), ("off", False), ("false", False), ("null", None), ("~", None), ("", None)],
        *[("1", 1), ("0.1", 0.1), ("[1, 2]", [1, 2]), ("tRUE", "tRUE"), ("SLSQP", "SLSQP"), ("a=b", "a=b")],
    ],
)
def test_options_of_the_command_line_are_read_as_yaml_has_them(text, value):
    found = pyhf.utils.options_from_eqdelimstring([f"name={text}"])
    assert found == {"name": value} and type(found["name"]) is type(value)


# -- XML --


def test_unknown_modifiers_are_left_out_of_xml(caplog):
    modifier = {"name": "custom", "type": "newtype", "data": None}
    with caplog.at_level(logging.WARNING, logger="pyhf"):
        assert pyhf.writexml.build_modifier({}, modifier, "SR", "signal", [1.0]) is None
    assert "Skipping modifier custom(newtype)" in caplog.text


def test_whole_numbers_are_whole_in_xml():
    spec = {"measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}]}
    built = pyhf.writexml.build_modifier(spec, {"name": "mu", "type": "normfactor", "data": None}, "SR", "signal", [1.0])
    assert built.attrib == {"Name": "mu", "Val": "1", "Low": "0", "High": "10"}


@pytest.mark.parametrize("attributes", ['HistoName="" InputFile="" HistoPath=""', 'HistoName="data" InputFile=""', 'HistoName=""'])
def test_data_that_are_declared_absent_are_refused_before_files_are_looked_for(attributes):
    channel = ElementTree.fromstring(f'<Channel Name="SR" InputFile="nowhere.root"><Data {attributes}/><Sample Name="s" HistoName="h"/></Channel>')
    with pytest.raises(NotImplementedError, match="workspaces without data"):
        pyhf.readxml.process_channel(channel, pyhf.readxml.resolver_factory(".", []))


# -- figures --


@pytest.mark.parametrize("has_components", [False, True])
def test_bands_are_drawn_of_nested_results(has_components):
    figure = pytest.importorskip("matplotlib.figure")
    from nextstat.pyhf.contrib.viz import brazil

    tails = [[np.array([0.1]), [0.2]]] if has_components else []
    results = [[[1.0 / k], *tails, [[0.1 / k], [0.2 / k], [0.3 / k], [0.4 / k], [0.5 / k]]] for k in (1, 2)]
    drawn = brazil.plot_results([0.0, 1.0], results, ax=figure.Figure().subplots(), components=has_components)
    np.testing.assert_allclose(drawn.cls_obs.get_ydata(), [1.0, 0.5])
    np.testing.assert_allclose(drawn.cls_exp[4].get_ydata(), [0.5, 0.25])


# -- iminuit's names --


def minuit(name):
    pyhf.set_backend("numpy", "minuit")
    model, data = case(name)
    return model, data, pyhf.infer.mle.fit(data, model, return_result_obj=True)[-1].minuit


def conditional(model, data, values):
    """-2 ln L of the fit with parameters fixed: values by name."""
    init, fixed = model.config.suggested_init(), model.config.suggested_fixed()
    for name, value in values.items():
        i = model.config.par_names.index(name)
        init[i], fixed[i] = value, True
    bounds = [(-50.0, 50.0) if is_fixed else bound for bound, is_fixed in zip(model.config.suggested_bounds(), fixed)]
    return float(pyhf.infer.mle.fit(data, model, init_pars=init, par_bounds=bounds, fixed_params=fixed, return_fitted_val=True)[1])


@pytest.mark.parametrize(("cl", "rise"), [(None, 1.0), (0.68, 0.988946), (0.95, 3.841459), (1, 1.0), (2, 4.0)])
@pytest.mark.parametrize("name", ["correlated", "two_channels", "shapefactor"])
def test_minos_takes_a_confidence_level(name, cl, rise):
    model, data, view = minuit(name)
    assert view.minos("mu", cl=cl) is view
    interval = view.merrors["mu"]
    assert interval.is_valid and view.params[interval.number].merror == (interval.lower, interval.upper)
    for distance, is_at_limit in ((interval.lower, interval.at_lower_limit), (interval.upper, interval.at_upper_limit)):
        end = view.values["mu"] + distance
        found = conditional(model, data, {"mu": end}) - view.fval
        assert found < rise if is_at_limit else found == pytest.approx(rise, abs=1e-4)
        assert not is_at_limit or end in view.limits["mu"]


def test_minos_ends_at_a_limit():
    _, _, view = minuit("uncorrelated")
    interval = view.minos("mu").merrors["mu"]
    # The best fit is at zero.
    assert interval.lower == 0.0 and interval.at_lower_limit and interval.upper > 0.0 and interval.is_valid
    _, _, view = minuit("staterror")
    interval = view.minos(0, cl=2).merrors[0]
    assert interval.lower == pytest.approx(-view.values[0]) and interval.at_lower_limit and interval.lower_valid and not interval.at_upper_limit


def test_minos_of_a_fit_that_failed_is_refused():
    _, _, view = minuit("correlated")
    view.valid = False
    with pytest.raises(RuntimeError, match="not valid"):
        view.minos("mu")
    view.valid = True
    for cl in (0.0, -1.0):
        with pytest.raises(ValueError, match="positive"):
            view.minos("mu", cl=cl)
    with pytest.raises(RuntimeError, match="`nu`"):
        view.minos("nu")


def test_profiles_are_evaluations_and_conditional_fits():
    model, data, view = minuit("two_channels")
    i = view.var2pos["mu"]
    axis, values = view.profile("mu", size=5, bound=(0.2, 1.4))
    point = np.array(view.values)
    for value, found in zip(axis, values):
        point[i] = value
        assert found == pytest.approx(view.fcn(point), rel=1e-12)
    axis, values, converged = view.mnprofile("mu", size=4)
    assert converged.all() and axis[0] == pytest.approx(view.values["mu"] - 2.0 * view.errors["mu"])
    assert values == pytest.approx([conditional(model, data, {"mu": value}) for value in axis], abs=1e-6)
    grid, shifted, _ = view.mnprofile("mu", grid=[0.5, 1.0], subtract_min=True)
    assert grid.tolist() == [0.5, 1.0] and shifted.min() == 0.0
    with pytest.raises(ValueError, match="one-dimensional"):
        view.profile("mu", grid=[[1.0]])


def test_contours_are_planes_and_lines_of_one_level():
    model, data, view = minuit("two_channels")
    x, y, plane = view.contour("mu", "jes", size=(3, 4), bound=((0.5, 1.5), (-0.5, 0.5)))
    point = np.array(view.values)
    point[[view.var2pos["mu"], view.var2pos["jes"]]] = x[2], y[1]
    assert plane.shape == (3, 4) and plane[2, 1] == pytest.approx(view.fcn(point), rel=1e-12)
    line = view.mncontour("mu", "jes", cl=0.68, size=12)
    assert line.shape == (13, 2) and (line[0] == line[-1]).all()
    inside = line[line[:, 0] > 0.0]
    assert len(inside) > 6
    for mu, jes in inside:
        assert conditional(model, data, {"mu": mu, "jes": jes}) - view.fval == pytest.approx(2.278869, abs=1e-4)
    # The others are where the range of mu ends, below the level.
    for mu, jes in line[line[:, 0] == 0.0]:
        assert conditional(model, data, {"mu": mu, "jes": jes}) - view.fval < 2.278869


def test_a_view_fits_again_from_what_was_changed():
    model, data, view = minuit("two_channels")
    errors = np.array(view.errors)
    np.testing.assert_allclose(view.hesse().errors, errors, rtol=1e-9)
    assert view.ndof != view.ndof and view.precision is None and view.nfit == view.npar
    view.values["jes"], view.fixed["jes"], view.limits["mu"] = 0.5, True, (None, 1.1)
    best = view.migrad()
    assert best is view and view.values["jes"] == 0.5 and view.nfit == view.npar - 1 and view.errors["jes"] == 0.0
    assert view.limits["mu"] == (-np.inf, 1.1) and view.values["mu"] <= 1.1
    assert view.fval == pytest.approx(conditional(model, data, {"jes": 0.5, "mu": view.values["mu"]}), abs=1e-6)
    np.testing.assert_array_equal(view.reset().values, model.config.suggested_init())
    np.testing.assert_allclose(view.grad(view.values), differences(view.fcn, np.array(view.values)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(view.hessian(view.values), differences(view.grad, np.array(view.values)), rtol=1e-5, atol=1e-4)


def test_a_parameter_at_its_limit_keeps_its_curvature():
    _, _, view = minuit("uncorrelated")
    errors, covariance = np.array(view.errors), np.array(view.covariance)
    assert errors[0] > 0.0
    np.testing.assert_allclose(view.hesse().errors, errors, rtol=1e-9)
    np.testing.assert_allclose(view.covariance, covariance, rtol=1e-9)
    assert [view.init_params[0].value, view.init_params[0].error] == [1.0, 0.0]
