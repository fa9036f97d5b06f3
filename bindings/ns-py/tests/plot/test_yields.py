"""Figures of yields show the numbers of the results, and keep colours and order of samples."""

import figures as made
import numpy
import pytest
from matplotlib.colors import to_hex
from nextstat import plot


def points(ax):
    """Where the data are: x, y, and half the lengths of the bars along x and y."""
    [bars] = ax.containers
    line, _, (across, along) = bars.lines
    lengths = [[numpy.ptp(segment[:, k]) / 2 for segment in found.get_segments()] for k, found in enumerate((across, along))]
    return line.get_xdata(), line.get_ydata(), *lengths


def stacked(ax):
    """The samples from the bottom of the stack: name, content and colour."""
    found = {}
    for patch in ax.patches:
        if str(patch.get_gid()).startswith("sample "):
            values, _, base = patch.get_data()
            found[patch.get_gid().removeprefix("sample ")] = (values - base, to_hex(patch.get_facecolor()))
    return found


def colours(*args, **options):
    return {name: colour for name, (_, colour) in stacked(plot.data_mc(*args, **options)[0]).items()}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def sample(channel, fit, name):
    return next(values["yields"] for found, values in channel[fit]["samples"].items() if found == name)


def test_data_and_samples_are_those_of_the_result():
    main, ratio = plot.data_mc(made.yields(), "signal_region", fit="prefit", signal="signal")
    channel = made.yields().channels[1]
    total, data = channel["prefit"]["total"]["yields"], channel["data"]
    x, y, half, _ = points(main)
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == data.tolist() and half == [0.5] * 4
    assert points(ratio)[1].tolist() == pytest.approx((data / total).tolist())
    for name, (values, _) in stacked(main).items():
        assert values == pytest.approx(sample(channel, "prefit", name))
    band = next(patch for patch in main.patches if patch.get_gid() == "uncertainty")
    assert band.get_data().values - total == pytest.approx(channel["prefit"]["total"]["uncertainties"])
    assert legend(main) == ["Data", "signal", "ttbar", "wjets", "fakes", "Uncertainty"]


def test_errors_of_data_are_quantiles_of_chi_squared():
    scipy = pytest.importorskip("scipy.stats")
    from nextstat.plot._stack import garwood

    counts = numpy.array([0.0, 0.4, 1.0, 5.0, 76.0, 2500.5])
    tail = scipy.norm.cdf(-1.0)
    lower = numpy.where(counts > 0, 0.5 * scipy.chi2.ppf(tail, 2 * numpy.maximum(counts, 1e-9)), 0.0)
    assert garwood(counts) == pytest.approx(numpy.stack([lower, 0.5 * scipy.chi2.isf(tail, 2 * counts + 2)], axis=-1), rel=1e-10)
    main, _ = plot.data_mc(made.yields(), "signal_region")
    ends = garwood(made.yields().channels[1]["data"])
    assert points(main)[3] == pytest.approx(numpy.ptp(ends, axis=1) / 2)


def test_events_are_counted_in_a_width():
    data = made.yields().channels[1]["data"]
    main, ratio = plot.data_mc(made.yields(), "signal_region", edges=made.EDGES, xlabel="mass [GeV]")
    assert main.get_ylabel() == "Events / 50 GeV"
    assert points(main)[1] == pytest.approx(data / [1, 1, 2, 4])
    assert points(main)[2] == [25, 25, 50, 100] == points(ratio)[2]
    main, _ = plot.data_mc(made.yields(), "signal_region", edges=made.EDGES, per=20, xlabel="mass (GeV)")
    assert main.get_ylabel() == "Events / 20 GeV" and points(main)[1] == pytest.approx(data / [2.5, 2.5, 5, 10])
    main, _ = plot.data_mc(made.yields(), "signal_region", edges=made.EDGES, per=False)
    assert main.get_ylabel() == "Events / bin" and points(main)[1] == pytest.approx(data)
    assert plot.data_mc(made.yields(), "signal_region")[0].get_ylabel() == "Events"


def test_the_axis_of_the_ratio_is_fixed_and_points_outside_are_arrows():
    _, ratio = plot.data_mc(made.yields(), "signal_region")
    assert ratio.get_ylim() == (0.5, 1.5) and not [line for line in ratio.lines if line.get_gid() == "outside"]
    _, ratio = plot.data_mc(made.yields(), "signal_region", ratio=(0.99, 1.01))
    values = points(ratio)[1]
    arrows = {line.get_marker(): line.get_xdata().tolist() for line in ratio.lines if line.get_gid() == "outside"}
    assert arrows == {"^": numpy.flatnonzero(values > 1.01).tolist(), "v": numpy.flatnonzero(values < 0.99).tolist()}


def test_a_logarithmic_axis_begins_at_the_data():
    main, _ = plot.data_mc(made.yields(), "control_region", log=True)
    smallest = min(values[values > 0].min() for values, _ in stacked(main).values())
    bottom, top = main.get_ylim()
    assert 0.1 * smallest < bottom < smallest and top < 1e2 * made.yields().channels[0]["data"].max()


