"""Arguments: hints about those that are misspelled, and levels that are not valid."""

import inspect
import pickle

import nextstat
import numpy as np
import pytest


@pytest.fixture(scope="module")
def model(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


def test_unknown_parameters_of_results_have_a_hint(model):
    result = nextstat.fit(model)
    with pytest.raises(nextstat.ParameterError, match="the model has no parameter `normttbar`") as refused:
        result.value("normttbar")
    hint = "parameter names are case sensitive; did you mean `norm_ttbar`?"
    assert refused.value.hint == hint
    assert getattr(refused.value, "__notes__", [f"hint: {hint}"]) == [f"hint: {hint}"]
    with pytest.raises(nextstat.ParameterError) as refused:
        result.uncertainty("nothing like it")
    assert refused.value.hint == "`model.par_names` lists the parameters"


MEANT = [
    (nextstat.upper_limit, "confidence_level", "cl"),
    (nextstat.upper_limit, "alpha", "level"),
    (nextstat.upper_limit, "test_stats", "test_stat"),
    (nextstat.upper_limit, "scan", "grid"),
    (nextstat.fit, "Minos", "minos"),
    (nextstat.fit, "fix", "fixed"),
    (nextstat.fit, "fixed_params", "fixed"),
    (nextstat.fit, "init_pars", "init"),
    (nextstat.fit, "par_bounds", "bounds"),
    (nextstat.fit, "confidence_level", "minos_cl"),
    (nextstat.fit, "maks", "mask"),
    (nextstat.hypotest, "poi_test", "mu"),
    (nextstat.fit_toys, "ntoys", "n_toys"),
    (nextstat.fit_toys, "n_jobs", "threads"),
    (nextstat.goodness_of_fit, "ntoys", "toys"),
    (nextstat.profile_scan, "par_name", "parameter"),
    (nextstat.ranking, "group", "groups"),
    (nextstat.contours, "confidence_level", "levels"),
]


@pytest.mark.parametrize(("function", "given", "meant"), MEANT)
def test_unknown_keywords_have_a_hint(function, given, meant):
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument '{given}'") as refused:
        function(None, **{given: 1})
    assert refused.value.hint == f"did you mean `{meant}`?"


def test_unknown_keywords_without_a_similar_one_have_none():
    with pytest.raises(TypeError, match="unexpected keyword argument 'zzz'") as refused:
        nextstat.fit(None, zzz=1)
    assert not hasattr(refused.value, "hint")


def test_every_function_with_options_gives_hints():
    options = {"data", "poi", "seed", "measurement", "progress"}
    functions = {name: getattr(nextstat, name) for name in nextstat.__all__}
    taken = {name: set(inspect.signature(found).parameters) for name, found in functions.items() if inspect.isfunction(found)}
    checked = [name for name, arguments in taken.items() if options & arguments and not name.endswith("_gpu")]
    assert len(checked) > 15
    for name in checked:
        known = min(options & taken[name])
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{known}x'") as refused:
            functions[name](None, **{f"{known}x": 1})
        assert refused.value.hint == f"did you mean `{known}`?", name


def test_functions_stay_what_they_are():
    for function in (nextstat.fit, nextstat.upper_limit, nextstat.load_workspace):
        assert pickle.loads(pickle.dumps(function)) is function
        assert "options" not in inspect.signature(function).parameters and ">>>" in function.__doc__
    assert list(inspect.signature(nextstat.throw_toys).parameters)[:2] == ["model", "params"]


@pytest.mark.parametrize("level", [0.9, np.float64(0.9), np.float32(0.5), [0.9], (0.9, 0.95), np.array([0.9]), np.array(0.9)])
def test_levels_of_intervals_are_numbers_or_sequences(model, level):
    result = nextstat.fit(model, minos="mu", minos_cl=level)
    assert [found["cl"] for found in result.minos] == np.atleast_1d(level).tolist()


@pytest.mark.parametrize("level", [95, 1, 0, -0.5, 1.5, [0.9, 95]])
def test_levels_of_intervals_are_between_0_and_1(model, level):
    with pytest.raises(nextstat.ParameterError, match=r"`\w+` is [-\d.]+, which is not between 0 and 1") as refused:
        nextstat.fit(model, minos="mu", minos_cl=level)
    assert refused.value.hint.startswith("a confidence level is a probability")
    with pytest.raises(TypeError, match="a level of `minos_cl` must be a number"):
        nextstat.fit(model, minos="mu", minos_cl="0.9")


def test_how_toys_get_auxiliary_data_is_refused_without_toys(root, model):
    fit = nextstat.fit(model, mask="signal_region")
    with pytest.raises(nextstat.ParameterError, match="`fit` is not fitted again, and `aux` is a condition of a fit"):
        nextstat.goodness_of_fit(model, fit=fit, aux="fixed")
    with pytest.raises(nextstat.ParameterError, match="`aux` is `fluctuated` or `fixed`, not `fixd`"):
        nextstat.goodness_of_fit(model, fit=fit, aux="fixd")
    with pytest.raises(nextstat.ParameterError, match="`aux` is how `toys` get their auxiliary data"):
        nextstat.goodness_of_fit(model, aux="fixed")
    # As the command refuses `--aux` with `--from`, and without `--toys`.
    for options in (["--from", "fit.json"], []):
        with pytest.raises(nextstat.NextstatError, match="--aux"):
            nextstat.command(["gof", root / "examples/shapes.json", "--aux", "fixed", *options])
