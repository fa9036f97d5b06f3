"""Models: their configuration, evaluations and fits."""

import numpy as np
import pyhf
import pytest
from both import FITTED, box_of, close, models, names, same_shape
from specifications import data_of, points_of

import nextstat.pyhf as ours

ATTRIBUTES = (
    "par_names par_order parameters modifiers channels samples channel_nbins channel_slices nmaindata nauxdata auxdata auxdata_order npars "
    "poi_name poi_index modifier_settings"
).split()


@names
@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_config(name, attribute):
    theirs, mine = (getattr(model.config, attribute) for model in models(name))
    if attribute == "auxdata":
        close(theirs, mine)
    else:
        assert theirs == mine


@names
@pytest.mark.parametrize("method", ["suggested_init", "suggested_bounds", "suggested_fixed"])
def test_suggestions(name, method):
    theirs, mine = (getattr(model.config, method)() for model in models(name))
    assert [list(x) if isinstance(x, (tuple, list)) else x for x in theirs] == [list(x) if isinstance(x, (tuple, list)) else x for x in mine]


@names
def test_parameter_sets(name):
    a, b = models(name)
    for parameter in a.config.par_order:
        theirs, mine = a.config.param_set(parameter), b.config.param_set(parameter)
        assert a.config.par_slice(parameter) == b.config.par_slice(parameter)
        assert type(theirs).__name__ == type(mine).__name__
        assert theirs.suggested_fixed == mine.suggested_fixed
        for attribute in ("name", "n_parameters", "is_scalar", "constrained", "pdf_type"):
            assert getattr(theirs, attribute, None) == getattr(mine, attribute, None), attribute
        for attribute in ("auxdata", "factors", "sigmas", "suggested_init"):
            assert hasattr(theirs, attribute) == hasattr(mine, attribute), attribute
            if hasattr(theirs, attribute):
                close(getattr(theirs, attribute), getattr(mine, attribute))
        if theirs.constrained:
            close(theirs.width(), mine.width())


@names
def test_set_poi(name):
    for model in models(name):
        model.config.set_poi(None)
        assert model.config.poi_index is None and model.config.poi_name is None
        model.config.set_poi("mu")
        assert model.config.poi_index == model.config.par_slice("mu").start

@names
@pytest.mark.parametrize("function", ["expected_data", "expected_actualdata", "expected_auxdata"])
def test_expectations(name, function):
    a, b = models(name)
    for point in points_of(a):
        if function == "expected_auxdata" and not a.config.nauxdata:
            continue
        theirs, mine = getattr(a, function)(point), getattr(b, function)(point)
        close(theirs, mine)
        same_shape(theirs, mine)


@names
def test_densities(name):
    a, b = models(name)
    data = data_of(a, name)
    n = a.config.nmaindata
    for point in points_of(a):
        same_shape(a.logpdf(point, data), b.logpdf(point, data))
        close(a.logpdf(point, data), b.logpdf(point, data))
        close(a.pdf(point, data), b.pdf(point, data), rtol=1e-8)
        close(a.mainlogpdf(np.array(data[:n]), point), b.mainlogpdf(np.array(data[:n]), point))
        if a.config.nauxdata:
            close(a.constraint_logpdf(np.array(data[n:]), point), b.constraint_logpdf(np.array(data[n:]), point))
        close(a.make_pdf(pyhf.tensorlib.astensor(point)).log_prob(np.array(data)), b.make_pdf(point).log_prob(np.array(data)))
        close(pyhf.infer.mle.twice_nll(point, data, a), ours.infer.mle.twice_nll(point, data, b))


@names
def test_yields_by_sample(name):
    a, b = models(name)
    for point in points_of(a):
        close(a.main_model.expected_data(point, return_by_sample=True), b.main_model.expected_data(point, return_by_sample=True))
    close(a.nominal_rates, b.nominal_rates)


@names
def test_samples_with_a_seed(name):
    drawn = []
    for model in models(name):
        np.random.seed(7)
        drawn.append(model.make_pdf(np.array(model.config.suggested_init())).sample((20,)))
    close(*drawn)


@names
@pytest.mark.parametrize("codes", [("code4", "code4p"), ("code1", "code0"), ("code1", "code2")])
def test_interpolation_settings(name, codes):
    settings = {"normsys": {"interpcode": codes[0]}, "histosys": {"interpcode": codes[1]}}
    a, b = models(name, modifier_settings=settings)
    assert a.config.modifier_settings == b.config.modifier_settings
    for point in points_of(a):
        close(a.expected_data(point), b.expected_data(point))


@names
def test_batches(name):
    a, b = models(name, batch_size=4)
    points, data = points_of(a, 4), [data_of(a, name)] * 4
    for function in ("expected_data", "expected_actualdata"):
        close(getattr(a, function)(points), getattr(b, function)(points))
    close(a.logpdf(points, data), b.logpdf(points, data))


