"""The rest of the public interface: names, tensors, events, ROOT and XML, figures."""

import importlib
import json
from pathlib import Path

import numpy as np
import pyhf
import pytest
from both import close, models, names
from specifications import data_of, workspace

import nextstat.pyhf as ours

PUBLIC = {
    "": "Model PatchSet Workspace __version__ compat default_backend exceptions get_backend infer interpolators modifiers optimizer parameters patchset pdf probability schema set_backend simplemodels tensor tensorlib utils workspace".split(),
    "infer": "hypotest calculators intervals mle test_statistics utils".split(),
    "infer.mle": "fit fixed_poi_fit twice_nll".split(),
    "infer.calculators": "AsymptoticCalculator AsymptoticTestStatDistribution EmpiricalDistribution ToyCalculator generate_asimov_data HypoTestFitResults".split(),
    "infer.test_statistics": "q0 qmu qmu_tilde tmu tmu_tilde".split(),
    "infer.intervals.upper_limits": "upper_limit linear_grid_scan toms748_scan".split(),
    "events": "Callables disable enable noop register subscribe trigger".split(),
    "parameters": "paramset unconstrained constrained_by_normal constrained_by_poisson reduce_paramsets_requirements ParamViewer".split(),
    "probability": "Independent Normal Poisson Simultaneous".split(),
    "contrib.viz.brazil": "BrazilBandCollection plot_brazil_band plot_cls_components plot_results".split(),
}


@pytest.mark.parametrize("module, name", [(module, name) for module, found in PUBLIC.items() for name in found])
def test_public_names(module, name):
    assert hasattr(importlib.import_module(f"nextstat.pyhf.{module}".rstrip(".")), name)


@pytest.mark.parametrize("code", [0, 1, 2, 4, "4p"])
def test_interpolators(code):
    random = np.random.default_rng(3)
    histograms = random.uniform(5.0, 15.0, (3, 2, 3, 4))
    # Outside ±1 pyhf's code 2 is not continuous.
    alphas = np.linspace(-1.0, 1.0, 11) * np.ones((3, 1)) * (1.0 if code == 2 else 2.5)
    close(pyhf.interpolators.get(code)(histograms.tolist())(pyhf.tensorlib.astensor(alphas)), ours.interpolators.get(code)(histograms.tolist())(alphas), rtol=1e-9)


@pytest.mark.parametrize("operation", ["erf", "normal_cdf", "exp", "sqrt", "log", "abs", "ravel", "isfinite"])
def test_tensor_operations(operation):
    values = np.linspace(0.01, 3.0, 9)
    close(getattr(pyhf.tensorlib, operation)(values), getattr(ours.tensorlib, operation)(values), rtol=1e-13)


def test_tensor_functions_of_two():
    n, rate = np.array([0.0, 1.0, 5.5, 120.0]), np.array([0.5, 2.0, 5.0, 100.0])
    close(pyhf.tensorlib.erfinv(np.linspace(-0.999, 0.999, 11)), ours.tensorlib.erfinv(np.linspace(-0.999, 0.999, 11)), rtol=1e-13)
    for operation in ("poisson_logpdf", "poisson"):
        close(getattr(pyhf.tensorlib, operation)(n, rate), getattr(ours.tensorlib, operation)(n, rate), rtol=1e-12)
    for operation in ("normal_logpdf", "normal", "normal_cdf"):
        close(getattr(pyhf.tensorlib, operation)(n, rate, 2.0), getattr(ours.tensorlib, operation)(n, rate, 2.0), rtol=1e-12)


@pytest.mark.parametrize("nsigma", [-3.0, 0.0, 1.0, 5.0, 8.0, 12.0])
def test_asymptotic_distribution(nsigma):
    a, b = (package.infer.calculators.AsymptoticTestStatDistribution(0.5, -1.0) for package in (pyhf, ours))
    for function in ("cdf", "pvalue", "expected_value"):
        close(getattr(a, function)(nsigma), getattr(b, function)(nsigma), rtol=1e-12)


@pytest.mark.parametrize("shape", [(9,), (3, 9)])
def test_parameter_views(shape):
    par_map = {"hello": {"slice": slice(0, 2)}, "world": {"slice": slice(5, 7)}, "too": {"slice": slice(7, 9)}, "gap": {"slice": slice(2, 5)}}
    pars = np.arange(float(np.prod(shape))).reshape(shape)
    views = [package.parameters.ParamViewer(shape, par_map, ["hello", "too"]) for package in (pyhf, ours)]
    close(views[0].get(pars), views[1].get(pars))
    for left, right in zip(views[0].index_selection, views[1].index_selection):
        close(left, right)


def test_events():
    for package in (pyhf, ours):
        seen = []

        class Listener:
            def hear(self, *args):
                seen.append(args)

        listener = Listener()
        package.events.subscribe("compat-test")(listener.hear)
        package.events.trigger("compat-test")(1)
        package.events.disable("compat-test")
        assert package.events.trigger("compat-test") is package.events.noop
        package.events.enable("compat-test")
        del listener
        package.events.trigger("compat-test")(2)
        assert seen == [(1,)]


