"""Workspaces made of histograms: the documents, the numbers, and what is said about histograms that
do not fit.
"""

import json
from itertools import pairwise
from pathlib import Path

import nextstat
import numpy
import pytest
from nextstat.histograms import WorkspaceBuilder, read

EXAMPLES = Path(__file__).parents[4] / "examples"


class Axis(list):
    """The least that UHI asks of an axis: its length, and what each bin is."""


class Histogram:
    kind = "COUNT"

    def __init__(self, values, variances=None, edges=None, kind="COUNT"):
        edges = list(range(len(values) + 1)) if edges is None else edges
        self.axes = (Axis(pairwise(edges)),)
        self._values, self._variances, self.kind = numpy.asarray(values, float), variances, kind

    def values(self, flow=False):
        return self._values

    def variances(self, flow=False):
        return None if self._variances is None else numpy.asarray(self._variances, float)


def region():
    return WorkspaceBuilder().channel("region", data=Histogram([57, 63]))


def test_the_example_is_rebuilt_from_its_parts():
    """Every modifier of `shapes.json`, put back by the methods; the documents are equal."""
    written = json.loads((EXAMPLES / "shapes.json").read_text())
    builder = WorkspaceBuilder()
    data = {entry["name"]: entry["data"] for entry in written["observations"]}
    for channel in written["channels"]:
        region = builder.channel(channel["name"], data=Histogram(data[channel["name"]]))
        for sample in channel["samples"]:
            made = region.sample(sample["name"], Histogram(sample["data"]))
            for modifier in sample["modifiers"]:
                add(made, modifier)
    config = written["measurements"][0]["config"]
    lumi = next(setting for setting in config["parameters"] if setting["name"] == "lumi")
    made = builder.workspace(poi="mu", measurement=written["measurements"][0]["name"], lumi=(lumi["auxdata"][0], lumi["sigmas"][0]))
    assert [made[key] for key in ("channels", "observations")] == [written[key] for key in ("channels", "observations")]
    ours, theirs = nextstat.fit(nextstat.model_of(made)), nextstat.fit(nextstat.model_of(written))
    assert ours.par_names == theirs.par_names
    assert ours.twice_nll == pytest.approx(theirs.twice_nll, abs=1e-9)


def add(sample, modifier):
    name, kind, data = modifier["name"], modifier["type"], modifier["data"]
    if kind == "normsys":
        sample.normsys(name, up=data["hi"], down=data["lo"])
    elif kind == "histosys":
        sample.histosys(name, up=data["hi_data"], down=Histogram(data["lo_data"]))
    elif kind == "staterror":
        sample.staterror(data, name=name)
    elif kind == "shapesys":
        sample.shapesys(name, data)
    else:
        getattr(sample, kind)(name)


def test_variances_become_statistical_uncertainties():
    made = region().sample("background", Histogram([50, 52], variances=[9.0, 49.0])).staterror().shapesys("own")
    assert [(modifier["name"], modifier["data"]) for modifier in made._modifiers] == [("staterror_region", [3.0, 7.0]), ("own", [3.0, 7.0])]


def test_a_histogram_without_a_down_variation_is_mirrored():
    made = region().sample("background", [50, 52]).histosys("scale", up=[55, 50])
    assert made._modifiers[0]["data"] == {"hi_data": [55.0, 50.0], "lo_data": [45.0, 54.0]}


def test_a_split_keeps_the_product_and_the_rate_of_the_templates():
    made = region().sample("background", [50, 52]).histosys("scale", up=[60, 57], down=[45, 41], split=True)
    rate, shape = made._modifiers
    assert (rate["type"], shape["type"], rate["name"]) == ("normsys", "histosys", shape["name"])
    assert numpy.sum(shape["data"]["hi_data"]) == pytest.approx(102.0)
    assert numpy.multiply(shape["data"]["lo_data"], rate["data"]["lo"]) == pytest.approx([45.0, 41.0])


def test_a_split_at_one_standard_deviation_expects_the_template():
    builder = WorkspaceBuilder()
    builder.channel("region", data="asimov").sample("background", [50, 52]).histosys("scale", up=[60, 57], down=[45, 41], split=True)
    model = builder.model()
    assert nextstat.asimov_data(model, [1.0])[:2] == pytest.approx([60.0, 57.0])


def test_asimov_data_are_the_sum_of_the_samples():
    builder = WorkspaceBuilder()
    region = builder.channel("region", data="asimov")
    region.sample("signal", [1, 2]).normfactor("mu")
    region.sample("background", [50, 52])
    assert builder.workspace(poi="mu")["observations"] == [{"name": "region", "data": [51.0, 54.0]}]


