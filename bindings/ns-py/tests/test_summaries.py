"""Tables have the numbers and the header of the command's."""

import io
import re

import nextstat
import numpy as np
import pytest

EVERY_CONDITION = {"fixed": {"lumi": 1.0}, "bounds": {"mu": (0.0, 7.0)}, "mask": "signal_region[3]"}
OPTIONS = ["--fix", "lumi=1", "--bounds", "mu=0:7", "--mask", "signal_region[3]"]
#: What depends on data, by the verb of the command.
RESULTS = {
    "fit": nextstat.fit,
    "yields": nextstat.yields,
    "report": nextstat.report,
    "gof": nextstat.goodness_of_fit,
    "scan": lambda model, **options: nextstat.profile_scan(model, points=3, **options),
    "ranking": lambda model, **options: nextstat.ranking(model, methods="covariance", **options),
    "hypotest": nextstat.hypotest,
    "significance": nextstat.significance,
    "limit": nextstat.upper_limit,
    "toys": lambda model, **options: nextstat.fit_toys(model, n_toys=2, **options),
    "hypotest-toys": lambda model, **options: nextstat.hypotest_toys(model, n_toys=2, **options),
    "interval": lambda model, **options: nextstat.interval(model, max_toys=500, **options),
    "coverage": lambda model, **options: nextstat.coverage(model, [1.0], n_toys=50, **options),
    "limit --toys": lambda model, **options: nextstat.upper_limit_toys(model, max_toys=500, **options),
    "significance --toys": lambda model, **options: nextstat.significance_toys(model, max_toys=500, **options),
    "fits": lambda model, **options: nextstat.fits(model, [model.data], **options),
    "contours": lambda model, **options: nextstat.contours(model, ("mu", "norm_ttbar"), 0.68, points=4, **options),
    "limit --at": lambda model, **options: nextstat.limit_scan(model, {"norm_ttbar": [1.0]}, **options),
    "every_poi": lambda model, **options: nextstat.every_poi(model, lambda model: nextstat.significance(model, **options)),
}
COUNTS = {
    "coverage": ["--true", "1", "--n-toys", "50"], "toys": ["--n-toys", "2"], "hypotest-toys": ["--n-toys", "2"],
    "scan": ["--points", "3"], "ranking": ["--method", "covariance"],
}  # fmt: skip


@pytest.fixture(scope="module")
def path(root):
    return root / "examples/shapes.json"


@pytest.fixture(scope="module")
def model(path):
    return nextstat.load_workspace(path)


def table_of(verb, path, *options):
    """The table that the command prints."""
    return nextstat.command([verb, path, "--summary", *options]).messages


@pytest.mark.filterwarnings("ignore::nextstat.NextstatWarning")
@pytest.mark.parametrize("verb", RESULTS)
def test_results_begin_with_the_conditions_of_the_command(path, model, verb):
    result = RESULTS[verb](model, **EVERY_CONDITION)
    lines = repr(result).splitlines()
    header = [
        "data: observed",
        "fixed: lumi = 1",
        "ranges: mu from 0 to 7",
        "masked: signal_region (bins 3)",
    ]
    assert lines[1:5] == [f"  {line}" for line in header]
    assert "<br>".join(header) in result._repr_html_()
    if verb in COUNTS or verb in ("fit", "yields", "report", "gof", "hypotest", "significance", "limit"):
        there = table_of(verb, path, *COUNTS.get(verb, ()), *OPTIONS).splitlines()
        start = there.index(header[0])
        assert there[start : start + 4] == header


def test_results_of_a_stored_fit_name_its_file(path, model, tmp_path):
    stored = tmp_path / "fit.json"
    nextstat.command(["fit", path, "--covariance", "--output-file", stored])
    for call in (nextstat.yields, nextstat.report, nextstat.goodness_of_fit, nextstat.ranking):
        assert repr(call(model, fit=stored)).splitlines()[1:3] == ["  data: observed", f"  fit: {stored}"]
    blinded = nextstat.yields(model, fit=stored, blind="signal_region")
    assert "  blinded: signal_region" in repr(blinded).splitlines()


def test_names_in_conditions_are_escaped(root):
    text = (root / "examples/simple.json").read_text().replace('"mu"', '"mu\\u202e<b>"')
    result = nextstat.fit(nextstat.model_of(text), fixed={"mu\u202e<b>": 1.0})
    assert "\u202e" not in repr(result) + result._repr_html_() and "<b>mu" not in result._repr_html_()
    assert "mu\\u{202e}&lt;b&gt; = 1" in result._repr_html_()


