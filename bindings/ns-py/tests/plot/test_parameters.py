"""Figures over parameters draw what the results say: pulls, rankings, correlations."""

import itertools
import json

import figures as made
import matplotlib
import nextstat
import numpy
import pytest
from nextstat import plot


def points(bars):
    """Where points with error bars are, and their half widths."""
    line = bars.lines[0]
    widths = [numpy.ptp(segment[:, 0]) / 2 for segment in bars.lines[2][0].get_segments()]
    return line.get_xdata(), line.get_ydata(), widths


def names_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_pulls_are_those_of_the_fit():
    result = made.fit()
    x, y, widths = points(plot.pulls(result).containers[-1])
    assert x.tolist() == [entry["pull"] for entry in result.pulls]
    assert widths == pytest.approx([entry["constraint"] for entry in result.pulls])
    assert y.tolist() == list(range(len(result.pulls)))


def test_pulls_can_be_chosen_and_left_out():
    ax = plot.pulls(made.fit(), parameters=["theory_*", "fakes_method[2]", "mc_stat_signal_region*"], exclude="*[3]")
    assert names_of(ax)[-4:] == ["fakes_method[2]", *(f"mc_stat_signal_region[{i}]" for i in range(3))]
    with pytest.raises(ValueError, match="no parameter is called `jes`"):
        plot.pulls(made.fit(), parameters="jes")


def test_parameters_without_a_constraint_have_a_panel_with_their_values():
    result = made.fit()
    figure = plot.pulls(result).figure
    free = figure.axes[1]
    assert names_of(free)[0] == "mu" and not set(names_of(free)) & {entry["parameter"] for entry in result.pulls}
    x, _, widths = points(free.containers[0])
    assert (x[0], widths[0]) == pytest.approx((result.poi.bestfit, result.poi.uncertainty))
    assert free.texts[0].get_text() == "1.37 ± 0.74"
    assert len(plot.pulls(result, normalisations=False).figure.axes) == 1


def test_several_fits_are_side_by_side_with_a_legend():
    fits = {"B-only": made.background_fit(), "S+B": made.fit()}
    ax = plot.pulls(fits)
    first, second = (points(bars) for bars in ax.containers)
    assert (first[1] < numpy.arange(len(first[1]))).all() and (second[1] > numpy.arange(len(second[1]))).all()
    assert first[0].tolist() == [entry["pull"] for entry in fits["B-only"].pulls]
    assert second[0].tolist() == [entry["pull"] for entry in fits["S+B"].pulls]
    colours = {bars.lines[0].get_color() for bars in ax.containers}
    assert len(colours) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["B-only", "S+B"]
    by_names = plot.pulls(list(fits.values()), names=["a", "b"])
    assert [text.get_text() for text in by_names.get_legend().get_texts()] == ["a", "b"]


def test_fits_of_other_parameters_have_their_own_rows():
    other = nextstat.fit(made.shapes(), fixed={"lumi": 1.0})
    ax = plot.pulls([other, made.fit()])
    row = names_of(ax).index("lumi")
    first, second = ([round(y) for y in bars.lines[0].get_ydata()] for bars in ax.containers)
    assert sorted(first) == [one for one in range(len(names_of(ax))) if one != row]
    assert sorted(second) == list(range(len(names_of(ax))))


def test_groups_have_headings_and_the_others_come_last():
    ax = plot.pulls(made.fit(), groups={"Theory": "theory_*", "Luminosity": "lumi"})
    names = names_of(ax)
    assert names[:6] == ["Theory", "theory_ttbar", "theory_wjets", "theory_signal", "Luminosity", "lumi"]
    assert names[6] == "Others" and len(names) == len(made.fit().pulls) + 3
    assert ax.containers[-1].lines[0].get_ydata().tolist()[:4] == [1, 2, 3, 5]


def _with_pulls(n):
    """A stored report with `n` constrained parameters."""
    report = nextstat.report(made.shapes()).to_dict()
    entries = itertools.islice(itertools.cycle(report["pulls"]), n)
    report["pulls"] = [{**entry, "parameter": f"systematic_{k}"} for k, entry in enumerate(entries)]
    return report