def test_settings_of_parameters_reach_the_model():
    builder = WorkspaceBuilder()
    sample = builder.channel("region", data=[57, 63]).sample("all", [50, 52])
    sample.normfactor("mu").normfactor("scale").shapefactor("free").lumi()
    model = builder.model(poi="mu", lumi=0.02, init={"mu": 0.5}, bounds={"free": (0, 3)}, fixed={"scale": 1.1})
    at = model.par_names.index
    assert model.init[at("mu")] == 0.5 and model.init[at("scale")] == 1.1 and model.fixed[at("scale")]
    assert model.bounds[at("free[1]")].tolist() == [0.0, 3.0]
    assert next(entry for entry in model.parameter_sets() if entry["name"] == "lumi")["scales"].tolist() == [0.02]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.sample("b", [1, 2, 3]), "channel `region`, sample `b`: 3 bins, but 2 in data"),
        (lambda c: c.sample("b", Histogram([1, 2], edges=[0, 1, 3])), "channel `region`, sample `b`: bin 1 is 1 to 3, but 1 to 2 in data"),
        (lambda c: c.sample("b", [1, float("nan")]), "channel `region`, sample `b`: bin 1: nan is not a valid number of events"),
        (lambda c: c.sample("b", [1, 2]).staterror(), "channel `region`, sample `b`, staterror `staterror_region`: the histogram has no variances"),
        (lambda c: c.sample("b", [1, 2]).histosys("jes", up=[1]), "channel `region`, sample `b`, histosys `jes`, up: 1 bin, but 2 in data"),
        (lambda c: c.sample("b", [1, 2]).normsys("n", 0.1).normsys("n", 0.1), "channel `region`, sample `b`, normsys `n`: the sample has it already"),
        (lambda c: c.sample("b", [1, 2]).normsys("n", up=1.1), "normsys `n`: `up` and `down` go together"),
        (lambda c: c.sample("b", [1, 2]).histosys("h", up=[-1, -2], split=True), "histosys `h`: up: -3 events against 3 nominal"),
        (lambda c: [c.sample("b", [1, 2]), c.sample("b", [1, 2])], "sample `b`: the channel has it already"),
        (lambda c: c.sample("b", Histogram([1, 2], kind="MEAN")), "is a profile"),
        (lambda c: c.sample("b", object()), "`object` is neither a histogram nor"),
        (lambda c: c.sample("b", [[1, 2], [3, 4]]), "`list` is neither a histogram nor an array of numbers"),
    ],
)
def test_what_does_not_fit_is_named(wrong, message):
    with pytest.raises(nextstat.WorkspaceError, match=message.replace("(", r"\(")):
        wrong(region())


def test_what_is_missing_is_named():
    builder = WorkspaceBuilder()
    channel = builder.channel("region")
    channel.sample("background", [50, 52]).lumi()
    with pytest.raises(nextstat.WorkspaceError, match="channel `region`: there are no data") as caught:
        builder.workspace(lumi=0.02)
    assert "channel.data" in caught.value.hint
    channel.data([57, 63])
    with pytest.raises(nextstat.WorkspaceError, match="`lumi`: the uncertainty of the luminosity"):
        builder.workspace()
    with pytest.raises(nextstat.WorkspaceError, match="parameter `mu`: no sample has it"):
        builder.workspace(lumi=0.02, init={"mu": 1})
    with pytest.raises(nextstat.WorkspaceError, match="already"):
        builder.channel("region")


def test_no_parameter_of_interest_is_written_in_one_way():
    builder = WorkspaceBuilder()
    builder.channel("region", data=[57]).sample("background", [50]).normsys("scale", 0.05)
    for given in ({}, {"poi": None}, {"poi": ""}):
        assert builder.workspace(**given)["measurements"][0]["config"]["poi"] == ""
        assert builder.model(**given).poi is None


@pytest.mark.parametrize("wrong", [1.05, 1.0, -1.0, 5.0])
def test_a_factor_is_no_relative_uncertainty(wrong):
    sample = WorkspaceBuilder().channel("region").sample("background", [50])
    with pytest.raises(nextstat.WorkspaceError, match="leaves nothing of the rate") as error:
        sample.normsys("scale", wrong)
    assert "up=1.05, down=0.95" in error.value.hint
    assert ("`0.05` says the same" in error.value.hint) == (wrong == 1.05)
    sample.normsys("scale", -0.05)


def test_numpy_histograms_have_edges():
    builder = WorkspaceBuilder()
    builder.channel("region", data=numpy.histogram([0.5, 1.5, 1.6], bins=[0, 1, 2]))
    builder.channel("counting", data=[4])
    assert builder.edges == {"region": [0.0, 1.0, 2.0]}


