"""Workspaces, patch sets, and the faults of documents and calls."""

import copy
import json

import pyhf
import pytest
from both import close, models, names, workspaces
from specifications import SPECS, data_of, workspace

import nextstat.pyhf as ours

@names
def test_workspaces(name):
    a, b = workspaces(name)
    assert dict(a) == dict(b)
    assert a.measurement_names == b.measurement_names and a.observations == b.observations
    assert a.get_measurement() == b.get_measurement() == b.get_measurement(measurement_name="fit") == b.get_measurement(measurement_index=0)
    for attribute in ("channels", "samples", "modifiers", "channel_nbins", "channel_slices", "version", "schema"):
        assert getattr(a, attribute) == getattr(b, attribute)
    close(a.data(a.model()), b.data(b.model()))
    close(a.data(a.model(), include_auxdata=False), b.data(b.model(), include_auxdata=False))


@names
def test_build(name):
    built = []
    for package, model in zip((pyhf, ours), models(name)):
        try:
            built.append(package.Workspace.build(model, data_of(model, name)))
        except RuntimeError:
            built.append(None)
    if built[0] is None:
        assert built[1] is None
    else:
        assert json.dumps(built[0], sort_keys=True) == json.dumps(built[1], sort_keys=True)


@names
def test_sorted(name):
    a, b = (package.Workspace.sorted(w) for package, w in zip((pyhf, ours), workspaces(name)))
    assert dict(a) == dict(b)


@pytest.mark.parametrize(
    "changes",
    [
        {"channels": ["CR"]},
        {"samples": ["fakes"]},
        {"modifiers": ["xsec"]},
        {"modifier_types": ["histosys"]},
        {"modifier_types": ["normsys", "staterror"]},
        {"channels": ["nothing"]},
        {"measurements": ["fit"]},
    ],
    ids=str,
)
def test_prune(changes):
    check_same(lambda w: w.prune(**changes))


@pytest.mark.parametrize(
    "changes",
    [{"channels": {"CR": "control"}}, {"samples": {"fakes": "other"}}, {"modifiers": {"xsec": "rate", "mu": "strength"}}, {"measurements": {"fit": "best"}}, {"samples": {"nothing": "x"}}],
    ids=str,
)
def test_rename(changes):
    check_same(lambda w: w.rename(**changes))


def check_same(operation, name="two_channels"):
    """The same document, or an exception of the same name."""
    results = []
    for w in workspaces(name):
        try:
            results.append(dict(operation(w)))
        except Exception as error:
            results.append(type(error).__name__)
    assert results[0] == results[1]


def variants():
    base = workspace("two_channels")
    other = copy.deepcopy(base)
    other["channels"][1]["name"] = other["observations"][1]["name"] = "other"
    changed = copy.deepcopy(base)
    changed["channels"][0]["samples"][0]["data"] = [6.0, 9.0]
    elsewhere = copy.deepcopy(other)
    elsewhere["channels"][0]["name"] = elsewhere["observations"][0]["name"] = "another"
    elsewhere["measurements"][0]["name"] = "second"
    poi = copy.deepcopy(other)
    poi["measurements"][0]["config"]["poi"] = "fakes_norm"
    more = copy.deepcopy(base)
    more["channels"][0]["samples"].append({"name": "third", "data": [1.0, 2.0], "modifiers": []})
    settings = copy.deepcopy(other)
    settings["measurements"][0]["config"]["parameters"] = [{"name": "mu", "bounds": [[0.0, 3.0]]}]
    return {"same": base, "other": other, "changed": changed, "elsewhere": elsewhere, "poi": poi, "more": more, "settings": settings}


@pytest.mark.parametrize("right", variants())
@pytest.mark.parametrize("join", ["none", "outer", "left outer", "right outer"])
@pytest.mark.parametrize("merge", [False, True])
def test_combine(right, join, merge):
    results = []
    for package in (pyhf, ours):
        left, other = package.Workspace(workspace("two_channels")), package.Workspace(variants()[right])
        try:
            results.append(dict(package.Workspace.combine(left, other, join=join, merge_channels=merge)))
        except Exception as error:
            results.append(type(error).__name__)
    assert results[0] == results[1]


def test_patches():
    patch = [{"op": "replace", "path": "/channels/0/samples/0/data", "value": [1.0, 2.0]}]
    a, b = (w.model(patches=[patch]) for w in workspaces("two_channels"))
    assert a.spec["channels"] == b.spec["channels"]


PATCHSET = {
    "metadata": {"references": {"hepdata": "ins1234567"}, "description": "signals", "digests": {"md5": "0" * 32}, "labels": ["m1", "m2"]},
    "patches": [
        {"metadata": {"name": f"signal_{m}", "values": [m, 1]}, "patch": [{"op": "replace", "path": "/channels/0/samples/0/data/0", "value": float(m)}]}
        for m in (100, 200)
    ],
    "version": "1.0.0",
}


