"""Points of a model as dictionaries of values by name."""

import collections
import types

import nextstat
import pytest


@pytest.fixture(scope="module")
def model(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


def test_points_are_accepted_by_name(model):
    values = {"mu": 0.25, "mc_stat_*": 1.01}
    params = model.init.copy()
    params[[name == "mu" for name in model.par_names]] = 0.25
    params[[name.startswith("mc_stat_") for name in model.par_names]] = 1.01
    assert (params != model.init).sum() > 2
    for point in (values, types.MappingProxyType(values), collections.OrderedDict(values)):
        assert model.nll(point) == model.nll(params)
        assert model.nll_and_grad(point)[1].tolist() == model.nll_and_grad(params)[1].tolist()
        assert (model.expected_data(point) == model.expected_data(params)).all()
        assert model.expected_data(point, aux=False).shape == (model.n_bins,)
        assert model.diagnose(point) is None
        thrown = nextstat.throw_toys(model, point, n_toys=2)
        assert (thrown == nextstat.throw_toys(model, params, n_toys=2)).all()
        assert nextstat.fit_toys(model, point, n_toys=2) == nextstat.fit_toys(model, params, n_toys=2)
        assert (nextstat.asimov_data(model, point) == nextstat.asimov_data(model, params)).all()
    assert "events expected" in model.diagnose({"mu": -50.0})


@pytest.mark.parametrize(
    "call",
    [
        lambda model, point: model.nll(point),
        lambda model, point: model.nll_and_grad(point),
        lambda model, point: model.expected_data(point),
        lambda model, point: model.diagnose(point),
        lambda model, point: nextstat.throw_toys(model, point, n_toys=1),
        lambda model, point: nextstat.fit_toys(model, point, n_toys=1),
        lambda model, point: nextstat.asimov_data(model, point),
    ],
)
def test_mistakes_in_points_are_explained(model, call):
    with pytest.raises(nextstat.ParameterError, match="`params` names the parameter `norm_tbar`, which") as refused:
        call(model, {"norm_tbar": 1.0})
    assert refused.value.hint == "parameter names are case sensitive; did you mean `norm_ttbar`?"
    with pytest.raises(nextstat.ParameterError, match="`params` sets `mu` to NaN, which is not a finite number"):
        call(model, {"mu": float("nan")})
    with pytest.raises(TypeError, match="the value of `mu` must be a number, not `'1'`"):
        call(model, {"mu": "1"})
    with pytest.raises(TypeError, match="`params` has names of parameters, and `3` is not a name"):
        call(model, {3: 1.0})
