"""Results: frozen, comparable, pickled, JSON, and one screen when they are shown."""

import copy
import json
import math
import pickle
import warnings

import nextstat
import numpy as np
import pytest


def _results(root):
    model = nextstat.load_workspace(root / "examples/shapes.json")
    return [
        nextstat.fit(model, minos="mu", multi_start=2),
        nextstat.fit(model, covariance=False),
        nextstat.hypotest(model),
        nextstat.hypotest(model, test_stat="t"),
        nextstat.significance(model),
        nextstat.upper_limit(model),
        nextstat.profile_scan(model, points=5),
        nextstat.profile_scan(model, parameter=("mu", "norm_ttbar"), points=3),
        nextstat.contours(model, ("mu", "norm_ttbar"), points=8),
        nextstat.ranking(model, groups={"statistics": "mc_stat_*"}),
        nextstat.fit_toys(model, n_toys=10, poi_uncertainty=True),
        nextstat.fit_toys(model, n_toys=1),
        nextstat.hypotest_toys(model, n_toys=10),
        nextstat.goodness_of_fit(model),
        nextstat.goodness_of_fit(model, toys=10),
        nextstat.yields(model),
        nextstat.report(model),
        nextstat.limit_scan(model, {"norm_ttbar": [0.9, 1.1]}),
        nextstat.every_poi(nextstat.load_workspace(root / "examples/shapes.json", poi=["mu", "norm_ttbar"]), nextstat.upper_limit),
        nextstat.check(model),
        nextstat.inspect(model),
        nextstat.every_patch(root / "examples/background.json", root / "examples/signals.json", nextstat.hypotest),
        nextstat.exclusion(nextstat.every_patch(root / "examples/background.json", root / "examples/plane.json", nextstat.hypotest)),
        nextstat.command(["digest", root / "examples/simple.json"]),
    ]


@pytest.fixture(scope="module")
def results(root):
    return _results(root)


def _name(result):
    return type(result).__name__


def test_results_are_frozen(results):
    for result in results:
        field = next(iter(result._fields))
        with pytest.raises(AttributeError, match="is frozen"):
            setattr(result, field, 1)
        with pytest.raises(AttributeError, match="is frozen"):
            result.other = 1
        with pytest.raises(AttributeError, match="is frozen"):
            delattr(result, field)
        with pytest.raises(TypeError):
            hash(result)
        for name, value in result._fields.items():
            assert not isinstance(value, list), (_name(result), name)
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = 0


def _parts(value):
    """Everything in a value."""
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ():
        yield from _parts(part)


def _whole(result):
    """All fields, those that are computed when they are looked at too."""
    return [getattr(result, name) for name in dir(result) if not name.startswith("_") and not callable(getattr(result, name))]


def _arrays(array):
    while isinstance(array, np.ndarray):
        yield array
        array = array.base


