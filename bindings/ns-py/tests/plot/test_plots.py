"""Figures: what they draw is what the results say, and they look like the baseline images.

Images are compared without their text and with a tolerance, so that they are the same for any
version of matplotlib and of the fonts; `make_baselines.py` writes them.
"""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy
import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("mplhep")
matplotlib.use("agg")

sys.path.insert(0, str(Path(__file__).parent))

import figures as made  # noqa: E402
import nextstat  # noqa: E402
from nextstat import plot  # noqa: E402

NAMES = sorted(made.figures())

# Of 255, see `difference`. Between matplotlib 3.7 and 3.11 it is up to 1.7; points left out of a
# figure make it 2, two colours exchanged 16 and more.
TOLERANCE = 1.8
# Of stacks, whose outlines versions of mplhep draw differently.
TOLERANCE_OF_STACKS = 5.0


def difference(path, other):
    """The root mean square of what each pixel of an image differs by from the nearest colour of the
    pixels at its place and next to it in the other.

    Versions of matplotlib round edges to one pixel or its neighbour.
    """
    first, second = (matplotlib.image.imread(image)[..., :3] for image in (path, other))
    assert first.shape == second.shape
    return 255 * max(distance(first, second), distance(second, first))


def distance(first, second):
    shifts = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    nearest = numpy.min([numpy.abs(first - numpy.roll(second, shift, axis=(0, 1))).max(axis=2) for shift in shifts], axis=0)
    return float(numpy.sqrt(numpy.mean(nearest**2)))


@pytest.fixture(autouse=True)
def closed():
    with matplotlib.style.context("default"):
        yield
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_looks_as_it_did(name, tmp_path):
    made.write(made.figures()[name](), tmp_path / f"{name}.png")
    tolerance = TOLERANCE_OF_STACKS if name in ("prefit", "postfit", "logarithmic") else TOLERANCE
    assert difference(made.BASELINE / f"{name}.png", tmp_path / f"{name}.png") < tolerance


def test_every_baseline_is_of_a_figure():
    assert sorted(path.stem for path in made.BASELINE.glob("*.png")) == NAMES


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


def test_data_and_prediction_are_those_of_the_yields():
    main, ratio = plot.data_mc(made.yields(), "signal_region", fit="prefit", signal="signal")
    channel = made.yields().channels[1]
    total, data = channel["prefit"]["total"]["yields"], channel["data"]
    x, y, _ = points(main)
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == data.tolist()
    assert points(ratio)[1].tolist() == pytest.approx((data / total).tolist())
    texts = [text.get_text() for text in main.get_legend().get_texts()]
    assert texts == ["data", "signal", "ttbar", "wjets", "fakes", "uncertainty"]


def test_what_a_figure_of_yields_cannot_show_is_said():
    with pytest.raises(ValueError, match="a channel is needed; choose one of control_region, signal_region"):
        plot.data_mc(made.yields())
    with pytest.raises(ValueError, match="has 4 bins, which do not have 4 edges"):
        plot.data_mc(made.yields(), "signal_region", edges=[1, 2, 3, 4])
    with pytest.raises(ValueError, match="no sample `sgnal`"):
        plot.data_mc(made.yields(), "signal_region", signal="sgnal")


def test_small_samples_are_summed_and_the_sum_is_kept():
    main, _ = plot.data_mc(made.yields(), "signal_region", signal="signal", top=2)
    texts = [text.get_text() for text in main.get_legend().get_texts()]
    assert texts == ["data", "signal", "ttbar", "others, summed", "uncertainty"]


def test_intervals_of_counts_are_close_to_the_exact_ones():
    from nextstat.plot.yields import poisson_interval

    # 68.27 % central intervals, from quantiles of χ².
    exact = {0: (0.0, 1.841), 1: (0.173, 3.300), 5: (2.840, 8.382), 20: (15.57, 25.55)}
    for n, ends in exact.items():
        assert poisson_interval([n])[0] == pytest.approx(ends, rel=0.02, abs=0.01)


def test_brazil_bands_are_the_tests_and_the_limit():
    ax = plot.brazil(made.tests(), made.limit())
    lines = [line.get_xydata() for line in ax.lines]
    assert any(line[:, 1].tolist() == [test.CLs_exp[2] for test in made.tests()] for line in lines)
    assert [[made.limit().observed, 0.0], [made.limit().observed, 0.05]] in [line.tolist() for line in lines]
    assert f"{made.limit().observed:.3g}" in ax.get_title(loc="left")


def test_brazil_bands_of_toys_have_their_errors():
    model = nextstat.load_workspace(made.EXAMPLES / "simple.json")
    tests = [nextstat.hypotest_toys(model, mu, n_toys=200) for mu in (1.0, 2.0, 3.0)]
    ax = plot.brazil(tests)
    assert [bars.lines[0].get_ydata().tolist() for bars in ax.containers] == [[test.CLs_obs for test in tests]]