@pytest.mark.parametrize("key", ["signal_100", (200, 1), [100, 1]], ids=str)
def test_patchsets(key):
    results = []
    for package in (pyhf, ours):
        base = package.Workspace(workspace("two_channels"))
        spec = copy.deepcopy(PATCHSET)
        spec["metadata"]["digests"] = {"md5": package.utils.digest(base, algorithm="md5"), "sha256": package.utils.digest(base)}
        patches = package.PatchSet(spec)
        patches.verify(base)
        patch = patches[key]
        summary = [patches.version, patches.references, patches.description, patches.labels, len(patches), [p.name for p in patches], patch.name, patch.values, patch.metadata, patch.patch]
        results.append([summary, dict(patches.apply(base, key)), repr(patches).split(" at ")[0].split(".")[-1]])
    assert results[0] == results[1]


def test_digests():
    for document in (workspace("lumi"), {"b": [1, 2.5, "é"], "a": None}):
        for algorithm in ("sha256", "md5", "sha1"):
            assert pyhf.utils.digest(document, algorithm) == ours.utils.digest(document, algorithm)

def changed_spec(*path, value, name="two_channels"):
    spec = copy.deepcopy(SPECS[name])
    place = spec
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return spec


def repeated(name):
    spec = copy.deepcopy(SPECS["two_channels"])
    spec["channels"][0]["samples"][0]["modifiers"].append({"name": name, "type": "normfactor", "data": None})
    return spec


