"""Asimov data know what they are: results of them say so, as the command does, and nothing that is
computed from them does.
"""

import copy
import json
import pickle

import nextstat
import numpy as np
import pytest
from test_command_parity import assert_same

#: Data as the command and as Python make them.
POINTS = {
    "starting values": (["--asimov"], lambda model, fit: nextstat.asimov_data(model, {"mu": 1.0})),
    "background": (["--asimov=0"], lambda model, fit: nextstat.asimov_data(model, {"mu": 0.0})),
    "a fit": (
        ["--asimov=0", "--asimov-from"],
        lambda model, fit: nextstat.asimov_data(model, {"mu": 0.0}, fit=fit),
    ),
    "a fit and a value": (
        ["--asimov-at", "norm_ttbar=1.1", "--asimov-from"],
        lambda model, fit: nextstat.asimov_data(model, {"norm_ttbar": 1.1}, fit=fit),
    ),
}
VERBS = {
    "limit": nextstat.upper_limit,
    "hypotest": nextstat.hypotest,
    "significance": nextstat.significance,
    "yields": nextstat.yields,
    "report": nextstat.report,
    "ranking": nextstat.ranking,
    "gof": nextstat.goodness_of_fit,
    "toys": lambda model, data: nextstat.fit_toys(model, n_toys=3, data=data),
}
ARGUMENTS = {"toys": ["--n-toys", "3"]}


@pytest.fixture(scope="module")
def stored(root, tmp_path_factory):
    """A file of a fit in the control region."""
    path = tmp_path_factory.mktemp("fits") / "cr.json"
    nextstat.command(["fit", root / "examples/shapes.json", "--mask", "signal_region", "--covariance", "--output-file", path])
    return path