def test_brazil_bands_need_curves():
    with pytest.raises(ValueError, match="upper_limit"):
        plot.brazil(made.limit())


def test_limits_are_sorted_and_scaled():
    ax = plot.limits(made.SIGNALS[::-1], made.limits()[::-1], scale=[1.0, 2.0, 3.0])
    observed = next(line for line in ax.lines if line.get_label() == "observed")
    assert observed.get_xdata().tolist() == list(made.SIGNALS)
    assert observed.get_ydata() == pytest.approx([result.observed * factor for result, factor in zip(made.limits(), (3, 2, 1))])


def area(ring):
    """The area inside of a closed ring, negative if it runs clockwise."""
    (x, y), (next_x, next_y) = ring[:-1].T, ring[1:].T
    return float(numpy.sum(x * next_y - next_x * y) / 2)


def test_exclusion_contours_are_those_of_the_result():
    result = made.exclusion()
    ax = plot.exclusion(result, numbers="expected")
    drawn = {line.get_label(): line for line in ax.lines}
    [observed], [expected] = result.observed["contours"], result.expected[2]["contours"]
    assert (drawn["observed"].get_xydata() == observed["vertices"]).all() and drawn["observed"].get_linestyle() == "-"
    assert (drawn["expected"].get_xydata() == expected["vertices"]).all() and drawn["expected"].get_linestyle() == "--"
    # In the path of the band, what is excluded at +1 standard deviation is a hole.
    [band] = ax.patches
    larger, smaller = (sum(map(area, result.expected[i]["region"])) for i in (1, 3))
    assert larger > smaller > 0
    assert sum(map(area, band.get_path().to_polygons())) == pytest.approx(larger - smaller)
    texts = [text.get_text() for text in ax.texts]
    assert texts == [f"{point['expected'][2]:.2g}" for point in result.points]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["observed", "expected", r"expected $\pm 1\sigma$"]


def test_exclusion_contours_without_an_observation_have_the_expected_points():
    ax = plot.exclusion(made.exclusion(), observed=False)
    inside = next(line for line in ax.lines if line.get_linestyle() == "None")
    excluded = [[point["x"], point["y"]] for point in made.exclusion().points if point["excluded_expected"]]
    assert inside.get_xydata().tolist() == excluded
    assert "observed" not in {line.get_label() for line in ax.lines}


def test_toys_are_densities_with_the_p_values_beside_them():
    result = made.toys()
    ax = plot.toys(result, bins=30)
    for stairs in ax.patches:
        density, edges, _ = stairs.get_data()
        assert numpy.sum(density * numpy.diff(edges)) == pytest.approx(1.0, abs=0.01)
    assert f"CLs = {result.CLs_obs:.3g}" in ax.get_legend().get_texts()[-1].get_text()


def test_axes_that_are_given_are_drawn_on():
    figure, axes = matplotlib.pyplot.subplots(2, 2)
    assert plot.pulls(made.fit(), ax=axes[0, 0]) is axes[0, 0]
    assert plot.toys(made.toys(), ax=axes[0, 1]) is axes[0, 1]
    assert plot.data_mc(made.yields(), "signal_region", ax=axes[1])[0] is axes[1, 0]
    assert matplotlib.pyplot.get_fignums() == [figure.number]


def _without(result, **fields):
    return type(result)({**result._fields, **fields})


def _other_limit():
    return nextstat.upper_limit(nextstat.load_workspace(made.EXAMPLES / "simple.json"))


def _all_fixed():
    model = made.shapes()
    return nextstat.fit(model, fixed=dict(zip(model.par_names, model.init.tolist(), strict=True)))


