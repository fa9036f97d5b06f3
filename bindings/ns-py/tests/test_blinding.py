"""Hidden data are in no byte of a result: its JSON, its text, its pickle, its figures."""

import io
import json
import pickle
import re
import struct
from pathlib import Path

import nextstat
import numpy
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
#: Counts that no other number of a document can be.
HIDDEN = (7919.0, 6421.0)
BLIND = "signal_region[2:]"


def model_with(*counts):
    """The example with these observed counts in the last bins of its signal region."""
    workspace = json.loads((EXAMPLES / "shapes.json").read_text())
    for observation in workspace["observations"]:
        if observation["name"] == "signal_region":
            observation["data"] = [76.0, 55.0, *counts]
    return nextstat.model_of(workspace)


def given(*counts):
    """The same as data of the caller."""
    data = nextstat.load_workspace(EXAMPLES / "shapes.json").data.copy()
    data[5:7] = counts
    return data


RESULTS = {
    "yields": lambda model, **options: nextstat.yields(model, **options),
    "report": lambda model, **options: nextstat.report(model, **options),
    "yields of given data": lambda model, **options: nextstat.yields(model, data=given(*HIDDEN), **options),
    "yields of a stored fit": lambda model, **options: nextstat.yields(
        model, fit=nextstat.fit(model, mask=BLIND), **options
    ),
}


def bytes_of(result):
    """Everything that a result shows or stores, in one string."""
    text = [result.to_json(), repr(result), result._repr_html_(), json.dumps(result.to_dict())]
    return "\n".join(text).encode() + pickle.dumps(result)


def found(content, counts=HIDDEN):
    """The hidden counts in `content`, and their sums: as text or as binary numbers."""
    total = 76.0 + 55.0 + sum(counts)
    numbers = [*counts, sum(counts), total]
    texts = [f"{number:g}".encode() for number in numbers]
    binary = [struct.pack(order, number) for number in numbers for order in ("<d", ">d")]
    # Not as a part of another number.
    isolated = [text for text in texts if re.search(rb"(?<![\d.])" + text + rb"(?!\d)", content)]
    return isolated + [number for number in binary if number in content]


@pytest.mark.parametrize("name", RESULTS)
def test_hidden_counts_are_in_no_byte_of_a_result(name):
    model = model_with(*HIDDEN)
    assert len(found(bytes_of(nextstat.yields(model, mask=BLIND)))) >= 4, "the search finds what is there"
    assert found(bytes_of(RESULTS[name](model, blind=BLIND))) == []


@pytest.mark.parametrize("name", ["yields", "report"])
def test_no_number_of_a_result_depends_on_hidden_data(name):
    first, second = (RESULTS[name](model_with(*counts), blind=BLIND) for counts in (HIDDEN, (0.0, 3.0)))
    documents = [result.to_dict() for result in (first, second)]
    for document in documents:
        # The digest of the whole workspace names it, its data included.
        document["provenance"].pop("workspace")
    assert documents[0] == documents[1]
    assert repr(first) == repr(second)


def test_hidden_data_are_nan_and_null():
    result = nextstat.yields(model_with(*HIDDEN), blind=BLIND)
    data = result.channels[1]["data"]
    assert data[:2].tolist() == [76.0, 55.0] and numpy.isnan(data[2:]).all()
    assert result.to_dict()["channels"][1]["data"] == [76.0, 55.0, None, None]
    assert result.provenance["settings"]["blinded"] == {"signal_region": (2, 3)}
    assert "blinded" in repr(result)


def test_a_fit_of_hidden_data_warns_and_has_no_goodness():
    with pytest.warns(nextstat.NextstatWarning, match="the fit uses data that are hidden"):
        report = nextstat.report(model_with(36.0, 15.0), blind=BLIND, fit_blinded=True)
    assert report.goodness_of_fit is None and report.to_dict()["goodness_of_fit"] is None
    assert numpy.isnan(report.fit.twice_nll) and report.fit.covariance is not None
    assert "nan" not in repr(report).lower(), repr(report)


@pytest.mark.parametrize(
    ("options", "hidden"),
    [
        ({"blind_above": 0.2}, [2, 3]),
        ({"blind_above": 0.2, "blind_by": "s/(s+b)"}, [3]),
        ({"blind_above": 1.2, "blind_by": "s/sqrt(b)"}, [3]),
        ({"blind_above": 1.0, "blind_by": "SOVERSQRTSPLUSB"}, [2, 3]),
    ],
)
def test_thresholds_hide_bins_as_the_templates_say(options, hidden):
    """s = (1.2, 3.5, 6, 4.1) and b = (72, 48, 25.8, 10.1): s/b is (0.017, 0.073, 0.233, 0.406)."""
    result = nextstat.yields(nextstat.load_workspace(EXAMPLES / "shapes.json"), **options)
    assert numpy.flatnonzero(numpy.isnan(result.channels[1]["data"])).tolist() == hidden
    assert not numpy.isnan(result.channels[0]["data"]).any()


def test_mistakes_have_hints():
    model = nextstat.load_workspace(EXAMPLES / "shapes.json")
    with pytest.raises(nextstat.ParameterError, match="`blind` names the channel `signal_regio`") as caught:
        nextstat.yields(model, blind="signal_regio")
    assert caught.value.hint == "did you mean `signal_region`?"
    with pytest.raises(nextstat.ParameterError, match="is not a measure of the signal: choose one of"):
        nextstat.yields(model, blind_above=0.1, blind_by="s/x")
    with pytest.raises(nextstat.ParameterError, match="`blind_by` is the measure of `blind_above`"):
        nextstat.yields(model, blind_by="s/b")
    with pytest.raises(nextstat.ParameterError, match="leaves no bin to fit"):
        nextstat.yields(model, blind="*")


def test_asimov_data_of_another_fit_warn_of_what_it_does_not_have():
    model = nextstat.load_workspace(EXAMPLES / "shapes.json")
    other = {"par_names": ["mu", "old"], "bestfit": [1.0, 2.0], "uncertainties": [0.1, 0.2]}
    with pytest.warns(nextstat.NextstatWarning) as caught:
        nextstat.asimov_data(model, fit=other)
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("17 parameters of the model not in the stored fit") and "`old`" in said[1]


def svg(result, **options):
    """A figure of the signal region as SVG with its text as text."""
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("mplhep")
    matplotlib.use("agg")
    from nextstat import plot

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "same"}):
        main, _ = plot.data_mc(result, "signal_region", **options)
        with io.BytesIO() as file:
            main.figure.savefig(file, format="svg", metadata={"Date": None})
            content = file.getvalue()
        matplotlib.pyplot.close(main.figure)
    return content


def test_figures_of_blinded_results_do_not_depend_on_hidden_data():
    first, second = (nextstat.yields(model_with(*counts), blind=BLIND) for counts in (HIDDEN, (36.0, 15.0)))
    assert svg(first) == svg(second)
    assert b"Blinded" in svg(first) and found(svg(first)) == []


@pytest.mark.parametrize("blind", [True, "signal_region", ["*[1]", BLIND]])
def test_figures_hide_data_of_results_that_have_them(blind):
    # Before the fit, so that nothing else depends on the data.
    first, second = (nextstat.yields(model_with(*counts), mask=BLIND) for counts in (HIDDEN, (36.0, 15.0)))
    assert svg(first, fit="prefit") != svg(second, fit="prefit"), "data that are drawn make a difference"
    assert svg(first, fit="prefit", blind=blind) == svg(second, fit="prefit", blind=blind)
    with pytest.raises(nextstat.ParameterError, match="has 4 bins"):
        svg(first, blind="signal_region[7]")
