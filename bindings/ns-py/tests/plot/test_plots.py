"""Figures of parameters, of the likelihood and of toys show the numbers of the results."""

import subprocess
import sys

import figures as made
import matplotlib
import nextstat
import numpy
import pytest
from nextstat import plot


def points(ax):
    """Where the points with error bars are, and their half widths."""
    bars = ax.containers[-1]
    line = bars.lines[0]
    segments = bars.lines[2][0].get_segments()
    return line.get_xdata(), line.get_ydata(), [numpy.ptp(segment[:, 0]) / 2 for segment in segments]


def test_pulls_are_those_of_the_fit():
    result = made.fit()
    x, y, widths = points(plot.pulls(result))
    assert x.tolist() == [entry["pull"] for entry in result.pulls]
    assert widths == pytest.approx([entry["constraint"] for entry in result.pulls])
    assert y.tolist() == list(range(len(result.pulls)))


def test_pulls_can_be_chosen_and_left_out():
    ax = plot.pulls(made.fit(), parameters=["theory_*", "fakes_method[2]", "mc_stat_signal_region*"], exclude="*[3]")
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[-4:] == ["fakes_method[2]", *(f"mc_stat_signal_region[{i}]" for i in range(3))]
    with pytest.raises(ValueError, match="no parameter is called `jes`"):
        plot.pulls(made.fit(), parameters="jes")


def test_rankings_show_the_largest_impacts_first_and_both_sides():
    result = made.ranking()
    ax = plot.ranking(result, top=5)
    assert [label.get_text() for label in ax.get_yticklabels()] == [entry["parameter"] for entry in result.ranking[:5]]
    bars = {container.get_label(): [bar.get_width() for bar in container] for container in ax.child_axes[0].containers}
    assert bars["$-1\\sigma$ post-fit"] == pytest.approx([entry["postfit"]["down"]["impact"] for entry in result.ranking[:5]])
    constrained = [entry for entry in result.ranking[:5] if entry["prefit"]]
    assert bars["$+1\\sigma$ pre-fit"][-len(constrained) :] == pytest.approx([entry["prefit"]["up"]["impact"] for entry in constrained])


def test_rankings_by_covariance_are_symmetric():
    model = made.shapes()
    ax = plot.ranking(nextstat.ranking(model, methods="covariance"))
    down, up = ([bar.get_width() for bar in container] for container in ax.child_axes[0].containers[1::2])
    assert numpy.nansum(numpy.add(down, up)) == pytest.approx(0.0)


def test_correlations_below_the_threshold_are_left_out():
    result = made.fit()
    ax = plot.correlation(result, threshold=0.3)
    names = [label.get_text() for label in ax.get_yticklabels()]
    image = ax.images[0].get_array()
    assert 2 < len(names) < len(result.par_names)
    for row, name in enumerate(names):
        others = numpy.delete(numpy.abs(image[row]), row)
        assert others.max() >= 0.3
        assert image[row, 0] == result.correlation[result.par_names.index(name), result.par_names.index(names[0])]
    with pytest.raises(ValueError, match=r"0\.99 or more"):
        plot.correlation(result, threshold=0.99)
    with pytest.raises(ValueError, match="covariance=True"):
        plot.correlation(nextstat.fit(made.shapes(), covariance=False))


def test_scans_share_axes_and_have_their_levels():
    first = plot.scan(made.scan(), label="observed")
    heights = [line.get_ydata()[0] for line in first.lines if line.get_linestyle() == "--"]
    assert heights == pytest.approx([1.0, 3.841], abs=1e-3)
    n_lines = len(first.lines)
    again = plot.scan(made.scan(), label="again", ax=first)
    assert again is first and len(first.lines) == n_lines + 2
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["observed", "again"]


def test_points_of_a_scan_that_failed_are_gaps_and_said():
    fields = dict(made.scan()._fields)
    fields["twice_delta_nll"] = fields["twice_delta_nll"].copy()
    fields["twice_delta_nll"][3] = numpy.nan
    ax = plot.scan(nextstat.ScanResult(fields))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fit failed"]


def test_contours_are_closed_at_the_points_of_the_result():
    result = made.contours()
    ax = plot.contours(result)
    thin = [line for line in ax.lines if line.get_linewidth() < 1]
    for line, contour in zip(thin, result.contours, strict=True):
        assert line.get_xydata()[:-1].tolist() == [list(point["values"]) for point in contour["points"]]
        assert line.get_xydata()[0].tolist() == line.get_xydata()[-1].tolist()


def test_toys_are_densities_with_the_p_values_beside_them():
    result = made.toys()
    ax = plot.toys(result, bins=30)
    for stairs in ax.patches:
        density, edges, _ = stairs.get_data()
        assert numpy.sum(density * numpy.diff(edges)) == pytest.approx(1.0, abs=0.01)
    assert f"CLs = {result.CLs_obs:.3g}" in ax.get_legend().get_texts()[-1].get_text()