WRONG = {
    "edges that descend": (lambda: plot.data_mc(made.yields(), "signal_region", edges=[4, 3, 2, 1, 0]), ValueError, "`edges` is to ascend"),
    "edges that are equal": (lambda: plot.data_mc(made.yields(), "signal_region", edges=[0, 1, 1, 2, 3]), ValueError, "`edges` is to ascend"),
    "edges that are text": (lambda: plot.data_mc(made.yields(), "signal_region", edges="01234"), TypeError, "`edges` must be a sequence of numbers"),
    "edges of no channel": (lambda: plot.data_mc(made.yields(), "signal_region", edges={"signal": [0, 1]}), ValueError, "`edges` are of a channel `signal`"),
    "labels": (lambda: plot.data_mc(made.yields(), "signal_region", bins=["a"]), ValueError, "`bins` has 1 labels for 4 bins"),
    "top of yields": (lambda: plot.data_mc(made.yields(), "signal_region", top=-1), ValueError, "`top` is -1, and must be at least 1"),
    "one axes of two": (lambda: plot.data_mc(made.yields(), "signal_region", ax=3), TypeError, "`ax` is a pair of axes"),
    "yields of a fit": (lambda: plot.data_mc(made.fit()), TypeError, "`result` must be a `YieldsResult`, as `nextstat.yields` returns it, not a `FitResult`"),
    "limits of tests": (lambda: plot.brazil(made.fit()), TypeError, "`tests` must be a sequence of results, not a `FitResult`"),
    "tests of anything": (lambda: plot.brazil([made.fit()]), TypeError, "`tests` must be a `HypotestResult` or `ToyHypotestResult`"),
    "a limit of anything": (lambda: plot.brazil(made.tests(), 3), TypeError, "`limit` must be a `LimitResult`"),
    "no tests": (lambda: plot.brazil([]), ValueError, "`tests` is empty"),
    "a band of two models": (lambda: plot.brazil(made.tests(), _other_limit()), ValueError, "different models or data"),
    "a band of two statistics": (
        lambda: plot.brazil([*made.tests(), nextstat.hypotest(made.shapes(), test_stat="q")]),
        ValueError,
        "different test statistics: q, qtilde",
    ),
    "a band of two levels": (lambda: plot.brazil(made.tests(), made.limit(), level=0.1), ValueError, "`level` is not that of the limits: 0.05 and 0.1"),
    "a level in percent": (lambda: plot.brazil(made.tests(), level=5), ValueError, "`level` has probabilities between 0 and 1"),
    "pulls of nothing free": (lambda: plot.pulls(_all_fixed()), ValueError, "`result` has no pulls: no constrained parameter was free"),
    "pulls of a ranking": (lambda: plot.pulls(made.ranking()), TypeError, "`result` must be a `FitResult`"),
    "pulls of a number": (lambda: plot.pulls(made.fit(), parameters=3), TypeError, "`parameters` is a name or a sequence of names, not `3`"),
    "pulls on no axes": (lambda: plot.pulls(made.fit(), ax="axes"), TypeError, "`ax` must be axes of matplotlib, not `'axes'`"),
    "no limits": (lambda: plot.limits([], []), ValueError, "`results` is empty"),
    "one limit": (lambda: plot.limits([1], made.limit()), TypeError, "`results` must be a sequence of results, not a `LimitResult`"),
    "too many values": (lambda: plot.limits([1, 2], [made.limit()]), ValueError, "`values` has 2 for 1 limits"),
    "limits of two levels": (
        lambda: plot.limits([1, 2], [made.limit(), _without(made.limit(), level=0.1)]),
        ValueError,
        "`results` are limits of different levels: 0.05, 0.1",
    ),
    "values that are none": (lambda: plot.limits([1, numpy.nan, 3], made.limits()), ValueError, "`values` has nan, which has no place on an axis"),
    "a short theory": (lambda: plot.limits(made.SIGNALS, made.limits(), theory=[1.0]), ValueError, "`theory` has 1 values for 3 limits"),
    "the last of a ranking": (lambda: plot.ranking(made.ranking(), top=-1), ValueError, "`top` is -1, and must be at least 1"),
    "none of a ranking": (lambda: plot.ranking(made.ranking(), top=0), ValueError, "`top` is 0, and must be at least 1"),
    "impacts": (lambda: plot.ranking(made.ranking(), impacts="all"), ValueError, "`impacts` is `classic`, `global` or `covariance`, not `all`"),
    "a ranking of a fit": (lambda: plot.ranking(made.fit()), TypeError, "`result` must be a `RankingResult`"),
    "correlations of text": (lambda: plot.correlation(made.fit(), threshold="0.2"), TypeError, "`threshold` must be a number, not `'0.2'`"),
    "no contours": (lambda: plot.contours(_without(made.contours(), contours=())), ValueError, "`result` has no contour with points to draw"),
    "contours of a scan": (lambda: plot.contours(made.scan()), TypeError, "`result` must be a `ContourResult`"),
    "a scan of contours": (lambda: plot.scan(made.contours()), TypeError, "`result` must be a `ScanResult`"),
    "levels of a scan": (lambda: plot.scan(made.scan(), levels=[68]), ValueError, "`levels` has probabilities between 0 and 1"),
    "exclusion of limits": (lambda: plot.exclusion(made.limit()), TypeError, "`result` must be a `ExclusionResult`, as `nextstat.exclusion` returns it"),
    "numbers of nothing": (lambda: plot.exclusion(made.exclusion(), numbers="all"), ValueError, "`numbers` is `observed` or `expected`, not `all`"),
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


def test_limits_on_a_grid_are_bands_of_their_own():
    ax = plot.brazil(nextstat.upper_limit(made.shapes(), grid=made.GRID))
    assert ax.get_title(loc="left")


def test_one_point_is_drawn_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot.brazil(iter(made.tests()[4:5]))
        plot.limits(numpy.array([300]), made.limits()[:1])
        plot.scan(nextstat.profile_scan(made.shapes(), [1.0]))


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
