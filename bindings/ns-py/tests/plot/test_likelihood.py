"""Figures of the likelihood draw what the results say: scans, contours, toys, templates."""

import json

import figures as made
import matplotlib
import nextstat
import numpy
import pytest
from nextstat import plot


def lines_of(ax, gid):
    return [line for line in ax.lines if line.get_gid() == gid]


def said(ax):
    """What is written in the label of the axes."""
    texts = [artist for label in ax.artists for artist in label.findobj(matplotlib.text.Text)]
    return [text.get_text() for text in texts if text.get_text()]


def test_a_curve_goes_through_the_points_of_the_scan():
    result = made.scan()
    ax = plot.scan(result)
    [curve], [points] = lines_of(ax, "scan"), lines_of(ax, "points")
    assert points.get_ydata().tolist() == result.twice_delta_nll.tolist()
    x, y = curve.get_xdata(), curve.get_ydata()
    assert len(x) > 5 * len(result.values[0])
    assert numpy.interp(result.values[0], x, y) == pytest.approx(numpy.maximum(result.twice_delta_nll, 0.0), abs=1e-9)


def test_a_coarse_scan_has_the_curve_of_a_fine_one():
    model = made.shapes()
    coarse, fine = (nextstat.profile_scan(model, numpy.linspace(0.0, 4.0, n)) for n in (6, 81))
    [curve] = lines_of(plot.scan(coarse), "scan")
    # Straight lines between six points are up to 0.6 above the curve.
    found = numpy.interp(fine.values[0], curve.get_xdata(), curve.get_ydata())
    assert found == pytest.approx(fine.twice_delta_nll, abs=0.05)


def test_crossings_are_the_intervals_of_the_result_and_are_written():
    result = made.scan()
    ax = plot.scan(result)
    one, two = lines_of(ax, "crossings")
    for line, interval, height in zip((one, two), result.intervals, (1.0, 4.0)):
        ends = [interval["bestfit"] + interval[side] for side in ("down", "up") if interval[side] is not None]
        assert line.get_xdata().tolist() == ends and list(line.get_ydata()) == pytest.approx([height] * len(ends))
    assert any(text.startswith("mu = 1.37") and "+0.86" in text and "-0.71" in text for text in said(ax)), said(ax)
    assert {text.get_text() for text in ax.texts} == {"1σ", "2σ"}


def test_crossings_of_other_levels_are_read_off_the_curve():
    [line] = lines_of(plot.scan(made.scan(), levels=[0.9]), "crossings")
    interval = nextstat.fit(made.shapes(), minos="mu", minos_cl=0.9).minos[0]
    assert line.get_xdata() == pytest.approx([interval["bestfit"] + interval["down"], interval["bestfit"] + interval["up"]], abs=0.01)


def test_scans_share_axes_and_have_their_levels():
    first = plot.scan(made.scan(), name="observed")
    heights = [line.get_ydata()[0] for line in first.lines if line.get_linestyle() == "--"]
    assert heights == pytest.approx([1.0, 4.0], abs=1e-3)
    again = plot.scan(made.scan(), name="again", ax=first)
    assert again is first and len(lines_of(first, "scan")) == 2
    assert len({line.get_color() for line in lines_of(first, "scan")}) == 2
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["observed", "again"]


def test_points_of_a_scan_that_failed_are_gaps_and_said():
    fields = dict(made.scan()._fields)
    fields["twice_delta_nll"] = fields["twice_delta_nll"].copy()
    fields["twice_delta_nll"][3] = numpy.nan
    ax = plot.scan(nextstat.ScanResult(fields))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fit failed"]
    assert lines_of(ax, "failed")[0].get_xdata().tolist() == [fields["values"][0][3]]


def test_a_map_ends_where_the_scan_does():
    result = made.grid()
    ax = plot.scan(result)
    assert ax.get_xlim() == (result.values[0][0], result.values[0][-1])
    assert ax.get_ylim() == (result.values[1][0], result.values[1][-1])


def test_contours_are_closed_at_the_points_of_the_result():
    result = made.contours()
    ax = plot.contours(result)
    thin = [line for line in ax.lines if line.get_linewidth() < 1]
    for line, contour in zip(thin, result.contours, strict=True):
        assert line.get_xydata()[:-1].tolist() == [list(point["values"]) for point in contour["points"]]
        assert line.get_xydata()[0].tolist() == line.get_xydata()[-1].tolist()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["68 %", "95 %", "Best fit"]