@pytest.mark.parametrize("clip", [{"clip_sample_data": 0.0}, {"clip_bin_data": 0.0}])
def test_clipping(clip):
    a, b = models("correlated", **clip)
    for point in ([14.0, 0.0], [-12.0, 1.0], [1.0, -9.0]):
        close(a.expected_data(point), b.expected_data(point))
        with np.errstate(all="ignore"):
            close(np.nan_to_num(a.logpdf(point, data_of(a, "correlated"))), np.nan_to_num(b.logpdf(point, data_of(b, "correlated"))))
    theirs, mine = (package.infer.mle.fit(data_of(model, "correlated"), model, return_fitted_val=True)[1] for package, model in ((pyhf, a), (ours, b)))
    assert mine <= theirs + 1e-7 and theirs - mine < 5e-3

@names
@pytest.mark.parametrize("mu", [None, 0.0, 1.3])
def test_fits(name, mu):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        data = data_of(model, name)
        fit = package.infer.mle.fit if mu is None else lambda *args, **kwargs: package.infer.mle.fixed_poi_fit(mu, *args, **kwargs)
        results.append(fit(data, model, return_fitted_val=True))
    (theirs, their_value), (mine, my_value) = results
    same_shape(*results)
    assert my_value <= their_value + 1e-7
    assert their_value - my_value < 5e-3
    if name != "shapefactor":
        close(theirs, mine, rtol=2e-2, atol=5e-3)


@names
def test_fits_with_settings(name):
    for package, model in zip((pyhf, ours), models(name)):
        init, bounds, fixed = box_of(model)
        fixed[-1], init[-1] = True, 0.5 * (init[-1] + bounds[-1][1])
        bounds[0] = (0.1, 0.9)
        init[0] = 0.4
        pars = package.infer.mle.fit(data_of(model, name), model, init_pars=init, par_bounds=bounds, fixed_params=fixed)
        assert pars[-1] == init[-1] and 0.1 <= pars[0] <= 0.9


@names
def test_a_fixed_parameter_of_the_specification_can_be_freed(name):
    values = []
    for package, model in zip((pyhf, ours), models(name)):
        _, value = package.infer.mle.fit(data_of(model, name), model, fixed_params=[False] * model.config.npars, return_fitted_val=True)
        values.append(float(value))
    assert values[1] <= values[0] + 1e-7 and values[0] - values[1] < 5e-3


@pytest.mark.parametrize("name", ["uncorrelated", "two_channels", "staterror"])
def test_uncertainties_and_correlations(name):
    results = []
    for package, model in zip((pyhf, ours), models(name)):
        package.set_backend("numpy", package.optimize.minuit_optimizer())
        flags = {"return_uncertainties": True, "return_correlations": True, "return_fitted_val": True, "return_result_obj": True}
        data = package.tensorlib.astensor(model.expected_data([1.0] * 1 + model.config.suggested_init()[1:]))
        results.append(package.infer.mle.fit(data, model, **flags))
    (theirs, their_corr, their_value, their_result), (mine, my_corr, my_value, my_result) = results
    close(theirs[:, 0], mine[:, 0], rtol=5e-3, atol=5e-3)
    # Minuit's errors are those of its inner coordinates, which a bound bends.
    close(theirs[:, 1], mine[:, 1], rtol=8e-2, atol=2e-3)
    close(their_corr, my_corr, atol=2e-2, rtol=1e-1)
    assert my_value <= their_value + 1e-6
    assert my_result.minuit.valid and their_result.minuit.valid
    assert their_result.minuit.parameters == my_result.minuit.parameters
    poi = "mu"
    for result in (their_result, my_result):
        result.minuit.minos(poi)
    a, b = their_result.minuit.merrors[poi], my_result.minuit.merrors[poi]
    close([a.lower, a.upper], [b.lower, b.upper], rtol=1e-2)


@names
def test_what_iminuit_offers_after_a_fit(name):
    views = []
    for package, model in zip((pyhf, ours), models(name)):
        package.set_backend("numpy", package.optimize.minuit_optimizer(tolerance=1e-4))
        result = package.infer.mle.fit(data_of(model, name), model, return_result_obj=True)[1]
        views.append(result.minuit)
    theirs, mine = views
    other = next(par for par, is_fixed in zip(theirs.parameters, theirs.fixed) if par != "mu" and not is_fixed)
    for cl in (0.95, 2):
        a, b = (view.minos("mu", cl=cl).merrors["mu"] for view in views)
        close([a.lower, a.upper], [b.lower, b.upper], **FITTED)
        assert (a.is_valid, a.at_lower_limit, a.at_upper_limit) == (b.is_valid, b.at_lower_limit, b.at_upper_limit)
    close(theirs.fcn(list(theirs.values)), mine.fcn(theirs.values))
    close(*(view.mnprofile("mu", size=4, bound=(0.2, 1.5))[1] for view in views), **FITTED)
    close(*(view.profile("mu", size=4, bound=(0.2, 1.5))[1] for view in views), **FITTED)
    close(*(view.contour("mu", other, size=3, bound=((0.3, 1.5), (0.5, 1.2)))[2] for view in views), **FITTED)
    outlines = [view.mncontour("mu", other, size=60) for view in views]
    # Both are polygons, with corners at different places of one line.
    close(*(np.concatenate([line.min(axis=0), line.max(axis=0)]) for line in outlines), rtol=2e-2, atol=2e-2)
    for view in views:
        view.values[other], view.fixed[other] = 0.9, True
        view.migrad()
    close(theirs.values["mu"], mine.values["mu"], **FITTED)
    assert mine.fval <= theirs.fval + 1e-6
