"""The figure of a search shows its local p-values, and the global significances."""

from statistics import NormalDist

import figures as made
import nextstat
import numpy
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.text import Text
from nextstat import plot


def curves(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def written(ax):
    return [text.get_text() for text in ax.findobj(Text) if text.get_text()]


def with_fields(**fields):
    return {**made.search().to_dict(), **fields}


def test_curves_are_the_p_values_over_the_masses():
    found, ax = made.search(), plot.search(made.search())
    local = [(patch["values"]["mass"], patch["result"]) for patch in found.patches]
    observed, expected = curves(ax)["Observed"], curves(ax)["Expected"]
    assert observed.get_xydata() == pytest.approx(numpy.array([(mass, result["p0_obs"]) for mass, result in local]))
    assert expected.get_ydata() == pytest.approx([result["p0_exp"][2] for _, result in local])
    [band] = [band for band in ax.collections if isinstance(band, PolyCollection)]
    edges = band.get_paths()[0].vertices[:, 1]
    assert all(numpy.isclose(edges, result["p0_exp"][side]).any() for _, result in local for side in (1, 3))
    assert ax.get_xlabel() == "mass" and ax.get_yscale() == "log"


def test_lines_are_at_whole_standard_deviations():
    ax = plot.search(made.search())
    heights = [line.get_ydata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    assert heights == pytest.approx([NormalDist().cdf(-k) for k in range(1, 6)])
    assert [rf"{k}$\sigma$" in written(ax) for k in range(1, 7)] == [True] * 5 + [False]
    assert ax.get_ylim()[0] < heights[-1]


def test_significances_are_written():
    found, said = made.search(), written(plot.search(made.search()))
    assert rf"Largest local: {found.strongest['Z_obs']:.3g}$\sigma$ at mass = 390" in said
    assert rf"Global: {found.field['Z']:.3g}$\sigma$ (p = {found.field['p_value']:.2g})" in said
    assert any(line.startswith("Global by toys: ") for line in said)
    assert not any("lobal" in line for line in written(plot.search(found, observed=False)))
    rare = {"n_toys": 1000, "n_failed": 0, "global": {"p_value": 0.0, "error": 0.001, "Z": None}}
    assert "Global by toys: p < 0.003" in written(plot.search(with_fields(toys=rare)))


def test_signals_with_the_same_value_are_points_and_the_curve_goes_through_the_smallest():
    document = made.search().to_dict()
    for k, patch in enumerate(document["patches"]):
        patch["values"] = {"mass": patch["values"]["mass"] - 20 * (k % 2), "width": k % 2}
    document["upcrossings"] = None
    with pytest.raises(ValueError, match="`x` is needed; choose one of mass, width"):
        plot.search(document)
    found = curves(plot.search(document, x="mass"))
    p_values = numpy.array([patch["result"]["p0_obs"] for patch in document["patches"]])
    assert found["Observed, smallest"].get_ydata() == pytest.approx(p_values.reshape(-1, 2).min(axis=1))
    assert sorted(found["Every signal"].get_ydata()) == pytest.approx(sorted(p_values))
    assert "Expected" not in found


def test_the_axis_is_the_only_label_with_numbers_that_differ():
    document = made.search().to_dict()
    for patch in document["patches"]:
        patch["values"] = {"kind": "narrow", "width": 1, **patch["values"]}
    document["upcrossings"] = None
    assert plot.search(document).get_xlabel() == "mass"


def test_large_significances_have_room():
    document = made.search().to_dict()
    document["patches"][3]["result"]["p0_obs"] = 1e-40
    document["patches"][4]["result"]["p0_obs"] = 0.0
    ax = plot.search(document)
    assert ax.get_ylim()[0] < 1e-200 and ax.get_yticks().max() <= 1.0


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="there is no label `m`; choose one of mass"):
        plot.search(made.search(), x="m")
    with pytest.raises(TypeError, match="`result` must be a `SearchResult`, not a `LimitResult`"):
        plot.search(made.limit())
    failed = [{"patch": patch["patch"], "values": patch["values"], "error": "no"} for patch in made.search().patches]
    with pytest.raises(nextstat.ConvergenceError, match="there is nothing to draw"):
        plot.search(with_fields(patches=failed))
    words = with_fields(upcrossings=None)
    words["patches"][0]["values"]["mass"] = "light"
    with pytest.raises(ValueError, match="`mass` has the value `light`, which has no place on an axis"):
        plot.search(words, x="mass")