def test_a_sample_has_one_colour_everywhere():
    first = colours(made.yields(), "signal_region")
    assert len(set(first.values())) == len(first)
    others = [
        colours(made.yields(), "signal_region", signal="signal"),
        colours(made.yields(), "signal_region", fit="prefit", edges=made.EDGES),
        colours(made.yields(), "control_region"),
        colours(made.yields(), "signal_region", top=2, signal="signal"),
        {name: colour for name, (_, colour) in stacked(plot.regions(made.yields())[0]).items()},
        plot.sample_colours(made.yields()),
    ]
    for found in others:
        assert {name: colour for name, colour in found.items() if name in first} == {name: first[name] for name in found if name in first}


def pruned(*names):
    document = made.yields().to_dict()
    for channel in document["channels"]:
        for fit in ("prefit", "postfit"):
            channel[fit]["samples"] = [part for part in channel[fit]["samples"] if part["sample"] not in names]
    return document


def test_pruning_does_not_recolour_the_others():
    first = plot.sample_colours(made.yields())
    for name in first:
        rest = plot.sample_colours(pruned(name))
        assert rest == {other: colour for other, colour in first.items() if other != name}


def test_samples_that_prefer_the_same_colour_get_different_ones():
    from nextstat.plot._colours import colours_of

    names = [f"bkg{i}" for i in range(10)] + ["ttbar", "tt", "ttbar_fake", "a", "b", "c", "d"]
    found = colours_of(names)
    assert len(set(found.values())) == len(names)
    assert found == colours_of(names[::-1])
    assert colours_of(names, {"tt": "black"})["tt"] == "black"


def test_words_and_colours_are_those_that_are_given():
    main, _ = plot.data_mc(made.yields(), "signal_region", labels=made.WORDS, colors={"ttbar": "pink"}, signal="signal")
    assert legend(main)[1:4] == [r"$Z'$ (500 GeV)", r"$t\bar{t}$", "$W$ + jets"]
    assert stacked(main)["ttbar"][1] == to_hex("pink")


def test_the_order_is_the_same_in_every_region():
    figures = [(channel, fit) for channel in ("signal_region", "control_region") for fit in ("prefit", "postfit")]
    orders = [list(stacked(plot.data_mc(made.yields(), channel, fit=fit)[0])) for channel, fit in figures]
    common = [[name for name in order if name in orders[2]] for order in orders]
    assert common[0] == common[1] == common[2] == common[3]
    assert list(stacked(plot.data_mc(made.yields(), "signal_region", order=["fakes", "wjets"])[0]))[::-1][:2] == ["fakes", "wjets"]


def test_small_samples_are_summed_and_the_sum_is_kept():
    main, _ = plot.data_mc(made.yields(), "signal_region", signal="signal", top=2)
    assert legend(main) == ["Data", "signal", "ttbar", "others, summed", "Uncertainty"]
    sums = sum(values for values, _ in stacked(main).values())
    assert sums == pytest.approx(made.yields().channels[1]["postfit"]["total"]["yields"])


def test_groups_are_sums_of_their_samples():
    channel = made.yields().channels[1]
    main, _ = plot.data_mc(made.yields(), "signal_region", groups={"W and fakes": ["w*", "fakes"]}, labels={"W and fakes": "$W$, fakes"})
    assert stacked(main)["W and fakes"][0] == pytest.approx(sample(channel, "postfit", "wjets") + sample(channel, "postfit", "fakes"))
    assert "$W$, fakes" in legend(main) and "wjets" not in legend(main)


def test_groups_of_the_result_are_drawn_unless_others_are_wanted():
    import nextstat

    result = nextstat.yields(made.shapes(), groups={"other": ["wjets", "fakes"]})
    assert set(stacked(plot.data_mc(result, "signal_region")[0])) == {"signal", "ttbar", "other"}
    assert set(stacked(plot.data_mc(result, "signal_region", groups={})[0])) == {"signal", "ttbar", "wjets", "fakes"}


def test_signals_are_overlaid_as_before_the_fit():
    main, _ = plot.data_mc(made.yields(), "signal_region", signal="signal", overlay=10)
    [line] = [patch for patch in main.patches if patch.get_gid() == "line signal"]
    assert line.get_data().values == pytest.approx(10 * numpy.asarray(sample(made.yields().channels[1], "prefit", "signal")))
    assert r"signal, pre-fit $\times$ 10" in legend(main) and line.get_linestyle() != "solid"
    assert main.get_ylim()[1] > line.get_data().values.max()


def test_hidden_data_are_not_drawn_but_shaded():
    main, ratio = plot.data_mc(made.yields(), "signal_region", blind="signal_region[2:]")
    assert points(main)[0].tolist() == [0, 1] == points(ratio)[0].tolist()
    assert legend(main)[-1] == "Blinded"
    main, _ = plot.data_mc(made.yields(), "signal_region", blind=True)
    assert not main.containers and "Data" not in legend(main)


