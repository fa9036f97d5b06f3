"""Yields in ROOT files are read back as they were, by uproot and, where there is one, by ROOT."""

import math
import os
import re
import subprocess

import nextstat
import numpy
import pytest

uproot = pytest.importorskip("uproot")


@pytest.fixture(scope="module")
def model(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


# Prints contents and errors of the bins of a histogram.
PROGRAM = """
import ROOT, sys
file = ROOT.TFile(sys.argv[1])
histogram = file.Get("signal_region/postfit/total")
bins = range(1, histogram.GetNbinsX() + 1)
print([histogram.GetBinContent(bin) for bin in bins])
print([histogram.GetBinError(bin) for bin in bins])
"""


def _bin_errors(histogram):
    return numpy.sqrt(histogram.variances())


def test_histograms_are_read_back_as_they_were(model, tmp_path):
    result = nextstat.yields(model, groups={"other": ["wjets", "fakes"]})
    edges = {"signal_region": [0.0, 10.0, 30.0, 70.0, 200.0]}
    nextstat.write_root(result, tmp_path / "yields.root", edges=edges)
    n_compared = 0
    with uproot.open(tmp_path / "yields.root") as file:
        for channel in result.channels:
            region = channel["channel"]
            assert file[f"{region}/data"].values().tolist() == channel["data"].tolist()
            assert _bin_errors(file[f"{region}/data"]).tolist() == pytest.approx(numpy.sqrt(channel["data"]).tolist(), rel=1e-15)
            for stage in ("prefit", "postfit"):
                for name, part in {**channel[stage]["samples"], **channel[stage]["groups"], "total": channel[stage]["total"]}.items():
                    histogram = file[f"{region}/{stage}/{name}"]
                    assert histogram.classname == "TH1D"
                    assert histogram.values().tolist() == part["yields"].tolist()
                    # The file has squares.
                    assert numpy.allclose(_bin_errors(histogram), part["uncertainties"], rtol=1e-15, atol=0)
                    n_compared += 1
        assert file["signal_region/data"].axis().edges().tolist() == edges["signal_region"]
        assert file["control_region/data"].axis().edges().tolist() == [0.0, 1.0, 2.0, 3.0]
    assert n_compared == 2 * (3 + 4) + 2 * 4


def test_root_reads_the_file(model, tmp_path):
    """ROOT itself, where `ROOT_PYTHON` names a Python that has it."""
    python = os.environ.get("ROOT_PYTHON")
    if python is None:
        pytest.skip("ROOT_PYTHON does not name a Python with ROOT")
    result = nextstat.yields(model)
    nextstat.write_root(result, tmp_path / "yields.root")
    done = subprocess.run([python, "-c", PROGRAM, tmp_path / "yields.root"], capture_output=True, encoding="utf-8", check=True)
    values, errors = (eval(line) for line in done.stdout.splitlines()[-2:])
    total = result.channels[1]["postfit"]["total"]
    assert values == total["yields"].tolist()
    assert errors == pytest.approx(total["uncertainties"].tolist(), rel=1e-15)


def test_hidden_data_are_not_written(model, tmp_path):
    nextstat.write_root(nextstat.yields(model, blind="signal_region[2:]"), tmp_path / "some.root")
    nextstat.write_root(nextstat.report(model, blind="signal_region"), tmp_path / "all.root")
    with uproot.open(tmp_path / "some.root") as file:
        values = file["signal_region/data"].values()
        assert values[:2].tolist() == [76.0, 55.0] and numpy.isnan(values[2:]).all()
    with uproot.open(tmp_path / "all.root") as file:
        assert "signal_region/data" not in file.keys(cycle=False) and "control_region/data" in file.keys(cycle=False)


def test_stored_yields_are_written_as_results_are(model, tmp_path):
    result = nextstat.yields(model)
    (tmp_path / "yields.json").write_text(result.to_json())
    nextstat.write_root(tmp_path / "yields.json", tmp_path / "stored.root")
    nextstat.write_root(result, tmp_path / "result.root")
    with uproot.open(tmp_path / "stored.root") as stored, uproot.open(tmp_path / "result.root") as direct:
        assert stored.keys() == direct.keys()
        for name in direct.keys(filter_classname="TH1*"):
            assert stored[name].values().tolist() == direct[name].values().tolist()


def test_mistakes_are_errors_and_write_nothing(model, tmp_path):
    result = nextstat.yields(model)
    cases = [
        ({**result.to_dict(), "converged": False}, {}, "did not converge"),
        (nextstat.fit(model), {}, "no table `bins`"),
        (result, {"edges": {"SR": [0, 1]}}, "names the region `SR`"),
        (result, {"edges": {"signal_region": [0, 1, 1, 2, 3]}}, "must be 5 ascending numbers"),
        (result, {"edges": {"signal_region": [0, 1, 2, 3, math.nan]}}, "must be 5 ascending numbers"),
    ]
    for yields, options, message in cases:
        with pytest.raises(nextstat.NextstatError, match=message):
            nextstat.write_root(yields, tmp_path / "yields.root", **options)
    assert not list(tmp_path.iterdir())


def test_the_page_writes_a_file(examples_folder, root):
    page = (root / "docs/how-to/tables.md").read_text("utf-8")
    [block] = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    yields = nextstat.yields(nextstat.load_workspace("examples/shapes.json"))
    names = {"nextstat": nextstat, "yields": yields}
    exec(block, names)
    assert names["values"].tolist() == yields.channels[1]["postfit"]["total"]["yields"].tolist()
