"""Figures of limits, exclusions and goodness of fit show the numbers of the results."""

import figures as made
import nextstat
import numpy
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text
from nextstat import plot


def curves(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def bands(ax):
    return {band.get_label(): band for band in ax.collections if isinstance(band, PolyCollection)}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def written(ax):
    return [text.get_text() for text in ax.findobj(Text) if text.get_text()]


def at(line, x):
    return float(numpy.interp(x, line.get_xdata(), line.get_ydata()))


def test_brazil_bands_are_the_tests():
    tests = made.tests()
    ax = plot.brazil(tests)
    found = curves(ax)
    assert found["Expected"].get_ydata() == pytest.approx([test.CLs_exp[2] for test in tests])
    assert found["Observed"].get_xydata() == pytest.approx(numpy.array([[test.mu, test.CLs_obs] for test in tests]))
    edge = bands(ax)[r"Expected $\pm 2\sigma$"].get_paths()[0].vertices[:, 1]
    for test in tests:
        assert numpy.isclose(edge, test.CLs_exp[4]).any() and numpy.isclose(edge, test.CLs_exp[0]).any()
    assert ax.get_yscale() == "log" and legend(ax) == ["Observed", "Expected", r"Expected $\pm 1\sigma$", r"Expected $\pm 2\sigma$", "CLs = 0.05"]
    assert plot.brazil(tests, log=False).get_ylim()[0] == 0.0


def test_curves_cross_the_level_at_the_limits():
    coarse = [test for test in made.tests() if test.mu in (0.0, 1.0, 2.0, 3.0, 5.0)]
    limit = made.limit()
    found = curves(plot.brazil(coarse, limit))
    assert at(found["Observed"], limit.observed) == pytest.approx(0.05, rel=1e-9)
    assert at(found["Expected"], limit.expected[2]) == pytest.approx(0.05, rel=1e-9)
    grid = nextstat.upper_limit(made.shapes(), grid=[0.0, 1.0, 2.0, 3.0, 5.0])
    ax = plot.brazil(grid)
    assert at(curves(ax)["Observed"], grid.observed) == pytest.approx(0.05, rel=1e-9)
    assert f"Observed limit: {grid.observed:.3g}" in written(ax)
    assert [[grid.observed, 0.0], [grid.observed, 0.05]] in [line.get_xydata().tolist() for line in ax.lines]


def test_limits_that_were_found_without_a_grid_are_drawn_where_they_were_tested():
    ax = plot.brazil(made.limit())
    observed = curves(ax)["Observed"]
    assert observed.get_linestyle() == "None"
    assert observed.get_xdata().tolist() == sorted(test["mu"] for test in made.limit().tested if test["CLs_obs"] is not None)
    assert f"Observed limit: {made.limit().observed:.3g}" in written(ax)


def test_brazil_bands_of_toys_have_their_errors():
    model = nextstat.load_workspace(made.EXAMPLES / "simple.json")
    tests = [nextstat.hypotest_toys(model, mu, n_toys=200) for mu in (1.0, 2.0, 3.0)]
    ax = plot.brazil(tests)
    [bars] = ax.containers
    heights = [numpy.ptp(segment[:, 1]) / 2 for segment in bars.lines[2][0].get_segments()]
    assert heights == pytest.approx([test.CLs_obs_error for test in tests])


def test_palettes_are_green_and_yellow_or_accessible():
    for palette, colours in plot.PALETTES.items():
        found = bands(plot.brazil(made.tests(), palette=palette))
        assert [to_hex(found[rf"Expected $\pm {k}\sigma$"].get_facecolor()[0]) for k in (1, 2)] == list(colours)
    with pytest.raises(ValueError, match="`palette` is `classic` or `accessible`, not `'green'`"):
        plot.brazil(made.tests(), palette="green")


def test_asimov_data_are_called_so():
    grid = nextstat.upper_limit(made.shapes(), data=nextstat.asimov_data(made.shapes(), {"mu": 0.0}), grid=made.GRID)
    for source in (grid, grid.to_json()):
        ax = plot.brazil(source)
        assert legend(ax)[0] == "Asimov data" and f"Limit of Asimov data: {grid.observed:.3g}" in written(ax)
        assert not any("Observed" in text for text in written(ax))


def test_limits_are_sorted_and_scaled():
    ax = plot.limits(made.SIGNALS[::-1], made.limits()[::-1], scale=[1.0, 2.0, 3.0])
    observed = curves(ax)["Observed"]
    assert observed.get_xdata().tolist() == list(made.SIGNALS)
    assert observed.get_ydata() == pytest.approx([result.observed * factor for result, factor in zip(made.limits(), (3, 2, 1))])
    assert ax.get_legend().get_title().get_text() == "95 % CL limits"


def test_theories_have_their_bands():
    errors = {"LO": [0.5, 0.3, 0.2], "NLO": ([0.1, 0.1, 0.1], [0.2, 0.2, 0.2])}
    ax = plot.limits(made.SIGNALS, made.limits(), theory={"LO": [3.0, 1.5, 1.0], "NLO": [4.0, 2.0, 1.2]}, theory_errors=errors)
    assert curves(ax)["NLO"].get_ydata().tolist() == [4.0, 2.0, 1.2]
    ends = [numpy.unique(band.get_paths()[0].vertices[:, 1].round(9)).tolist() for band in ax.collections if band.get_alpha()]
    assert ends == [[0.8, 1.2, 1.8, 2.5, 3.5], [1.1, 1.4, 1.9, 2.2, 3.9, 4.2]]
    assert legend(ax)[-2:] == ["LO", "NLO"]


def test_limits_of_a_scan_and_of_patches_need_no_values():
    scan = nextstat.limit_scan(made.shapes(), {"norm_ttbar": [0.9, 1.0, 1.1]})
    ax = plot.limits(scan)
    assert curves(ax)["Observed"].get_ydata() == pytest.approx(scan.observed) and ax.get_xlabel() == "norm_ttbar"
    grid = nextstat.every_patch(made.EXAMPLES / "background.json", made.EXAMPLES / "signals.json", nextstat.upper_limit)
    for source in (grid, grid.to_json()):
        ax = plot.limits(source)
        assert curves(ax)["Observed"].get_ydata() == pytest.approx([limit.observed for limit in made.limits()])
        assert curves(ax)["Observed"].get_xdata().tolist() == list(made.SIGNALS)


def test_a_logarithmic_axis_has_numbers_within_a_decade():
    ax = plot.limits(made.SIGNALS, made.limits())
    ax.set_ylim(0.4, 3.0)
    ax.figure.canvas.draw()
    shown = [label.get_text() for label in ax.get_yticklabels(which="both") if label.get_text()]
    assert {"1", "2", "0.5"} <= set(shown) and not any("times" in text for text in shown)


def area(ring):
    """The area inside of a closed ring, negative if it runs clockwise."""
    (x, y), (next_x, next_y) = ring[:-1].T, ring[1:].T
    return float(numpy.sum(x * next_y - next_x * y) / 2)


def test_exclusion_contours_are_those_of_the_result():
    result = made.exclusion()
    ax = plot.exclusion(result, numbers="expected")
    drawn = curves(ax)
    [observed], [expected] = result.observed["contours"], result.expected[2]["contours"]
    assert (drawn["Observed"].get_xydata() == observed["vertices"]).all() and drawn["Observed"].get_linestyle() == "-"
    assert (drawn["Expected"].get_xydata() == expected["vertices"]).all() and drawn["Expected"].get_linestyle() == "--"
    # In the path of the band, what is excluded at +1 standard deviation is a hole.
    [band] = ax.patches
    larger, smaller = (sum(map(area, result.expected[i]["region"])) for i in (1, 3))
    assert larger > smaller > 0
    assert sum(map(area, band.get_path().to_polygons())) == pytest.approx(larger - smaller)
    assert [text.get_text() for text in ax.texts] == [f"{point['expected'][2]:.2g}" for point in result.points]
    assert legend(ax) == ["Observed", "Expected", r"Expected $\pm 1\sigma$"] and "95 % CL" in written(ax)


def test_exclusion_contours_without_an_observation_have_the_expected_points():
    ax = plot.exclusion(made.exclusion(), observed=False)
    inside = next(line for line in ax.lines if line.get_linestyle() == "None")
    excluded = [[point["x"], point["y"]] for point in made.exclusion().points if point["excluded_expected"]]
    assert inside.get_xydata().tolist() == excluded
    assert "Observed" not in curves(ax)


def test_varied_cross_sections_are_dotted_contours():
    ax = plot.exclusion(made.exclusion(), theory=[made.exclusion().to_json(), made.exclusion()])
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert len(dotted) == 2 and r"$\pm 1\sigma$ theory" in legend(ax)


def test_the_p_values_are_those_of_the_goodness_of_fit():
    found = made.goodness()
    ax = plot.gof(found, labels=made.WORDS)
    points = next(line for line in ax.lines if line.get_label() == r"$\chi^2$")
    assert points.get_xdata() == pytest.approx([found.p_value, *(channel["p_value"] for channel in found.channels)])
    [bars] = ax.containers
    toys = [found.toys["total"], *found.toys["channels"]]
    assert bars.lines[0].get_xdata() == pytest.approx([one["value"] for one in toys])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["All channels", "control_region", "Signal region"]
    assert ax.texts[0].get_text() == rf"$\chi^2$/ndf = {found.statistic:.2g}/{found.n_dof:.2g}"


def test_a_report_has_its_goodness_of_fit():
    report = nextstat.report(made.shapes())
    ax = plot.gof(report)
    assert ax.lines[1].get_xdata()[0] == pytest.approx(report.goodness_of_fit.p_value)


def test_one_point_is_drawn_without_a_warning():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot.brazil(iter(made.tests()[4:5]))
        plot.limits(numpy.array([300]), made.limits()[:1])


def without(result, **fields):
    return type(result)({**result._fields, **fields})


def other_limit():
    return nextstat.upper_limit(nextstat.load_workspace(made.EXAMPLES / "simple.json"))


def limits(**options):
    return lambda: plot.limits(made.SIGNALS, made.limits(), **options)


WRONG = {
    "tests of a fit": (lambda: plot.brazil(made.fit()), TypeError, "`tests` must be a `LimitResult`, not a `FitResult`"),
    "tests of anything": (lambda: plot.brazil([made.fit()]), TypeError, "`tests` must be a `HypotestResult` or `ToyHypotestResult`, not a `FitResult`"),
    "a limit of anything": (lambda: plot.brazil(made.tests(), 3), TypeError, "`limit` must be a `LimitResult`"),
    "no tests": (lambda: plot.brazil([]), ValueError, "`tests` is empty"),
    "two models": (lambda: plot.brazil(made.tests(), other_limit()), ValueError, "different models or data"),
    "two statistics": (
        lambda: plot.brazil([*made.tests(), nextstat.hypotest(made.shapes(), test_stat="q")]),
        ValueError,
        "different test statistics: q, qtilde",
    ),
    "two levels": (lambda: plot.brazil(made.tests(), made.limit(), level=0.1), ValueError, "`level` is not that of the limits: 0.05 and 0.1"),
    "a level in percent": (lambda: plot.brazil(made.tests(), level=5), ValueError, "`level` has probabilities between 0 and 1"),
    "no limits": (lambda: plot.limits([], []), ValueError, "`results` is empty"),
    "one limit": (lambda: plot.limits([1], made.limit()), TypeError, "`results` must be a sequence of results, not a `LimitResult`"),
    "too many values": (lambda: plot.limits([1, 2], [made.limit()]), ValueError, "`values` has 2 for 1 limits"),
    "limits of two levels": (
        lambda: plot.limits([1, 2], [made.limit(), without(made.limit(), level=0.1)]),
        ValueError,
        "`results` are limits of different levels: 0.05, 0.1",
    ),
    "values that are none": (lambda: plot.limits([1, numpy.nan, 3], made.limits()), ValueError, "`values` has nan, which has no place on an axis"),
    "a short theory": (limits(theory=[1.0]), ValueError, "`theory` has 1 values for 3 limits"),
    "errors of no theory": (limits(theory_errors=[1, 1, 1]), ValueError, "`theory_errors` are errors of `theory`, which is not given"),
    "errors of another theory": (limits(theory=[1, 1, 1], theory_errors={"LO": [1, 1, 1]}), ValueError, "`theory_errors` has no prediction `LO`"),
    "negative errors": (limits(theory=[1, 1, 1], theory_errors=[-1, 1, 1]), ValueError, "differences from `theory`, and not negative"),
    "a label of no patch": (
        lambda: plot.limits(nextstat.every_patch(made.EXAMPLES / "background.json", made.EXAMPLES / "signals.json", nextstat.upper_limit), x="m"),
        ValueError,
        "there is no label `m`; choose one of",
    ),
    "exclusion of limits": (lambda: plot.exclusion(made.limit()), TypeError, "`result` must be a `ExclusionResult`, not a `LimitResult`"),
    "numbers of nothing": (lambda: plot.exclusion(made.exclusion(), numbers="all"), ValueError, "`numbers` is `observed` or `expected`, not `'all'`"),
    "goodness of a limit": (lambda: plot.gof(made.limit()), TypeError, "`result` must be a `GoodnessOfFit` or `ReportResult`, not a `LimitResult`"),
    "no axes": (lambda: plot.brazil(made.tests(), ax="axes"), TypeError, "`ax` must be axes of matplotlib, not `'axes'`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_said(case):
    import matplotlib

    call, kind, message = WRONG[case]
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert not matplotlib.pyplot.get_fignums(), "a figure is left behind"


def test_data_of_the_caller_are_called_so_in_stored_results_too():
    result = nextstat.upper_limit(made.shapes(), data=made.shapes().data + 1.0)
    for source in (result, result.to_dict()):
        names = [text.get_text() for text in plot.brazil(source).get_legend().get_texts()]
        assert "Given data" in names and "Observed" not in names


def test_points_without_an_error_do_not_take_away_those_of_others():
    tests = [nextstat.hypotest_toys(made.shapes(), mu, n_toys=50, seed=1).to_dict() for mu in (1.0, 2.0)]
    tests[0]["CLs_obs_error"] = None
    bars = plot.brazil(tests).containers[0].lines[2][0].get_segments()
    assert sum(len(segment) == 2 and bool(numpy.isfinite(segment).all()) for segment in bars) == 1