def filled(hist, weights=(1, 2, 3, 1, 5, 1, 1)):
    axis = hist.axis.Regular(3, 0, 3)
    return hist.Hist(axis, storage=hist.storage.Weight()).fill([0.5, 1.5, 2.5, 2.6, 7, -1, -2], weight=weights)


def test_hist_histograms_are_read_with_and_without_their_flow():
    hist = pytest.importorskip("hist")
    found = read(filled(hist))
    assert (found.values, found.variances, found.edges) == ([1, 2, 4], [1, 4, 10], [0, 1, 2, 3])
    found = read(filled(hist), flow="merge")
    assert (found.values, found.variances) == ([3, 2, 9], [3, 4, 35])


def test_hist_histograms_make_a_model():
    hist = pytest.importorskip("hist")
    builder = WorkspaceBuilder(flow="merge")
    channel = builder.channel("region", data="asimov")
    channel.sample("signal", filled(hist)).normfactor("mu").staterror()
    model = builder.model(poi="mu")
    assert model.n_bins == 3
    assert nextstat.fit(model).value("mu") == pytest.approx(1.0)
    with pytest.raises(nextstat.WorkspaceError, match="2 axes"):
        channel.sample("plane", hist.Hist(hist.axis.Regular(3, 0, 3), hist.axis.Regular(3, 0, 3)))


def test_boost_histogram_categories_keep_their_labels():
    boost = pytest.importorskip("boost_histogram")
    histogram = boost.Histogram(boost.axis.StrCategory(["ee", "mm"]))
    histogram.fill(["ee", "mm", "ee", "tt"])
    assert (read(histogram).values, read(histogram).bins, read(histogram).edges) == ([2, 1], ["ee", "mm"], None)
    other = boost.Histogram(boost.axis.StrCategory(["ee", "tt"]))
    with pytest.raises(nextstat.WorkspaceError, match="bin 1 is `tt`, but `mm` in data"):
        WorkspaceBuilder().channel("region", data=histogram).sample("b", other)


def test_uproot_histograms_are_those_that_were_written(tmp_path):
    uproot, hist = pytest.importorskip("uproot"), pytest.importorskip("hist")
    with uproot.recreate(tmp_path / "histograms.root") as file:
        file["filled"] = filled(hist)
    histogram = uproot.open(tmp_path / "histograms.root")["filled"]
    for flow in ("drop", "merge"):
        ours, theirs = read(histogram, flow=flow), read(filled(hist), flow=flow)
        assert (ours.values, ours.variances, ours.bins) == (theirs.values, theirs.variances, theirs.bins)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: _region().sample("s", (["1", "2"], [0, 1, 2])), nextstat.WorkspaceError, "nor an array of numbers"),
        (lambda: _region().sample("s", [True, False]), nextstat.WorkspaceError, "nor an array of numbers"),
        (lambda: _region().sample("s", ([1, 2], [0, 2, 1])), nextstat.WorkspaceError, "the edges do not ascend from 2 to 1"),
        (lambda: _region().sample(3, [1, 2]), TypeError, "`name` must be text, not `3`"),
        (lambda: _region().sample("s", [1, 2]).normfactor(3), TypeError, "`name` must be text, not `3`"),
        (lambda: _region().sample("s", [1, 2]).normsys("a", "0.1"), TypeError, "`uncertainty` must be a number, not `'0.1'`"),
        (lambda: _region().sample("s", [1, 2]).normsys("a", float("nan")), nextstat.ParameterError, "`uncertainty` is nan"),
        (lambda: _region().sample("s", [1, 2]).normsys("a", up=1.1, down=None), nextstat.WorkspaceError, "`up` and `down` go together"),
        (lambda: _region().sample("s", [1, 2]).staterror([1, -1]), nextstat.WorkspaceError, "bin 1: an uncertainty of -1"),
        (lambda: WorkspaceBuilder().channel(3), TypeError, "`name` must be text, not `3`"),
        (lambda: WorkspaceBuilder().channel("r", data=[1, -2]), nextstat.WorkspaceError, "channel `r`, data: bin 1: -2 is not a valid number of events"),
    ],
)
def test_what_is_no_number_or_no_name_is_said(call, kind, message):
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)


def _region():
    return WorkspaceBuilder().channel("r", data=[10, 20])


def test_a_channel_that_failed_can_be_added_again():
    builder = WorkspaceBuilder()
    with pytest.raises(nextstat.WorkspaceError, match="is not a valid number of events"):
        builder.channel("r", data=[1, float("nan")])
    builder.channel("r", data=[1, 2]).sample("s", [1, 2])
    assert builder.workspace()["observations"] == [{"name": "r", "data": [1.0, 2.0]}]