def test_many_rows_are_in_columns_of_which_none_ends_with_a_heading():
    figure = plot.pulls(_with_pulls(130), groups={"First": [f"systematic_{k}" for k in range(42)]}, parameters="systematic_*").figure
    names = [names_of(ax) for ax in figure.axes]
    assert [name for column in names for name in column if name.startswith("sys")] == [f"systematic_{k}" for k in range(130)]
    assert len(names) == 3 and names[1][0] == "Others" and max(map(len, names)) <= 60
    assert len({ax.get_xlim() for ax in figure.axes}) == 1
    figure.draw_without_rendering()
    assert len(plot.pulls(_with_pulls(60), parameters="systematic_*").figure.axes) == 1


def test_values_of_several_fits_do_not_touch():
    figure = plot.pulls({"B-only": made.background_fit(), "S+B": made.fit()}).figure
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[1].texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))


def test_rankings_show_the_largest_impacts_first_and_both_sides():
    result = made.ranking()
    ax = plot.ranking(result, top=5, exclude=["fakes_control*", "norm_*"])
    ranked = [entry for entry in result.ranking if entry["pull"] is not None][:5]
    assert names_of(ax) == [entry["parameter"] for entry in ranked]
    hollow_down, down, hollow_up, up = ([bar.get_width() for bar in container] for container in ax.child_axes[0].containers)
    assert down == pytest.approx([entry["postfit"]["down"]["impact"] for entry in ranked])
    assert up == pytest.approx([entry["postfit"]["up"]["impact"] for entry in ranked])
    assert hollow_down == pytest.approx([entry["prefit"]["down"]["impact"] for entry in ranked])
    assert hollow_up == pytest.approx([entry["prefit"]["up"]["impact"] for entry in ranked])


def test_free_parameters_are_below_a_line_with_their_values():
    ax = plot.ranking(made.ranking(), top=None)
    # A parameter at its bound has no impact, and is left out.
    free = {entry["parameter"] for entry in made.ranking().ranking if entry["pull"] is None and entry["postfit"]}
    assert set(names_of(ax)[-len(free) :]) == free
    line = next(line for line in ax.lines if line.get_color() == "black" and line.get_xdata()[0] == 0)
    assert line.get_ydata()[0] == len(names_of(ax)) - len(free) - 0.5
    assert {text.get_text() for text in ax.texts} >= {"1.04 ± 0.10"}


@pytest.mark.parametrize("impacts", ["classic", "global", "covariance"])
def test_rankings_are_sorted_by_the_impacts_that_they_show(impacts):
    ax = plot.ranking(nextstat.ranking(made.shapes(), methods=["classic", "global", "covariance"]), top=None, impacts=impacts)
    after = ax.child_axes[0].containers[-1], ax.child_axes[0].containers[-1 if impacts == "global" else -3]
    sizes = numpy.max([numpy.abs([bar.get_width() for bar in container]) for container in after], axis=0)
    assert not numpy.isnan(sizes).any(), "a row without an impact"
    n_constrained = sum(not numpy.isnan(x) for x in ax.containers[-1].lines[0].get_xdata())
    if impacts == "covariance":
        for part in (sizes[:n_constrained], sizes[n_constrained:]):
            assert (numpy.diff(part) <= 1e-12).all(), part


def test_ticks_of_impacts_do_not_collide():
    ax = plot.ranking(made.ranking(), top=8).child_axes[0]
    ax.figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels() if label.get_text()]
    assert len(boxes) >= 3
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_rankings_by_covariance_are_symmetric():
    ax = plot.ranking(nextstat.ranking(made.shapes(), methods="covariance"))
    down, up = ([bar.get_width() for bar in container] for container in ax.child_axes[0].containers[1::2])
    assert numpy.nansum(numpy.add(down, up)) == pytest.approx(0.0)


def test_correlations_below_the_threshold_are_left_out():
    result = made.fit()
    ax = plot.correlation(result, threshold=0.3)
    image = ax.images[0].get_array()
    assert 2 < len(names_of(ax)) < len(result.par_names)
    for row, name in enumerate(names_of(ax)):
        others = numpy.delete(numpy.abs(image[row]), row)
        assert others.max() >= 0.3 or name == "mu"
        assert image[row, 0] == result.correlation[result.par_names.index(name), result.par_names.index(names_of(ax)[0])]
    with pytest.raises(ValueError, match=r"0\.99 or more"):
        plot.correlation(result, threshold=0.99)
    with pytest.raises(ValueError, match="covariance=True"):
        plot.correlation(nextstat.fit(made.shapes(), covariance=False))