@pytest.mark.parametrize("name", ["Lumi", "alpha_foo", "gamma_foo_bar_3", "mu", "gamma_stat_0"])
def test_names_of_root(name):
    assert pyhf.compat.interpret_rootname(name) == ours.compat.interpret_rootname(name)


@names
def test_names_for_root(name):
    a, b = models(name)
    for parameter in a.config.par_order:
        assert pyhf.compat.paramset_to_rootnames(a.config.param_set(parameter)) == ours.compat.paramset_to_rootnames(b.config.param_set(parameter))


@pytest.mark.parametrize("writer", [pyhf, ours], ids=["pyhf", "ours"])
@names
def test_documents_from_xml(name, writer, tmp_path, monkeypatch):
    importlib.import_module(f"{writer.__name__}.writexml")
    monkeypatch.chdir(tmp_path)
    for folder in ("config", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "top.xml").write_bytes(writer.writexml.writexml(workspace(name), Path("config"), Path("data"), "fit"))
    readers = [importlib.import_module(f"{package.__name__}.readxml") for package in (pyhf, ours)]
    for reader in readers:
        reader.clear_filecache()
    theirs, mine = (reader.parse("top.xml", ".") for reader in readers)
    assert json.dumps(theirs, sort_keys=True) == json.dumps(mine, sort_keys=True)


def test_files_of_xml_are_found_and_settings_joined():
    theirs, mine = (importlib.import_module(f"{package.__name__}.readxml") for package in (pyhf, ours))
    mounts = [(Path("/local/a"), Path("/data"))]
    for name in ("x.root", "./x.root", "/data/x.root", "/data/sub/x.root", "/other/x.root", "data/x.root"):
        assert theirs.resolver_factory(Path("/root"), mounts)(name) == mine.resolver_factory(Path("/root"), mounts)(name)
    settings = [{"name": "b", "inits": [1.0]}, {"name": "a"}, {"name": "b", "inits": [1.0]}]
    assert theirs.dedupe_parameters(settings) == mine.dedupe_parameters(settings)


PATCHES = [
    [{"op": "replace", "path": "/channels/9/x", "value": 1}],
    [{"op": "replace", "path": "/channels/0/x", "value": 1}],
    [{"op": "test", "path": "/channels/0/name", "value": "other"}],
    [{"op": "remove", "path": "/channels/5"}],
    [{"op": "copy", "path": "/z", "from": "/y"}],
    [{"op": "add", "path": "/channels/99", "value": 1}],
    [{"op": "add", "path": "/a/b", "value": 1}],
    [{"op": "add", "path": "nowhere", "value": 1}],
    [{"op": "add", "path": "/a"}],
    [{"op": "turn", "path": "/a"}],
    {"op": "add"},
    "[",
]


@pytest.mark.parametrize("patch", PATCHES, ids=map(str, PATCHES))
def test_patches_that_cannot_be_applied(patch):
    raised = []
    for package in (pyhf, ours):
        with pytest.raises(Exception) as caught:
            package.Workspace(workspace("correlated")).model(patches=[patch])
        raised.append(type(caught.value).__name__)
    assert raised[0] == raised[1]


def test_a_model_of_ones_own():
    class Config:
        poi_index, npars = 0, 2

        def suggested_init(self):
            return [1.0, 1.0]

        def suggested_bounds(self):
            return [(0.0, 10.0), (0.0, 10.0)]

        def suggested_fixed(self):
            return [False, False]

    def model_for(package):
        class Counting:
            config = Config()

            def expected_data(self, pars, include_auxdata=True):
                return np.array([50.0 * pars[1] + 5.0 * pars[0], 51.0 * pars[1]])

            def logpdf(self, pars, data):
                return np.array([package.probability.Independent(package.probability.Poisson(self.expected_data(pars))).log_prob(np.asarray(data))])

        return Counting()

    results = [float(package.infer.hypotest(1.0, np.array([55.0, 51.0]), model_for(package))) for package in (pyhf, ours)]
    close(*results, rtol=1e-3)


def test_brazil_band():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import pyhf.contrib.viz.brazil as their_brazil

    import nextstat.pyhf.contrib.viz.brazil as our_brazil

    a, b = models("uncorrelated")
    mus = np.linspace(0.1, 4, 8)
    tests = [ours.infer.hypotest(mu, data_of(b, "uncorrelated"), b, return_tail_probs=True, return_expected_set=True) for mu in mus]
    drawn = []
    for brazil in (their_brazil, our_brazil):
        figure, ax = plt.subplots()
        artists = brazil.plot_results(mus, tests, ax=ax, components=True)
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        drawn.append([len(ax.lines), len(ax.collections), ax.get_xlabel(), ax.get_ylabel(), ax.get_ylim(), sorted(labels), artists._fields, artists.cls_obs.get_ydata().tolist()])
        plt.close(figure)
    assert drawn[0] == drawn[1]