FAULTS = {
    "unknown poi": lambda p: p.Model(SPECS["lumi"], poi_name="nothing"),
    "vector poi": lambda p: p.Model(SPECS["uncorrelated"], poi_name="bkg"),
    "no channels": lambda p: p.Model({"channels": []}),
    "missing key": lambda p: p.Model({"samples": []}),
    "unknown modifier": lambda p: p.Model(changed_spec("channels", 0, "samples", 0, "modifiers", value=[{"name": "mu", "type": "foo", "data": None}])),
    "unknown modifier, not validated": lambda p: p.Model(changed_spec("channels", 0, "samples", 0, "modifiers", value=[{"name": "mu", "type": "foo", "data": None}]), validate=False),
    "text for numbers": lambda p: p.Model(changed_spec("channels", 0, "samples", 0, "data", value="12")),
    "sample of another length": lambda p: p.Model(changed_spec("channels", 0, "samples", 1, "data", value=[1.0, 2.0, 3.0])),
    "staterror of another length": lambda p: p.Model(changed_spec("channels", 0, "samples", 1, "modifiers", 0, "data", value=[1.0], name="staterror")),
    "shapesys of another length": lambda p: p.Model(changed_spec("channels", 0, "samples", 1, "modifiers", 0, "data", value=[1.0], name="uncorrelated")),
    "histosys of another length": lambda p: p.Model(changed_spec("channels", 0, "samples", 1, "modifiers", 0, "data", value={"hi_data": [1.0], "lo_data": [1.0]}, name="correlated")),
    "one name for two kinds": lambda p: p.Model(repeated("xsec")),
    "no parameters": lambda p: p.Model({"channels": [{"name": "c", "samples": [{"name": "s", "data": [1.0], "modifiers": []}]}]}, poi_name=None),
    "two settings of one parameter": lambda p: p.Model({**SPECS["correlated"], "parameters": [{"name": "mu"}, {"name": "mu"}]}),
    "settings of another length": lambda p: p.Model({**SPECS["correlated"], "parameters": [{"name": "mu", "inits": [1.0, 2.0]}]}),
    "settings without meaning": lambda p: p.Model({**SPECS["correlated"], "parameters": [{"name": "mu", "factors": [1.0]}]}),
    "options of a model": lambda p: p.Model(SPECS["correlated"], nonsense=1),
    "options of a workspace": lambda p: p.Workspace(workspace("correlated"), nonsense=1),
    "another version": lambda p: p.Workspace({**workspace("correlated"), "version": "1.2.0"}),
    "workspace without observations": lambda p: p.Workspace({key: value for key, value in workspace("correlated").items() if key != "observations"}),
    "measurement by name": lambda p: p.Workspace(workspace("correlated")).get_measurement(measurement_name="nothing"),
    "measurement by number": lambda p: p.Workspace(workspace("correlated")).get_measurement(measurement_index=9),
    "join": lambda p: p.Workspace.combine(p.Workspace(workspace("lumi")), p.Workspace(workspace("lumi")), join="inner"),
    "number of parameters": lambda p: p.Model(SPECS["correlated"]).logpdf([1.0], [1.0, 2.0, 0.0]),
    "number of data": lambda p: p.Model(SPECS["correlated"]).logpdf([1.0, 0.0], [1.0]),
    "start outside bounds": lambda p: p.infer.mle.fit(data_of(p.Model(SPECS["correlated"]), "correlated"), p.Model(SPECS["correlated"]), init_pars=[11.0, 0.0]),
    "mu outside bounds": lambda p: p.infer.hypotest(11.0, data_of(p.Model(SPECS["correlated"]), "correlated"), p.Model(SPECS["correlated"])),
    "negative mu": lambda p: p.infer.hypotest(-1.0, data_of(p.Model(SPECS["correlated"]), "correlated"), p.Model(SPECS["correlated"])),
    "hypotest without poi": lambda p: p.infer.hypotest(1.0, [50, 50, 0.0], p.Model(SPECS["correlated"], poi_name=None)),
    "fixed fit without poi": lambda p: p.infer.mle.fixed_poi_fit(1.0, [50, 50, 0.0], p.Model(SPECS["correlated"], poi_name=None)),
    "fixed poi": lambda p: p.infer.hypotest(1.0, [50, 50, 0.0], p.Model(SPECS["correlated"]), fixed_params=[False, True]),
    "unknown statistic": lambda p: p.infer.utils.get_test_stat("nothing"),
    "unknown calculator": lambda p: p.infer.hypotest(1.0, [50, 50, 0.0], p.Model(SPECS["correlated"]), calctype="nothing"),
    "unknown base distribution": lambda p: p.infer.hypotest(1.0, [50, 50, 0.0], p.Model(SPECS["correlated"]), calc_base_dist="nothing"),
    "distributions first": lambda p: p.infer.calculators.AsymptoticCalculator([50, 50, 0.0], p.Model(SPECS["correlated"])).distributions(1.0),
    "unknown backend": lambda p: p.set_backend("nothing"),
    "unknown optimizer": lambda p: p.set_backend("numpy", "nothing"),
    "unknown precision": lambda p: p.set_backend("numpy", precision="16b"),
    "options of an optimizer": lambda p: p.optimize.scipy_optimizer(nonsense=1),
    "options of a fit": lambda p: p.infer.mle.fit([50, 50, 0.0], p.Model(SPECS["correlated"]), nonsense=1),
    "unknown interpolation": lambda p: p.interpolators.get("nothing"),
    "digest of an object": lambda p: p.utils.digest(object()),
    "digest of another kind": lambda p: p.utils.digest({}, algorithm="nothing"),
    "patch that is not there": lambda p: p.PatchSet(PATCHSET)["nothing"],
    "patch set of another workspace": lambda p: p.PatchSet(PATCHSET).verify(p.Workspace(workspace("lumi"))),
    "patch set with a name twice": lambda p: p.PatchSet({**PATCHSET, "patches": [PATCHSET["patches"][0]] * 2}),
    "patch set with too few values": lambda p: p.PatchSet({**PATCHSET, "patches": [{"metadata": {"name": "a", "values": [1]}, "patch": []}]}),
    "patch set without metadata": lambda p: p.PatchSet({"patches": PATCHSET["patches"], "version": "1.0.0"}),
    "schema that is not there": lambda p: p.schema.load_schema("nothing.json"),
    "scalar set of two": lambda p: p.parameters.paramset(name="a", is_scalar=True, n_parameters=2, inits=[0, 1], bounds=[(0, 1)] * 2, fixed=False),
    "set that is partly fixed": lambda p: p.parameters.paramset(name="a", is_scalar=False, n_parameters=2, inits=[0, 1], bounds=[(0, 1)] * 2, fixed=[True, False]).suggested_fixed_as_bool,
    "name of ROOT": lambda p: p.compat.interpret_rootname("gamma_foo"),
    "type of tensors": lambda p: p.tensorlib.astensor([1], dtype="long"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_exceptions(fault):
    raised = []
    for package in (pyhf, ours):
        try:
            FAULTS[fault](package)
            raised.append(None)
        except Exception as error:
            raised.append(type(error).__name__)
    assert raised[0] is not None
    assert raised[0] == raised[1]


@pytest.mark.parametrize("name", sorted(pyhf.exceptions.__all__))
def test_names_of_exceptions(name):
    assert issubclass(getattr(ours.exceptions, name), Exception)


@pytest.mark.parametrize("place, value", [(("channels", 0, "samples", 1, "data"), "x"), (("channels", 0, "name"), 3), (("observations", 0, "data", 0), None), (("measurements", 0, "config", "poi"), 1)])
def test_places_of_faults(place, value):
    paths = []
    for package in (pyhf, ours):
        spec = copy.deepcopy(workspace("correlated"))
        inner = spec
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        with pytest.raises(package.exceptions.InvalidSpecification) as caught:
            package.Workspace(spec)
        paths.append((caught.value.path, caught.value.instance, caught.value.schema))
    assert paths[0] == paths[1]
