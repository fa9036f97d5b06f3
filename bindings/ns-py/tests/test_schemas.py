"""Every result is a document that is valid by its JSON schema."""

import copy
import json

import nextstat
import pytest

jsonschema = pytest.importorskip("jsonschema")

#: Schemas of documents that Python has no result for.
OF_THE_COMMAND = {"evaluate", "devices", "patchset-inspect", "patchset-verify"}


def _results(root):
    """A result of every class, and those with parts that others lack."""
    path = root / "examples/shapes.json"
    model = nextstat.load_workspace(path)
    background, signals = root / "examples/background.json", root / "examples/signals.json"
    by_fit = nextstat.fit(model)
    return [
        by_fit,
        nextstat.fit(model, minos="mu", multi_start=2),
        nextstat.fit(model, covariance=False, mask="signal_region[0]", fixed={"norm_ttbar": 1.0}),
        nextstat.fit(model, init=model.init, data=model.data, bounds={"mu": (-1.0, 5.0)}),
        nextstat.fit(nextstat.load_workspace(path, poi="none", interp_defaults="pyhf")),
        nextstat.goodness_of_fit(model),
        nextstat.goodness_of_fit(model, toys=10),
        nextstat.report(model),
        nextstat.yields(model),
        nextstat.yields(model, fit=by_fit),
        nextstat.report(model, fit=by_fit),
        nextstat.goodness_of_fit(model, fit=by_fit),
        nextstat.fits(model, [model.data, model.data + 1.0]),
        nextstat.combine([root / "examples/simple.json", path]),
        nextstat.profile_scan(model, points=3),
        nextstat.profile_scan(model, parameter=("mu", "norm_ttbar"), points=2),
        nextstat.contours(model, ("mu", "norm_ttbar"), points=4),
        nextstat.ranking(model, groups={"statistics": "mc_stat_*"}),
        nextstat.hypotest(model),
        nextstat.hypotest(model, test_stat="t"),
        nextstat.upper_limit(model),
        nextstat.significance(model),
        nextstat.limit_scan(model, {"lumi": [0.99, 1.0]}),
        nextstat.every_poi(nextstat.load_workspace(path, poi=["mu", "lumi"]), nextstat.upper_limit),
        nextstat.every_poi(nextstat.load_workspace(path, poi=["mu", "lumi"]), nextstat.fit),
        nextstat.every_poi(model, nextstat.upper_limit),
        nextstat.fit_toys(model, n_toys=5, poi_uncertainty=True),
        nextstat.hypotest_toys(model, n_toys=10),
        nextstat.interval(model, max_toys=1000),
        nextstat.region(model, {"mu": [0.0, 2.0, 4.0], "norm_ttbar": [0.9, 1.0, 1.1]}, max_toys=1000),
        nextstat.coverage(model, [0.0, 1.0], n_toys=50),
        nextstat.coverage(model, [1.0], methods="fc", n_toys=20, max_inner_toys=40),
        nextstat.upper_limit_toys(model, max_toys=1000),
        nextstat.upper_limit_toys(model, expected=False, criterion="CLsb", max_toys=1000),
        nextstat.significance_toys(model, max_toys=500),
        nextstat.significance_toys(model, max_toys=500, importance_sampling=True),
        nextstat.every_patch(background, signals, nextstat.upper_limit),
        nextstat.every_patch(background, signals, nextstat.goodness_of_fit),
        nextstat.every_patch(background, signals, lambda model: nextstat.profile_scan(model, points=2)),
        nextstat.every_patch(background, signals, lambda model: model.poi),
        nextstat.every_patch(background, signals, nextstat.check),
        nextstat.search(background, signals, toys=20, samples=200, limits=True, correlations=True),
        nextstat.simplify(path, "signal_region", fixed={"norm_ttbar": 1}),
        nextstat.simplify(background, "signal_region", signals, fixed={"norm_ttbar": 1}, compare=True),
        nextstat.Scanner(background).scan({"signal_region": [[1.0, 2.0, 3.0, 4.0], [0.0] * 4]}, limits=True),
        nextstat.Scanner(background).scan({"signal_region": [[1.0, 2.0, 3.0, 4.0]]}),
        nextstat.exclusion(nextstat.every_patch(background, root / "examples/plane.json", nextstat.upper_limit)),
        nextstat.check(model),
        nextstat.inspect(model),
    ]


@pytest.fixture(scope="module")
def results(root):
    return _results(root)


def _validator(name):
    schema = nextstat.json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def _name(document):
    return document["$schema"].split(":")[3]


def test_results_are_valid_by_their_schemas(results, tmp_path):
    names = set()
    for result in results:
        document = result.to_dict()
        errors = [f"{error.json_path}: {error.message[:300]}" for error in _validator(_name(document)).iter_errors(document)]
        assert not errors, (type(result).__name__, errors)
        names.add(_name(document))
    assert names | OF_THE_COMMAND == set(nextstat._nextstat.SCHEMAS)
    toys = next(result for result in results if isinstance(result, nextstat.ToysResult))
    toys.save(tmp_path / "toys.npy")
    _validator("toys").validate(nextstat.load_toys(tmp_path / "toys.npy").to_dict())


def test_a_result_that_did_not_converge_is_valid(root):
    workspace = json.loads((root / "examples/simple.json").read_text())
    for sample in workspace["channels"][0]["samples"]:
        sample["data"][0] = 0.0
    model = nextstat.model_of(workspace)
    for call in (nextstat.fit, nextstat.hypotest, nextstat.significance, nextstat.upper_limit, nextstat.profile_scan, nextstat.ranking, nextstat.report):
        with pytest.warns(nextstat.NextstatWarning):
            document = call(model).to_dict()
        _validator(_name(document)).validate(document)
        assert document["converged"] is False


def test_a_missing_and_an_unknown_key_are_refused(results):
    for result in results:
        document = result.to_dict()
        validator = _validator(_name(document))
        for key in ("$schema", "nextstat_version"):
            broken = copy.copy(document)
            del broken[key]
            assert not validator.is_valid(broken), (key, type(result).__name__)
        assert not validator.is_valid({**document, "unknown": 1})


def test_patch_sets_are_valid_by_their_schemas(root):
    patches = nextstat.PatchSet(root / "examples/signals.json")
    _validator("patchset-verify").validate(patches.verify(root / "examples/background.json"))


def test_an_unknown_schema_has_a_hint():
    with pytest.raises(nextstat.ParameterError, match="there is no schema `hypotset`") as raised:
        nextstat.json_schema("hypotset")
    assert "did you mean `hypotest`?" in "".join(getattr(raised.value, "__notes__", [str(raised.value)]))


def test_the_schemas_are_the_commands():
    assert nextstat.command(["schema"]).output.split() == list(nextstat._nextstat.SCHEMAS)
    assert nextstat.command(["schema", "fit"]).json() == nextstat.json_schema("fit")


def test_the_parameter_of_interest_is_a_record(root):
    poi = nextstat.fit(nextstat.load_workspace(root / "examples/simple.json")).poi
    assert poi.name == poi["name"] == "mu" and poi.index == 0
    assert repr(poi) == "Poi(name='mu', index=0, bestfit=0.72361, uncertainty=0.56098, statistical=0.4866, systematic=0.27914)"
    with pytest.raises(AttributeError, match="has no `value`; it has bestfit, index, name"):
        _ = poi.value
    with pytest.raises(TypeError, match="frozen"):
        poi.bestfit = 1.0
    assert copy.deepcopy(poi) == poi and type(copy.deepcopy(poi)) is type(poi)
