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
    factors = [{"name": name, "type": "normfactor", "data": None} for name in ("mu", "twin")]
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
    [("True", True), ("TRUE", True), ("yes", True), ("No", False), ("off", False), ("false", False), ("1", 1), ("0.1", 0.1), ("null", None)]
    + [("~", None), ("", None), ("tRUE", "tRUE"), ("SLSQP", "SLSQP"), ("a=b", "a=b"), ("[1, 2]", [1, 2])],
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