def test_results_are_frozen_to_the_last_entry(results):
    changes = [
        lambda record: record.__setitem__("pull", 3),
        lambda record: record.update(pull=3),
        lambda record: record.pop(next(iter(record), "pull")),
        lambda record: record.clear(),
        lambda record: record.setdefault("new", 1),
        lambda record: record.__ior__({"new": 1}),
    ]
    seen = set()
    for result in results:
        for again in (result, pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            for value in _whole(again):
                for part in _parts(value):
                    assert not isinstance(part, (list, set)), _name(result)
                    seen.add(type(part))
                    if isinstance(part, dict):
                        for change in changes:
                            with pytest.raises(TypeError, match="results are frozen"):
                                change(part)
                    if isinstance(part, np.ndarray):
                        for array in _arrays(part):
                            with pytest.raises(ValueError, match="cannot set WRITEABLE flag"):
                                array.setflags(write=True)
    assert np.ndarray in seen and any(issubclass(kind, dict) for kind in seen)


def test_records_are_dictionaries(results):
    pull = results[0].pulls[0]
    assert pull == dict(pull) and json.loads(json.dumps(pull)) == pull and isinstance(pull, dict)
    changed = {**pull, "pull": 3}
    assert changed["pull"] == 3 != pull["pull"] and type(pull | {"new": 1}) is dict
    assert type(pull.copy()) is dict and copy.deepcopy(pull) == pull == pickle.loads(pickle.dumps(pull))


def test_arrays_of_the_caller_stay_the_callers():
    values = np.arange(3.0)
    result = nextstat.Result({"values": values})
    values[0] = 7
    assert result.values.tolist() == [0, 1, 2] and values.flags.writeable


def test_what_is_not_there_is_said(results):
    with pytest.raises(AttributeError, match="`FitResult` has no field `best_fit`; it has par_names, "):
        _ = results[0].best_fit
    assert not hasattr(results[0], "__array__")
    with pytest.raises(nextstat.ParameterError, match="the model has no parameter `Mu`"):
        results[0].value("Mu")


def test_a_fit_with_one_minimum_has_no_list_of_minima(root):
    fit = nextstat.fit(nextstat.load_workspace(root / "examples/simple.json"))
    assert fit.minima == () and "minima" not in json.loads(fit.to_json())
    fit = nextstat.fit(nextstat.load_workspace(root / "examples/eft.json"))
    assert len(fit.minima) == 4


def test_results_are_pickled(results):
    for result in results:
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
            assert type(again) is type(result) and again == result and repr(again) == repr(result)
            for value in again._fields.values():
                assert not isinstance(value, np.ndarray) or not value.flags.writeable


def test_pickles_find_results_by_their_public_names(results):
    for result in results:
        assert f"nextstat\n{_name(result)}".encode() in pickle.dumps(result, 0)
    from nextstat import _results

    assert _results.FitResult is nextstat.FitResult


def test_results_are_json(results):
    for result in results:
        document = result.to_dict()
        assert json.loads(result.to_json()) == document, _name(result)
        assert json.loads(result.to_json(indent=2)) == document


def test_all_fields_are_listed_and_typed(results):
    for result in results:
        assert set(result._fields) <= set(dir(result))
        written = [name for kind in type(result).__mro__ for name in getattr(kind, "__annotations__", ())]
        internal = {"_about", "_alarm", "_later", "_provenance", "_schema", "_has_provenance"}
        of_discoveries = {"Z_obs", "p0_obs", "p0_obs_error", "Z_exp", "p0_exp", "p0_exp_errors"}
        assert set(written) - {"minima", *of_discoveries, *internal} <= {*result._fields, "_fields"}, _name(result)


def test_one_screen(results):
    for result in results:
        text = repr(result)
        lines = text.splitlines()
        assert lines[0] == _name(result)
        assert len(lines) <= 50 and max(map(len, lines)) <= 160, text
        assert "nan" not in text and "object at" not in text and "entries" not in text, text
        table = result._repr_html_()
        assert table.startswith("<div><b>") and table.endswith("</div>") and table.count("<table>") == table.count("</table>")


def test_a_fit_shows_its_parameter_of_interest_first_and_its_strongest_pulls(results):
    lines = repr(results[0]).splitlines()
    assert lines[1] == "  data: observed" and lines[2].split()[:2] == ["converged", "yes:"]
    assert lines[4].split()[:4] == ["mu", "1.37", "±", "0.74"] and "MINOS" in lines[4]
    start = next(i for i, line in enumerate(lines) if "strongest pulls" in line)
    pulls = [abs(float(line.split()[4])) for line in lines[start + 1 : start + 11]]
    assert pulls == sorted(pulls, reverse=True)


def test_markup_in_names_is_harmless(root):
    workspace = json.loads((root / "examples/simple.json").read_text().replace('"mu"', '"<b>mu</b>"'))
    result = nextstat.fit(nextstat.model_of(workspace))
    assert "<b>mu</b>" not in result._repr_html_() and "&lt;b&gt;mu&lt;/b&gt;" in result._repr_html_()


def _bad_model(root):
    """A bin in which events were observed and none can be expected."""
    workspace = json.loads((root / "examples/simple.json").read_text())
    for sample in workspace["channels"][0]["samples"]:
        sample["data"][0] = 0.0
    return nextstat.model_of(workspace)


def test_results_not_to_be_trusted_warn(root):
    model = _bad_model(root)
    for call in (
        nextstat.fit,
        nextstat.hypotest,
        nextstat.significance,
        nextstat.upper_limit,
        nextstat.profile_scan,
        nextstat.ranking,
        nextstat.yields,
        nextstat.report,
        nextstat.goodness_of_fit,
    ):
        with pytest.warns(nextstat.NextstatWarning) as caught:
            result = call(model)
        assert caught[0].filename == __file__, call
        assert result.converged is False, call
        assert "NO" in repr(result) and "warning:" in repr(result), repr(result)
        assert result.warnings and "do not use these numbers" in result._repr_html_()
        json.dumps(result.to_dict(), allow_nan=False)
    with pytest.raises(nextstat.ToyError):
        nextstat.fit_toys(model)


def test_fixed_auxiliary_data_warn(root):
    model = nextstat.load_workspace(root / "examples/simple.json")
    for call in (
        lambda: nextstat.throw_toys(model, model.init, n_toys=1, aux="fixed"),
        lambda: nextstat.fit_toys(model, n_toys=1, aux="fixed"),
        lambda: nextstat.hypotest_toys(model, n_toys=5, aux="fixed"),
        lambda: nextstat.goodness_of_fit(model, toys=5, aux="fixed"),
    ):
        with pytest.warns(nextstat.NextstatWarning, match="fluctuate too little") as caught:
            call()
        assert caught[0].filename == __file__


def test_tests_and_limits_with_warnings_warn(root):
    model = nextstat.load_workspace(root / "examples/simple.json")
    for call in (
        lambda: nextstat.upper_limit(model, bounds={"mu": (0.0, 0.5)}),
        lambda: nextstat.hypotest(model, 1.0, bounds={"mu": (0.0, 0.5)}),
    ):
        with pytest.warns(nextstat.NextstatWarning) as said:
            result = call()
        assert result.warnings and str(said[0].message) == "; ".join(result.warnings)
        assert said[0].filename == __file__


def test_zeros_have_no_sign_and_levels_are_not_rounded_to_certainty(root):
    from nextstat import _views

    assert _views.shown_number(-0.0) == "0"
    model = nextstat.load_workspace(root / "examples/simple.json")
    with pytest.warns(nextstat.NextstatWarning, match="above the range"):
        assert "1 - 1e-300" in repr(nextstat.upper_limit(model, level=1e-300))


def test_good_results_do_not_warn(root):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _results(root)


def test_numbers_that_are_not_there(root):
    model = nextstat.load_workspace(root / "examples/shapes.json")
    result = nextstat.fit(model, fixed={"mu": 1.0})
    assert math.isnan(result.uncertainty("mu")) and result.to_dict()["uncertainties"][model.poi_index] is None
    assert result.poi["uncertainty"] is None and result.value("mu") == 1.0
    assert nextstat.fit(nextstat.load_workspace(root / "examples/shapes.json", poi="none")).poi is None
    assert nextstat.fit(model, covariance=False).covariance is None


def test_toys_in_parts_are_the_toys_of_one_run(root):
    model = nextstat.load_workspace(root / "examples/shapes.json")
    whole = nextstat.fit_toys(model, n_toys=30, seed=5)
    parts = [nextstat.fit_toys(model, n_toys=n, first=first, seed=5, threads=1) for first, n in ((0, 7), (7, 23))]
    assert (np.concatenate([part.bestfit for part in parts]) == whole.bestfit).all()
    assert (np.concatenate([part.toys for part in parts]) == whole.toys).all()
    data = nextstat.throw_toys(model, whole.thrown_at, n_toys=3, first=4, seed=5)
    refitted = nextstat.fit(model, data=data[1], init=whole.thrown_at)
    assert abs(refitted.nll - whole.nll[5]) < 1e-9


def test_files_of_toys_are_the_commands(root, tmp_path):
    path = root / "examples/shapes.json"
    toys = nextstat.fit_toys(nextstat.load_workspace(path), n_toys=25, seed=5, poi_uncertainty=True)
    toys.save(tmp_path / "ours.npy")
    assert nextstat.load_toys(tmp_path / "ours.npy") == toys
    theirs = tmp_path / "theirs.npy"
    nextstat.command(["toys", path, "--n-toys", "25", "--seed", "5", "--poi-uncertainty", "--output-file", theirs])
    assert theirs.read_bytes() == (tmp_path / "ours.npy").read_bytes()
    checksums = [json.loads((tmp_path / f"{name}.npy.json").read_text())["checksums"] for name in ("ours", "theirs")]
    assert checksums[0] == checksums[1]
    assert nextstat.load_toys(theirs) == toys
    merged = nextstat.command(["toys", "merge", tmp_path / "ours.npy"]).json()
    assert [row["bestfit"] for row in merged["toys"]] == toys.bestfit.tolist()
    with pytest.raises(nextstat.ToyError, match=r"does not end in `\.npy`"):
        toys.save(tmp_path / "ours.txt")
    nextstat.command(["hypotest-toys", path, "--n-toys", "5", "--toys-file", theirs, "--output-file", tmp_path / "out.json"])
    with pytest.raises(nextstat.ToyError, match="is not of fits of toys"):
        nextstat.load_toys(theirs)