def _without(result, **fields):
    return type(result)({**result._fields, **fields})


def _all_fixed():
    model = made.shapes()
    return nextstat.fit(model, fixed=dict(zip(model.par_names, model.init.tolist(), strict=True)))


WRONG = {
    "pulls of nothing free": (lambda: plot.pulls(_all_fixed()), ValueError, "`result` has no pulls: no constrained parameter was free"),
    "pulls of a ranking": (lambda: plot.pulls(made.ranking()), TypeError, "`result` must be a `FitResult`"),
    "pulls of a number": (lambda: plot.pulls(made.fit(), parameters=3), TypeError, "`parameters` is a name or a sequence of names, not `3`"),
    "pulls on no axes": (lambda: plot.pulls(made.fit(), ax="axes"), TypeError, "`ax` must be axes of matplotlib, not `'axes'`"),
    "the last of a ranking": (lambda: plot.ranking(made.ranking(), top=-1), ValueError, "`top` is -1, and must be at least 1"),
    "none of a ranking": (lambda: plot.ranking(made.ranking(), top=0), ValueError, "`top` is 0, and must be at least 1"),
    "impacts": (lambda: plot.ranking(made.ranking(), impacts="all"), ValueError, "`impacts` is `classic`, `global` or `covariance`, not `all`"),
    "a ranking of a fit": (lambda: plot.ranking(made.fit()), TypeError, "`result` must be a `RankingResult`"),
    "correlations of text": (lambda: plot.correlation(made.fit(), threshold="0.2"), TypeError, "`threshold` must be a number, not `'0.2'`"),
    "no contours": (lambda: plot.contours(_without(made.contours(), contours=())), ValueError, "`result` has no contour with points to draw"),
    "contours of a scan": (lambda: plot.contours(made.scan()), TypeError, "`result` must be a `ContourResult`"),
    "a scan of contours": (lambda: plot.scan(made.contours()), TypeError, "`result` must be a `ScanResult`"),
    "levels of a scan": (lambda: plot.scan(made.scan(), levels=[68]), ValueError, "`levels` has probabilities between 0 and 1"),
    "no bins": (lambda: plot.toys(made.toys(), bins=0), ValueError, "`bins` is 0, and must be at least 1"),
    "bins that descend": (lambda: plot.toys(made.toys(), bins=[2, 1, 0]), ValueError, "`bins` is to ascend"),
    "toys of a test": (lambda: plot.toys(made.tests()[0]), TypeError, "`result` must be a `ToyHypotestResult`, as `nextstat.hypotest_toys` returns it"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_said(case):
    call, kind, message = WRONG[case]
    before = matplotlib.pyplot.get_fignums()
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert matplotlib.pyplot.get_fignums() == before, "a figure is left behind"


def test_dollar_signs_in_names_are_letters(tmp_path):
    from nextstat.histograms import WorkspaceBuilder

    builder = WorkspaceBuilder()
    region = builder.channel("a $region$", data=[57, 63, 40])
    region.sample("$signal$^", [12, 11, 4]).normfactor("mu$_{$")
    region.sample("$back$_{", [50, 52, 38]).normsys("$scale_{$", 0.05).normsys("one $", 0.03).normsys("b $ c $ d_{", 0.1)
    model = builder.model(poi="mu$_{$", bounds={"mu$_{$": (0, 10)})
    fit, values = nextstat.fit(model), [0.0, 1.0, 2.0, 4.0]
    limit = nextstat.upper_limit(model, grid=values)
    drawn = [
        plot.pulls(fit),
        plot.correlation(fit, threshold=0.0),
        plot.ranking(nextstat.ranking(model)),
        plot.scan(nextstat.profile_scan(model, values)),
        plot.scan(nextstat.profile_scan(model, [[0, 1, 2], [-1, 0, 1]], parameter=("mu$_{$", "$scale_{$"))),
        plot.contours(nextstat.contours(model, ("mu$_{$", "$scale_{$"), [0.68])),
        plot.data_mc(nextstat.yields(model))[0],
        plot.brazil(limit),
        plot.limits([1.0, 2.0], [limit, limit]),
    ]
    for k, ax in enumerate(drawn):
        ax.figure.savefig(tmp_path / f"{k}.png")


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_package_does_without_matplotlib():
    code = "import sys, nextstat; assert not {'matplotlib', 'mplhep', 'pyplot'} & set(sys.modules)"
    assert run(code).returncode == 0
    hidden = "import sys; sys.modules['matplotlib'] = None; import nextstat.plot"
    assert "nextstat.plot needs matplotlib and mplhep: `pip install 'nextstat-rs[plot]'`" in run(hidden).stderr