def test_regions_by_toys_have_their_rings_and_contours():
    result = made.region()
    ax = plot.contours(result)
    rings = [ring for contour in result.contours for ring in contour["region"]]
    thin = [line for line in ax.lines if line.get_linewidth() < 1]
    for line, ring in zip(thin, rings, strict=True):
        drawn = line.get_xydata().tolist()
        assert drawn[0] == drawn[-1] and drawn[: len(ring)] == [list(vertex) for vertex in ring]
    thick = [line for line in ax.lines if line.get_linewidth() > 1.5 and line.get_marker() != "*"]
    for line, contour in zip(thick, result.contours, strict=True):
        drawn = {tuple(vertex) for vertex in line.get_xydata() if not numpy.isnan(vertex).any()}
        assert drawn == {tuple(vertex) for part in contour["contours"] for vertex in part["vertices"]}
    # The 95 % region ends at mu = 0, where the grid does: its ring has this side, its contour not.
    assert any(part["ends_at_edge"] for part in result.contours[1]["contours"])
    [star] = [line for line in ax.lines if line.get_marker() == "*"]
    assert star.get_xydata().tolist() == [list(result.bestfit)]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["68 %", "95 %", "Best fit"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mu", "norm_ttbar")


def test_toys_are_densities_with_the_p_values_beside_them():
    result = made.toys()
    ax = plot.toys(result, bins=30)
    for stairs in ax.patches:
        density, edges, _ = stairs.get_data()
        assert numpy.sum(density * numpy.diff(edges)) == pytest.approx(1.0, abs=0.01)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"CLs = {result.CLs_obs:.3g}" in texts[-1] and texts[0].startswith("mu = 2: 2000 toys")


def test_variations_are_the_templates_of_the_workspace():
    model = made.shapes()
    main, ratio = plot.variations(model, "signal_region", "theory_wjets", samples="wjets")
    nominal, up, down = ([*patch.get_data().values] for patch in main.patches)
    workspace = json.loads((made.EXAMPLES / "shapes.json").read_text("utf-8"))
    channel = next(one for one in workspace["channels"] if one["name"] == "signal_region")
    sample = next(one for one in channel["samples"] if one["name"] == "wjets")
    factors = next(one["data"] for one in sample["modifiers"] if one["name"] == "theory_wjets")
    assert nominal == pytest.approx(sample["data"])
    assert up == pytest.approx([factors["hi"] * value for value in sample["data"]])
    assert down == pytest.approx([factors["lo"] * value for value in sample["data"]])
    assert ratio.patches[1].get_data().values == pytest.approx([factors["hi"]] * 4)
    assert "theory_wjets" in said(main)


def test_variations_of_all_samples_are_expected_data():
    model = made.shapes()
    main, _ = plot.variations(model, "control_region", "jet_energy_scale", edges=[0, 10, 20, 50])
    point = numpy.array(model.init)
    point[model.index("jet_energy_scale")] = 1.0
    assert main.patches[1].get_data().values == pytest.approx(model.expected_data(point, aux=False)[:3])
    assert main.get_xlim() == (0, 50)


def test_variations_are_one_standard_deviation_of_every_kind_of_term():
    modifiers = [
        {"name": "mu", "type": "normfactor", "data": None},
        {"name": "mc", "type": "staterror", "data": [0.2, 20.0]},
        {"name": "control", "type": "shapesys", "data": [10.0, 10.0]},
    ]
    workspace = {
        "channels": [{"name": "SR", "samples": [{"name": "all", "data": [100.0, 100.0], "modifiers": modifiers}]}],
        "observations": [{"name": "SR", "data": [100, 100]}],
        "measurements": [
            {"name": "m", "config": {"poi": "mu", "parameters": [{"name": "mc", "per_bin": {"constraint": "poisson", "relative_threshold": 0.05}}]}}
        ],
        "version": "1.0.0",
    }
    model = nextstat.model_of(workspace)

    def up(parameter):
        return [*plot.variations(model, "SR", parameter)[0].patches[1].get_data().values]

    assert up("control[0]") == pytest.approx([110.0, 100.0])
    assert up("mc[1]") == pytest.approx([100.0, 120.0])
    with pytest.raises(ValueError, match="has no constraint"):
        up("mc[0]")


WRONG = {
    "no contours": (
        lambda: plot.contours(nextstat.ContourResult({**made.contours()._fields, "contours": ()})),
        ValueError,
        "`result` has no contour with points to draw",
    ),
    "contours of a fit": (
        lambda: plot.contours(made.fit()),
        TypeError,
        "`result` must be a `ContourResult`, `ScanResult` or `RegionResult`, not a `FitResult`",
    ),
    "a scan of contours": (lambda: plot.scan(made.contours()), TypeError, "`result` must be a `ScanResult`"),
    "levels of a scan": (lambda: plot.scan(made.scan(), levels=[68]), ValueError, "`levels` has probabilities between 0 and 1"),
    "no bins": (lambda: plot.toys(made.toys(), bins=0), ValueError, "`bins` is 0, and must be at least 1"),
    "bins that descend": (lambda: plot.toys(made.toys(), bins=[2, 1, 0]), ValueError, "`bins` must be increasing"),
    "toys of a test": (lambda: plot.toys(made.tests()[0]), TypeError, "`result` must be a `ToyHypotestResult`"),
    "toys of the command": (
        lambda: plot.toys({key: value for key, value in made.toys().to_dict().items() if not key.startswith("toys_")}),
        ValueError,
        "the document has no statistics of toys",
    ),
    "variations of a file": (lambda: plot.variations("ws.json", "SR", "a"), TypeError, "`model` must be a `Model`"),
    "no such channel": (lambda: plot.variations(made.shapes(), "SR", "lumi"), ValueError, "the model has no channel `'SR'`"),
    "no such sample": (lambda: plot.variations(made.shapes(), "signal_region", "lumi", samples="w"), ValueError, "the model has no sample `'w'`"),
    "a free parameter": (lambda: plot.variations(made.shapes(), "signal_region", "mu"), ValueError, "`mu` has no constraint"),
    "edges": (lambda: plot.variations(made.shapes(), "signal_region", "lumi", edges=[0, 1]), ValueError, "`edges` has 2 numbers for 4 bins"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_said(case):
    call, kind, message = WRONG[case]
    before = matplotlib.pyplot.get_fignums()
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert matplotlib.pyplot.get_fignums() == before, "a figure is left behind"