def test_correlations_follow_from_a_stored_covariance(tmp_path):
    document = made.fit().to_dict()
    del document["correlation"]
    (tmp_path / "fit.json").write_text(json.dumps(document), encoding="utf-8")
    of_covariance, wanted = (plot.correlation(source) for source in (tmp_path / "fit.json", made.fit()))
    assert names_of(of_covariance) == names_of(wanted)
    numpy.testing.assert_allclose(of_covariance.images[0].get_array(), wanted.images[0].get_array(), rtol=1e-12)


def test_parameters_of_interest_are_always_in_the_matrix():
    result = made.fit()
    strongest = numpy.abs(numpy.delete(result.correlation[result.poi.index], result.poi.index))
    threshold = float(numpy.nanmax(strongest)) + 0.1
    assert "mu" in names_of(plot.correlation(result, threshold=threshold))


def test_the_matrix_fills_its_figure():
    ax = plot.correlation(made.fit())
    figure = ax.figure
    figure.draw_without_rendering()
    above = figure.bbox.y1 - ax.get_window_extent().y1
    assert above < 0.06 * figure.bbox.height, above


def test_stored_reports_have_the_figures_of_results(tmp_path):
    report = nextstat.report(made.shapes())
    (tmp_path / "report.json").write_text(report.to_json())
    stored, fresh = plot.pulls(tmp_path / "report.json"), plot.pulls(made.fit())
    assert points(stored.containers[-1])[0].tolist() == pytest.approx(points(fresh.containers[-1])[0].tolist())
    matrix = [plot.correlation(source).images[0].get_array() for source in (report.to_dict(), made.fit())]
    assert matrix[0].tolist() == matrix[1].tolist()
    ranked = [names_of(plot.ranking(source)) for source in (made.ranking().to_json(), made.ranking())]
    assert ranked[0] == ranked[1]


def _all_fixed():
    model = made.shapes()
    return nextstat.fit(model, fixed=dict(zip(model.par_names, model.init.tolist(), strict=True)))


WRONG = {
    "pulls of nothing free": (lambda: plot.pulls(_all_fixed()), ValueError, "`result` has no pulls: no constrained parameter was free"),
    "pulls of nothing": (lambda: plot.pulls([]), ValueError, "`result` is empty"),
    "pulls of a ranking": (lambda: plot.pulls(made.ranking()), TypeError, "`result` must be a `FitResult`"),
    "too many names": (lambda: plot.pulls([made.fit()], names=["a", "b"]), ValueError, "`names` has 2 for 1 fits"),
    "pulls of a number": (lambda: plot.pulls(made.fit(), parameters=3), TypeError, "`parameters` is a name or a sequence of names, not `3`"),
    "pulls on no axes": (lambda: plot.pulls(made.fit(), ax="axes"), TypeError, "`ax` must be axes of matplotlib, not `'axes'`"),
    "the last of a ranking": (lambda: plot.ranking(made.ranking(), top=-1), ValueError, "`top` is -1, and must be at least 1"),
    "none of a ranking": (lambda: plot.ranking(made.ranking(), top=0), ValueError, "`top` is 0, and must be at least 1"),
    "impacts": (lambda: plot.ranking(made.ranking(), impacts="all"), ValueError, "`impacts` is `classic`, `global` or `covariance`, not `all`"),
    "impacts that are not there": (
        lambda: plot.ranking(nextstat.ranking(made.shapes(), methods="covariance"), impacts="classic"),
        ValueError,
        "no impacts of the kind `classic`",
    ),
    "a ranking of a fit": (lambda: plot.ranking(made.fit()), TypeError, "`result` must be a `RankingResult`"),
    "correlations of text": (lambda: plot.correlation(made.fit(), threshold="0.2"), TypeError, "`threshold` must be a number, not `'0.2'`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_said(case):
    call, kind, message = WRONG[case]
    before = matplotlib.pyplot.get_fignums()
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert matplotlib.pyplot.get_fignums() == before, "a figure is left behind"


def test_numbers_of_a_matrix_are_one_artist():
    """Six hundred texts take most of the time that saving takes."""
    ax = plot.correlation(made.fit(), threshold=0.0)
    [numbers] = [collection for collection in ax.collections if collection.get_gid() == "nextstat numbers"]
    matrix = made.fit().correlation
    shown = numpy.abs(numpy.nan_to_num(matrix[numpy.ix_(*2 * [numpy.diag(matrix) > 0])])) >= 0.005
    assert len(numbers.get_paths()) == len(numbers.get_offsets()) == shown.sum() - len(shown)
    assert not ax.texts
