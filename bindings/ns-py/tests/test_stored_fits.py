"""Stored fits instead of new ones: the command and Python say the same of them."""

import json
import pickle

import nextstat
import numpy
import pytest
from test_command_parity import assert_same, command


@pytest.fixture(name="path")
def _path(root):
    return root / "examples/shapes.json"


@pytest.fixture(name="model")
def _model(path):
    return nextstat.load_workspace(path)


@pytest.fixture(name="stored")
def _stored(path, tmp_path):
    """A fit without the last two bins of the signal region, in a file."""
    file = tmp_path / "fit.json"
    nextstat.command(["fit", path, "--mask", "signal_region[2:]", "--covariance", "--output-file", file])
    return file


@pytest.fixture(name="minimum")
def _minimum(path, tmp_path):
    """A fit to everything, in a file."""
    file = tmp_path / "minimum.json"
    nextstat.command(["fit", path, "--covariance", "--output-file", file])
    return file


def _order(result):
    """The parameters of a ranking, largest impact first."""
    return [entry["parameter"] for entry in result.ranking]


def test_both_faces_report_a_stored_fit_alike(path, model, stored):
    document = command("report", path, "--from", stored, "--blind", "signal_region[3]")
    result = nextstat.report(model, fit=stored, blind="signal_region[3]")
    assert_same(document, result.to_dict(), "report")
    assert document["goodness_of_fit"]["n_dof"] == 6
    assert pickle.loads(pickle.dumps(result)) == result


def test_both_faces_compare_data_with_a_stored_fit_alike(path, model, stored):
    options = ["--fit-channels", "signal_region", "--mask", "signal_region[:2]"]
    document = command("gof", path, "--from", stored, *options)
    result = nextstat.goodness_of_fit(model, fit=stored, fit_channels="signal_region", mask="signal_region[:2]")
    assert_same(document, result.to_dict(), "gof")
    assert result.n_dof == 2 and result.warnings == ()
    assert "signal_region[2:4]" in repr(result)


def test_chi_squared_is_that_of_the_predicted_yields(model, stored):
    """One bin: (n - λ)² / (λ + σ²), with λ and σ of the table of yields."""
    total = nextstat.yields(model, fit=stored).channels[1]["postfit"]["total"]
    n, expected, width = 36.0, total["yields"][2], total["uncertainties"][2]
    found = nextstat.goodness_of_fit(model, fit=stored, fit_channels="signal_region[2]")
    assert found.statistic == pytest.approx((n - expected) ** 2 / (expected + width**2), rel=1e-9)


def test_both_faces_rank_at_a_stored_fit_alike(path, model, minimum, stored):
    document = command("ranking", path, "--from", minimum)
    result = nextstat.ranking(model, fit=minimum)
    assert_same(document, result.to_dict(), "ranking")
    assert _order(result) == _order(nextstat.ranking(model))
    by_covariance = nextstat.ranking(model, fit=stored, methods="covariance")
    assert_same(command("ranking", path, "--from", stored, "--method", "covariance"), by_covariance.to_dict(), "ranking")


def test_a_fit_with_another_minimum_is_not_ranked_by_refits(model, stored):
    with pytest.raises(nextstat.ParameterError, match="not the minimum of this likelihood") as caught:
        nextstat.ranking(model, fit=stored)
    assert caught.value.hint == '`methods="covariance"` ranks by the covariance of the stored fit, without refits'


def test_a_report_has_the_matrices_and_the_pulls_of_the_stored_fit(model, stored):
    fit = nextstat.fit(model, mask="signal_region[2:]")
    report = nextstat.report(model, fit=fit)
    numpy.testing.assert_allclose(report.fit.bestfit, fit.bestfit)
    # Parameters at bounds have no uncertainty, and zeros.
    numpy.testing.assert_allclose(report.fit.covariance, fit.covariance, rtol=1e-9, atol=1e-12)
    numpy.testing.assert_allclose(report.fit.correlation, fit.correlation, rtol=1e-9, atol=1e-12)
    theirs = {pull["parameter"]: pull["pull"] for pull in fit.pulls}
    assert {pull["parameter"]: pull["pull"] for pull in report.fit.pulls} == pytest.approx(theirs)
    assert "stored, not fitted again" in repr(report)
    assert report.to_dict() == nextstat.report(model, fit=fit.to_dict()).to_dict()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda m, f: nextstat.report(m, fit=f, fixed={"mu": 1}), "fixed"),
        (lambda m, f: nextstat.report(m, fit=f, fit_blinded=True), "fit_blinded"),
        (lambda m, f: nextstat.goodness_of_fit(m, fit=f, toys=10), "toys"),
        (lambda m, f: nextstat.yields(m, fit=f, mask="signal_region"), "mask"),
    ],
)
def test_conditions_of_a_fit_do_not_go_with_a_stored_one(model, stored, call, name):
    with pytest.raises(nextstat.ParameterError, match=f"`{name}` is a condition of a fit"):
        call(model, stored)


