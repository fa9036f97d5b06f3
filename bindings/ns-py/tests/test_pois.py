"""Several parameters of interest: results by name, pickles, and limits at values of another one."""

import pickle

import nextstat
import numpy as np
import pytest


@pytest.fixture(scope="module")
def both(root):
    return nextstat.load_workspace(root / "examples/shapes.json", poi=["mu", "norm_ttbar"])


def test_each_result_is_that_of_the_parameter_alone(both, root):
    for question in (nextstat.upper_limit, nextstat.significance, nextstat.hypotest, nextstat.ranking):
        results = nextstat.every_poi(both, question)
        assert len(results) == 2 and results.names == ("mu", "norm_ttbar")
        for name in results.names:
            alone = nextstat.load_workspace(root / "examples/shapes.json", poi=name)
            assert results[name] == question(alone) == question(both, poi=name), name
            assert question(both, poi=name).provenance == question(alone).provenance
        assert results.provenance["pois"] == ("mu", "norm_ttbar")
    with pytest.raises(nextstat.ParameterError, match="there is no result for the parameter `lumi`"):
        results["lumi"]


def test_results_of_many_data_sets_have_one_verdict(both):
    toys = nextstat.every_poi(both, lambda model: nextstat.fit_toys(model, n_toys=5, seed=1))
    assert toys.converged is True and toys["mu"].converged.shape == (5,)
    data = nextstat.throw_toys(both, nextstat.fit(both).bestfit, n_toys=2, seed=1)
    assert nextstat.every_poi(both, lambda model: nextstat.fits(model, data)).converged is True


def test_a_function_for_one_warns_that_there_are_several(both):
    with pytest.warns(nextstat.NextstatWarning, match="2 parameters of interest, and this result is for the first, `mu`"):
        nextstat.upper_limit(both)


def test_a_model_without_a_parameter_of_interest_is_refused(root):
    model = nextstat.load_workspace(root / "examples/shapes.json", poi=[])
    with pytest.raises(nextstat.ParameterError, match="`every_poi` needs a parameter of interest"):
        nextstat.every_poi(model, nextstat.upper_limit)


def test_a_model_with_another_parameter_of_interest_survives_a_pickle(both):
    model = pickle.loads(pickle.dumps(both.with_poi("norm_ttbar")))
    assert model.pois == ["norm_ttbar"] and both.pois == ["mu", "norm_ttbar"]
    assert nextstat.upper_limit(model) == nextstat.upper_limit(both, poi="norm_ttbar")


def test_limits_at_values_are_those_with_the_parameter_fixed(both):
    values = np.array([1.2, 0.8, 1.0])
    scan = nextstat.limit_scan(both, {"norm_ttbar": values})
    assert (scan.values == values).all() and scan.expected.shape == (3, 5)
    for i, value in enumerate(values):
        alone = nextstat.upper_limit(both, poi="mu", fixed={"norm_ttbar": value})
        assert scan.observed[i] == alone.observed and tuple(scan.expected[i]) == alone.expected
    assert nextstat.limit_scan(both, {"norm_ttbar": values}, threads=1) == scan
    other = nextstat.limit_scan(both, {"mu": [0.5, 1.5]})
    assert other.observed.tolist() == nextstat.limit_scan(both.with_poi("norm_ttbar"), {"mu": [0.5, 1.5]}).observed.tolist()


def test_values_without_a_limit_are_nan():
    def sample(name, data, *names):
        return {"name": name, "data": [data], "modifiers": [{"name": n, "type": "normfactor", "data": None} for n in names]}

    model = nextstat.model_of({
        "version": "1.0.0",
        "channels": [
            {"name": "A", "samples": [sample("signal", 5.0, "mu"), sample("known", 50.0)]},
            {"name": "B", "samples": [sample("extra", 10.0, "b"), sample("known", 45.0)]},
        ],
        "observations": [{"name": "A", "data": [53.0]}, {"name": "B", "data": [50.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    })
    # At b = -10 channel B has -55 events.
    with pytest.warns(nextstat.NextstatWarning, match="`b` = -10: "):
        scan = nextstat.limit_scan(model, {"b": [-10, 0]}, bounds={"b": (-10, 10)})
    assert not scan.converged and scan.complete
    assert np.isnan(scan.observed[0]) and np.isnan(scan.expected[0]).all() and np.isfinite(scan.observed[1])


def test_limits_at_values_are_drawn(both):
    pytest.importorskip("matplotlib").use("agg")
    import nextstat.plot

    scan = nextstat.limit_scan(both, {"norm_ttbar": [0.8, 1.0, 1.2]})
    ax = nextstat.plot.limits(scan.values, scan.limits, log=False, xlabel="norm_ttbar")
    [line] = [line for line in ax.lines if line.get_label() == "Observed"]
    assert (line.get_ydata() == scan.observed).all()