def written(ax):
    from matplotlib.text import Text

    return [text.get_text() for text in ax.findobj(Text) if text.get_text()]


def test_the_goodness_of_fit_is_written_after_the_fit():
    import nextstat

    found = made.goodness().channels[1]
    wanted = rf"$\chi^2$/ndf = {found['deviance']:.3g}/{found['n_dof']:.3g}, $p$ = {found['p_value']:.2g}"
    assert wanted in written(plot.data_mc(made.yields(), "signal_region", goodness=made.goodness())[0])
    assert wanted in written(plot.data_mc(nextstat.report(made.shapes()), "signal_region")[0])
    assert wanted not in written(plot.data_mc(made.yields(), "signal_region", goodness=made.goodness(), fit="prefit")[0])


def test_regions_are_the_sums_of_their_bins():
    main, ratio = plot.regions(made.yields(), fit="prefit")
    data = [channel["data"].sum() for channel in made.yields().channels]
    assert points(main)[1].tolist() == data
    totals = [channel["prefit"]["total"]["sum"] for channel in made.yields().channels]
    assert points(ratio)[1] == pytest.approx(numpy.divide(data, totals))
    band = next(patch for patch in main.patches if patch.get_gid() == "uncertainty").get_data()
    assert band.values - totals == pytest.approx([channel["prefit"]["total"]["sum_uncertainty"] for channel in made.yields().channels])
    main, ratio = plot.regions(made.yields(), ["signal_region"], blind="signal_region[0]", labels=made.WORDS)
    assert not main.containers and [label.get_text() for label in ratio.get_xticklabels()] == ["Signal region"]


def draw(**options):
    return lambda: plot.data_mc(made.yields(), "signal_region", **options)


WRONG = {
    "no channel": (lambda: plot.data_mc(made.yields()), ValueError, "a channel is needed; choose one of control_region, signal_region"),
    "another channel": (lambda: plot.data_mc(made.yields(), "SR"), ValueError, "there is no channel `SR`; choose one of control_region, signal_region"),
    "another fit": (draw(fit="both"), ValueError, "`fit` is `prefit` or `postfit`, not `both`"),
    "edges that descend": (draw(edges=[4, 3, 2, 1, 0]), ValueError, "`edges` must be increasing"),
    "edges that are text": (draw(edges="01234"), TypeError, "`edges` must be a sequence of numbers"),
    "too few edges": (draw(edges=[1, 2, 3, 4]), ValueError, "has 4 bins, which do not have 4 edges"),
    "edges of no channel": (draw(edges={"signal": [0, 1]}), ValueError, "`edges` are of a channel `signal`"),
    "labels": (draw(bins=["a"]), ValueError, "`bins` has 1 labels for 4 bins"),
    "a width of nothing": (draw(per=0), ValueError, "`per` is a width above 0, not 0"),
    "no signal": (draw(signal="sgnal"), ValueError, "there is no sample `sgnal`"),
    "an order of nothing": (draw(order="sgnal"), ValueError, "there is no sample `sgnal`"),
    "an overlay of nothing": (draw(overlay=10), ValueError, "`overlay` is a factor above 0 of samples that `signal` names"),
    "a group of nothing": (draw(groups={"a": ["b*"]}), ValueError, "group `a` has no sample of the model; it has"),
    "a sample in two groups": (draw(groups={"a": ["fakes"], "b": ["fakes"]}), ValueError, "sample `fakes` is in two groups"),
    "a colour of nothing": (draw(colors={"ttbr": "red"}), ValueError, "`colors` has no sample `ttbr` to colour"),
    "no colour": (draw(colors={"ttbar": "reddish"}), ValueError, "`colors` has `'reddish'`, which is not a colour"),
    "a ratio beside 1": (draw(ratio=(1.1, 1.5)), ValueError, "`ratio` is two numbers with 1 between them"),
    "one axes of two": (draw(ax=3), TypeError, "`ax` is a pair of axes"),
    "top": (draw(top=-1), ValueError, "`top` is -1, and must be at least 1"),
    "log": (draw(log="y"), TypeError, "`log` is True or False, not `'y'`"),
    "yields of a fit": (lambda: plot.data_mc(made.fit()), TypeError, "`result` must be a `YieldsResult` or `ReportResult`, not a `FitResult`"),
    "yields of a number": (lambda: plot.data_mc(3), TypeError, "`result` must be a `YieldsResult` or `ReportResult` or its document, not a `int`"),
    "goodness of a fit": (draw(goodness=made.fit()), TypeError, "`goodness` must be a `GoodnessOfFit`, not a `FitResult`"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_said(case):
    import matplotlib

    call, kind, message = WRONG[case]
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert not matplotlib.pyplot.get_fignums(), "a figure is left behind"