def test_values_are_rounded_as_the_command_rounds_them(path, model):
    here, there = repr(nextstat.fit(model, minos=["mu", "norm_ttbar"])), table_of("fit", path, "--minos=mu", "--minos=norm_ttbar")
    for name in ("mu", "norm_ttbar"):
        value = re.search(rf"^  {name} = (.*)$", there, re.M).group(1)
        assert re.search(rf"^  {name} +{re.escape(value)}$", here, re.M), (value, here)
    assert re.search(r"\(stat\. [\d.]+, syst\. [\d.]+, by covariance\), MINOS", here)
    pulls = re.search(r"pulls +best fit.*?\n((  \S.*\n)+)", there).group(1).splitlines()
    for row in pulls[1:]:
        assert row.split() in [line.split() for line in here.splitlines()], row
    totals = re.findall(r"^  total +(.*?\S ± \S+) +(\S+ ± \S+)$", table_of("yields", path), re.M)
    shown = repr(nextstat.yields(model))
    assert len(totals) == 2 and all(number in shown for row in totals for number in row), (totals, shown)


def test_values_at_bounds_and_all_intervals_are_said(path, model):
    at_bound = repr(nextstat.fit(model, bounds={"mu": (0.0, 1.0)}))
    assert re.search(r"^  mu +1 \(at its upper bound\)$", at_bound, re.M), at_bound
    assert re.search(r"^  mu +1 \(no uncertainty\)$", repr(nextstat.fit(model, fixed={"mu": 1.0})), re.M)
    both = repr(nextstat.fit(model, minos="mu", minos_cl=[0.68, 0.95]))
    assert re.search(r"MINOS 68 % CL \S+ \S+, MINOS 95 % CL \S+ \S+", both), both


def test_rankings_have_the_columns_of_the_command(path, model):
    groups = {"statistics": "mc_stat_*", "fakes": "fakes_*"}
    here = [re.split(r" {2,}", line.strip()) for line in repr(nextstat.ranking(model, groups=groups)).splitlines()]
    there = table_of("ranking", path, "--group", "statistics=mc_stat_*", "--group", "fakes=fakes_*").splitlines()
    there = [re.split(r" {2,}", line.strip()) for line in there]
    columns = next(row for row in there if row[0].startswith("impact on"))
    assert columns in here and columns[3:5] == ["pre-fit +1σ", "-1σ"]
    rows = there[there.index(columns) + 2 :][:10]
    assert here[here.index(columns) + 1 :][:10] == rows
    columns = ["group", "parameters", "frozen", "global"]
    assert here[here.index(columns) + 1 :][:2] == there[there.index(columns) + 2 :][:2]
    assert ["mu", next(row for row in there if row[0].startswith("mu = "))[0].removeprefix("mu = ")] in here


@pytest.mark.filterwarnings("ignore::nextstat.NextstatWarning")
def test_missing_data_are_accepted_where_they_are_masked(model):
    nothing = {"control_region": model.data[:3], "signal_region": [np.nan] * 4}
    result = nextstat.report(model, data=nothing, mask="signal_region")
    assert result.fit == nextstat.fit(model, mask="signal_region")
    assert np.isnan(result.channels[1]["data"]).all() and "blinded" in repr(result) and "nan" not in repr(result)
    assert nextstat.yields(model, data=nothing, blind="signal_region").channels[1] is not None
    many = nextstat.fits(model, [[*model.data[:3], *[np.nan] * 4]], mask="signal_region")
    assert many.bestfit.shape == (1, model.n_params) and not np.isnan(many.bestfit).any()
    for options in ({}, {"mask": "signal_region[1:]"}, {"blind": "signal_region", "fit_blinded": True}):
        with pytest.raises(nextstat.DataError, match="`signal_region`, bin 0: NaN is not a valid number") as refused:
            nextstat.yields(model, data=nothing, **options)
        assert "`mask`" in refused.value.hint
    with pytest.raises(nextstat.DataError, match="NaN is not a valid number of events"):
        model.nll(model.init, nothing["control_region"].tolist() + [np.nan] * 4)


def test_figures_shade_missing_data(model):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("mplhep")
    matplotlib.use("agg")
    from nextstat import plot

    nothing = {"control_region": model.data[:3], "signal_region": [np.nan] * 4}
    main, _ = plot.data_mc(nextstat.yields(model, data=nothing, mask="signal_region"), "signal_region")
    with io.BytesIO() as file:
        main.figure.savefig(file)
    labels = [text.get_text() for text in main.get_legend().get_texts()]
    assert "Blinded" in labels and "Data" not in labels
    matplotlib.pyplot.close(main.figure)