def test_damaged_fits_are_refused_with_their_place(path, model, stored):
    document = json.loads(stored.read_text())
    document["covariance"][3][3] = -1.0
    name = document["par_names"][3]
    said = f"the variance of `{name}` is -1, which is negative, at `/covariance/3/3`"
    with pytest.raises(nextstat.ParameterError, match="which is negative") as caught:
        nextstat.yields(model, fit=document)
    assert str(caught.value) == said and caught.value.hint
    stored.write_text(json.dumps(document))
    for verb in ("yields", "report", "gof", "ranking"):
        with pytest.raises(nextstat.NextstatError) as caught:
            command(verb, path, "--from", stored)
        assert f"in `{stored}`: {said}" in str(caught.value), verb


def test_changed_numbers_are_refused_and_those_of_others_are_not(model, minimum, tmp_path):
    document = json.loads(minimum.read_text("utf-8"))
    document["bestfit"][0] += 1e-9
    with pytest.raises(nextstat.ParameterError, match="the numbers of the fit were changed: those of `parameters`") as refused:
        nextstat.yields(model, fit=document)
    assert "/checksums/parameters" in str(refused.value) and "remove `checksums`" in refused.value.hint
    del document["checksums"]
    assert nextstat.yields(model, fit=document).converged
    # Written by Python, rewritten by another program, without what is not needed.
    again = json.loads(nextstat.fit(model).to_json())
    again.pop("correlation")
    (tmp_path / "again.json").write_text(json.dumps(again, indent=1), "utf-8")
    assert nextstat.yields(model, fit=tmp_path / "again.json").converged


def test_both_faces_propagate_by_half_differences_alike(path, model, stored):
    document = command("yields", path, "--from", stored, "--uncertainty", "half-difference")
    result = nextstat.yields(model, fit=stored, uncertainty="half-difference")
    assert_same(document, result.to_dict(), "yields")
    assert "uncertainties of yields: half-difference" in repr(result)
    usual = nextstat.yields(model, fit=stored)
    both = [[channel["postfit"]["total"]["sum_uncertainty"] for channel in found.channels] for found in (result, usual)]
    assert both[0] == pytest.approx(both[1], rel=0.05) and both[0] != both[1]
    with pytest.raises(nextstat.ParameterError, match="`uncertainty` is not `linear`"):
        nextstat.yields(model, uncertainty="linear")


def test_a_stored_fit_is_reported_with_all_data_hidden(root, tmp_path):
    model = nextstat.load_workspace(root / "examples/shapes.json")
    fit = nextstat.fit(model, mask="signal_region")
    report = nextstat.report(model, fit=fit, blind="*", html=tmp_path / "report.html")
    assert report.goodness_of_fit.statistic is None and report.to_dict()["fit"]["nll"] is None
    assert all(value is None for channel in report.to_dict()["yields"]["channels"] for value in channel["data"])
    assert "723 (no uncertainty)" in repr(report) and "blinded" in repr(report)
    assert (tmp_path / "report.html").exists()


def _shorter(fit, key):
    fit[key] = fit[key][1:]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda fit: fit["bestfit"].__setitem__(0, 99.0), "do not have their checksum"),
        (lambda fit: _shorter(fit, "bestfit"), "bestfit"),
        (lambda fit: _shorter(fit, "uncertainties"), "uncertainties"),
        (lambda fit: _shorter(fit, "covariance"), "covariance"),
        (lambda fit: fit["covariance"].insert(0, [1.0]), "covariance"),
    ],
)
def test_what_is_published_refuses_damaged_fits(damage, message, minimum, tmp_path):
    plot = pytest.importorskip("nextstat.plot", exc_type=ImportError)
    fit = json.loads(minimum.read_text("utf-8"))
    damage(fit)
    minimum.write_text(json.dumps(fit), "utf-8")
    for publish in (
        lambda: nextstat.table(minimum),
        lambda: plot.pulls(minimum),
        lambda: nextstat.hepdata.submission([minimum], tmp_path / "record"),
    ):
        with pytest.raises(nextstat.WorkspaceError, match=message):
            publish()
    assert not (tmp_path / "record").exists()
