"""Fits that fail: no result has a number that rests on one, and figures say why."""

import json
import pickle
import warnings

import nextstat
import pytest


@pytest.fixture(scope="module")
def failed():
    """A bin that has seen events and expects none, whatever the parameters are."""
    modifiers = [{"name": "mu", "type": "normfactor", "data": None}, {"name": "jes", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}}]
    return nextstat.model_of({
        "channels": [{"name": "SR", "samples": [{"name": "signal", "data": [0.0], "modifiers": modifiers}]}],
        "observations": [{"name": "SR", "data": [5.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    })  # fmt: skip


def quietly(question, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nextstat.NextstatWarning)
        return question(*arguments, **options)


@pytest.mark.parametrize("question", [nextstat.hypotest, nextstat.significance, nextstat.upper_limit, nextstat.ranking, nextstat.profile_scan])
def test_the_best_fit_of_a_failed_fit_is_none(question, failed):
    options = {"mu_values": [0.0, 1.0]} if question is nextstat.profile_scan else {}
    result = quietly(question, failed, **options)
    assert result.converged is False and "did not converge" in repr(result)
    document = result.to_dict()
    assert (document["poi"] if "poi" in document else document)["bestfit"] is None


def test_a_failed_fit_has_no_goodness(failed):
    result = quietly(nextstat.goodness_of_fit, failed)
    assert (result.statistic, result.constraint_deviance, result.p_value) == (None, None, None)
    assert all(channel["deviance"] is None for channel in result.channels)


def figures():
    plot = pytest.importorskip("nextstat.plot")
    return [
        (nextstat.fit, {"covariance": True}, plot.pulls, "the likelihood is not finite"),
        (nextstat.fit, {"covariance": True}, plot.correlation, "the likelihood is not finite"),
        (nextstat.ranking, {}, plot.ranking, "the free fit did not converge, so there is nothing to rank"),
        (nextstat.goodness_of_fit, {}, plot.gof, "the fit did not converge, so there is no p-value"),
        (nextstat.profile_scan, {"mu_values": [0.0, 1.0]}, plot.scan, "the free fit did not converge, so there is nothing to refer to"),
        (nextstat.yields, {}, plot.regions, "the likelihood is not finite"),
        (nextstat.upper_limit, {}, plot.brazil, "did not converge"),
        (nextstat.hypotest, {}, lambda test: plot.brazil([test]), "did not converge"),
        (nextstat.limit_scan, {"at": {"jes": [0.0, 1.0]}}, plot.limits, "did not converge"),
    ]  # fmt: skip


def test_figures_of_failed_fits_say_why_there_is_nothing_to_draw(failed):
    for question, options, draw, reason in figures():
        result = quietly(question, failed, **options)
        with pytest.raises(nextstat.NextstatError, match="there is nothing to draw: ") as raised:
            draw(result)
        assert reason in str(raised.value), question


def test_yields_before_a_failed_fit_are_drawn(failed):
    plot = pytest.importorskip("nextstat.plot")
    main, _ = plot.data_mc(quietly(nextstat.yields, failed), "SR", fit="prefit")
    assert main.get_figure() is not None


def test_the_verb_plot_of_a_failed_fit_exits_with_its_code(failed, tmp_path, capsys):
    pytest.importorskip("nextstat.plot")
    from nextstat._plot_command import main

    for name, question in (("gof", nextstat.goodness_of_fit), ("ranking", nextstat.ranking), ("fit", nextstat.fit), ("limit", nextstat.upper_limit)):
        stored = tmp_path / f"{name}.json"
        stored.write_text(quietly(question, failed).to_json(), encoding="utf-8")
        assert main(["plot", str(stored), "-o", str(tmp_path / "a.png")], "nextstat") == 1
        assert capsys.readouterr().err.startswith("error: there is nothing to draw: "), name
        assert not (tmp_path / "a.png").exists()


def test_tables_of_stored_failures_warn(failed, tmp_path):
    stored = tmp_path / "fit.json"
    stored.write_text(json.dumps(quietly(nextstat.fit, failed).to_dict()), encoding="utf-8")
    with pytest.warns(nextstat.NextstatWarning, match="numbers of fits that did not converge are left out"):
        nextstat.table(stored)


def test_errors_of_failed_fits_can_be_caught_and_pickled():
    error = pickle.loads(pickle.dumps(nextstat.ConvergenceError("no minimum")))
    assert isinstance(error, nextstat.NextstatError) and str(error) == "no minimum"