@pytest.fixture
def model(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


@pytest.mark.filterwarnings("ignore::nextstat.NextstatWarning")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("verb", VERBS)
def test_results_of_asimov_data_are_the_commands(root, model, stored, point, verb):
    options, make = POINTS[point]
    options = [*options, stored] if "--asimov-from" in options else options
    path = root / "examples/shapes.json"
    done = nextstat.command([verb, path, *ARGUMENTS.get(verb, ()), *options])
    result = VERBS[verb](model, data=make(model, stored))
    assert result.provenance["data"]["source"] == "asimov"
    assert_same(done.json(), result.to_dict(), verb)


def test_asimov_data_are_the_commands_to_the_last_bit(root, model, stored):
    point = {name: model.init[i] for i, name in enumerate(model.par_names)}
    point |= dict(zip(model.par_names, json.loads(stored.read_text())["bestfit"])) | {"mu": 0.0}
    params = [point[name] for name in model.par_names]
    assert (nextstat.asimov_data(model, {"mu": 0.0}, fit=stored) == model.expected_data(params)).all()
    assert (nextstat.asimov_data(model, params) == model.expected_data(params)).all()


def test_tables_of_asimov_data_say_so(model, stored):
    data = nextstat.asimov_data(model, {"mu": 0.0}, fit=stored)
    line = f"  data: Asimov (at the fit in {stored}, mu = 0)"
    results = [call(model, data=data) for call in VERBS.values()]
    results += [
        nextstat.limit_scan(model, {"norm_ttbar": [1.0]}, data=data),
        nextstat.hypotest_toys(model, n_toys=5, data=data),
        nextstat.every_poi(model, lambda model: nextstat.upper_limit(model, data=data)),
    ]
    for result in [*results, *pickle.loads(pickle.dumps(results))]:
        text, table = repr(result), result._repr_html_()
        assert text.splitlines()[1] == line and line.strip() in table, text
        assert "observed" not in text and "observed" not in table, text
    for result in (*results[:4], *results[8:]):
        assert "Asimov data" in repr(result) and "Asimov data" in result._repr_html_(), repr(result)
    assert "Asimov data" in repr(results[8].limits[0])


def test_other_data_are_not_asimov_data(model):
    data = nextstat.asimov_data(model, {"mu": 0.5})
    written = data.copy()
    written[0] += 1e-9
    below = data.copy()
    memoryview(below).cast("B")[0] ^= 1
    others = [data + 0.0, 1.0 * data, data[:], np.round(data), np.array(data), data.astype(float), np.concatenate([data]), data.reshape(-1)]
    for other in (*others, written, below, data[: model.n_bins], np.where(data > 3, data, 0), data.view(np.ndarray)):
        result = nextstat.fit(model, data=other)
        assert result.provenance["data"]["source"] == "given" and "data: given by the caller" in repr(result)
    assert "given data" in repr(nextstat.upper_limit(model, data=written))
    assert nextstat.fit(model, data=data).provenance["data"] == {"source": "asimov", "parameters": {"mu": 0.5}}


def test_asimov_data_of_another_model_are_given_data(root, model):
    workspace = json.loads((root / "examples/shapes.json").read_text())
    workspace["channels"][0]["samples"][0]["data"][0] *= 1.5
    data = nextstat.asimov_data(nextstat.model_of(workspace), {"mu": 1.0})
    assert nextstat.fit(model, data=data).provenance["data"]["source"] == "given"
    # Observed data make no difference to what is expected.
    workspace = json.loads((root / "examples/shapes.json").read_text())
    workspace["observations"][0]["data"][0] += 1
    data = nextstat.asimov_data(nextstat.model_of(workspace), {"mu": 1.0})
    assert nextstat.fit(model, data=data).provenance["data"]["source"] == "asimov"


def test_asimov_data_are_arrays(model):
    data = nextstat.asimov_data(model, {"mu": 0.5})
    plain = np.array(data)
    assert isinstance(data, np.ndarray) and type(plain) is np.ndarray
    assert data.shape == plain.shape and data.dtype == float and data.flags.writeable
    assert (data == plain).all() and data.tobytes() == plain.tobytes() and data.tolist() == plain.tolist()
    for made in (data + 1, data[1:], data.sum(), np.sqrt(data), np.stack([data, data]), data[None], np.copy(data), data == data):
        assert type(made) in (np.ndarray, np.float64), type(made)
    assert data[0] == plain[0] and data.mean() == plain.mean() and np.allclose(data, plain)
    into = np.empty(3)
    np.add(data[:3], 1, out=into)
    assert (into == plain[:3] + 1).all()
    data += 1
    assert (data == plain + 1).all()


def test_copies_of_asimov_data_are_asimov_data(model, stored):
    data = nextstat.asimov_data(model, {"mu": 0.5}, fit=nextstat.fit(model, mask="signal_region"))
    expected = nextstat.fit(model, data=data)
    assert expected.provenance["data"]["fit"] == "given by the caller"
    assert "  data: Asimov (at a given fit, mu = 0.5)" in repr(expected)
    for again in (data.copy(), copy.copy(data), copy.deepcopy(data), *(pickle.loads(pickle.dumps(data, n)) for n in range(6))):
        assert again.tobytes() == data.tobytes() and not np.shares_memory(again, data)
        found = nextstat.fit(model, data=again)
        assert found == expected and found.provenance == expected.provenance


def test_parameters_at_their_starting_values_are_left_out(model):
    params = model.init.copy()
    params[model.index("mu")] = 0.25
    result = nextstat.fit(model, data=nextstat.asimov_data(model, params))
    assert result.provenance["data"]["parameters"] == {"mu": 0.25}
    assert nextstat.asimov_data(model, [params, model.init]).shape == (2, model.n_bins + model.n_aux)


def test_figures_of_asimov_data_say_so(model):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("mplhep")
    matplotlib.use("agg")
    from nextstat import plot

    def words(ax):
        return [text.get_text() for text in ax.findobj(matplotlib.text.Text)]

    data, grid = nextstat.asimov_data(model, {"mu": 0.0}), np.linspace(0, 5, 6)
    limit = nextstat.upper_limit(model, grid=grid, data=data)
    found = words(plot.brazil(limit))
    assert "Asimov data" in found and any(text.startswith("Limit of Asimov data: ") for text in found) and "Observed" not in " ".join(found)
    found = words(plot.brazil([nextstat.hypotest(model, mu, data=data) for mu in grid], limit))
    assert "Asimov data" in found and "Observed" not in " ".join(found)
    assert "Asimov data" in words(plot.limits([1, 2], [limit, limit]))
    found = words(plot.data_mc(nextstat.yields(model, data=data), "signal_region")[0])
    assert "Asimov data" in found and "Data" not in found
    observed = nextstat.upper_limit(model, grid=grid)
    assert any(text.startswith("Observed limit: ") for text in words(plot.brazil(observed)))
    with pytest.raises(ValueError, match="different data: Asimov data, Observed"):
        plot.limits([1, 2], [limit, observed])
    matplotlib.pyplot.close("all")
