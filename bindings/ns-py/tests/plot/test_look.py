"""The look of figures: nothing overlaps, styles are what was asked for, and nothing global changes.
"""

import pickle

import figures as made
import matplotlib
import nextstat
import numpy
import pytest
from matplotlib.legend import Legend
from matplotlib.text import Text
from nextstat import plot
from nextstat.plot._labels import LABEL
from nextstat.plot._room import SHADING

FIGURES = tuple(made.figures())


def pixels(figure):
    figure.canvas.draw()
    return numpy.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)


def parts(figure, kind):
    """What is written: the labels of the look, or the legends."""
    found = figure.findobj(lambda artist: artist.get_gid() == LABEL if kind == "label" else isinstance(artist, Legend))
    return [artist for artist in found if artist.get_visible()]


def inside(image, box):
    """The pixels of a box, which counts from the bottom."""
    height = image.shape[0]
    rows = slice(max(int(height - box.y1), 0), int(numpy.ceil(height - box.y0)))
    return image[rows, max(int(box.x0), 0) : int(numpy.ceil(box.x1))]


def box_of(artist):
    return artist.get_window_extent()


def shade(figure):
    """Removes shaded areas, which may be written on."""
    for artist in figure.findobj(lambda artist: artist.get_gid() == SHADING):
        artist.set_visible(False)


@pytest.mark.parametrize("style", made.STYLES)
@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_drawn_under_labels_and_legends(name, style):
    figure = made.figures()[name](style=style, **made.LOOK)
    shade(figure)
    figure.canvas.draw()
    written = [*parts(figure, "label"), *parts(figure, "legend")]
    boxes = [box_of(artist) for artist in written]
    assert boxes
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i]), "they overlap each other"
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, "they are cut off"
    for artist in written:
        artist.set_visible(False)
    # Without a layout, which would move everything.
    figure.set_layout_engine("none")
    image = pixels(figure)
    for box in boxes:
        assert (inside(image, box) == 255).all(), "something is drawn there"


@pytest.mark.parametrize("style", made.STYLES)
@pytest.mark.parametrize("name", FIGURES)
def test_labels_of_ticks_do_not_collide(name, style):
    figure = made.figures()[name](style=style, **made.LOOK)
    figure.canvas.draw()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() + axis.get_minor_ticks() if low <= tick.get_loc() <= high]
            labels = [tick.label1 for tick in ticks if tick.label1.get_visible() and tick.label1.get_text()]
            boxes = [label.get_window_extent() for label in labels]
            for i, box in enumerate(boxes):
                assert not any(box.overlaps(other) for other in boxes[:i]), [label.get_text() for label in labels]


@pytest.mark.parametrize("style", made.STYLES)
def test_ticks_point_inwards_on_four_sides_of_continuous_axes(style):
    main, ratio = plot.data_mc(made.yields(), "signal_region", edges=made.EDGES, style=style)
    for ax in (main, ratio):
        ax.figure.canvas.draw()
        for axis in (ax.xaxis, ax.yaxis):
            tick, minor = axis.get_major_ticks()[0], axis.get_minor_ticks()
            assert tick.get_tickdir() == "in" and tick.tick1line.get_visible() and tick.tick2line.get_visible()
            assert minor and minor[0].tick2line.get_visible()


def test_axes_of_categories_have_no_minor_ticks():
    _, ratio = plot.regions(made.yields(), style="ATLAS")
    ratio.figure.canvas.draw()
    assert not ratio.xaxis.get_minor_ticks()
    assert all(tick.tick1line.get_markersize() == 0 for tick in ratio.xaxis.get_major_ticks())


@pytest.mark.parametrize("style", plot.STYLES)
def test_nothing_global_changes(style):
    matplotlib.rcParams["font.size"] = 8.5
    before = dict(matplotlib.rcParams)
    with plot.style(style, label="Internal", rc={"lines.linewidth": 3.0}):
        assert matplotlib.rcParams["lines.linewidth"] == 3.0
        plot.brazil(made.tests())
    plot.brazil(made.tests(), style=style).figure.canvas.draw()
    assert dict(matplotlib.rcParams) == before


def words(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def test_the_label_is_written_as_each_experiment_does():
    draw = made.figures()["brazil"]
    assert {"ATLAS", "Internal", r"$\sqrt{s}$ = 13.6 TeV, 140 fb$^{-1}$"} <= set(words(draw(style="ATLAS", **made.LOOK)))
    assert {"CMS", "Internal", "140 fb$^{-1}$ (13.6 TeV)"} <= set(words(draw(style="CMS", **made.LOOK)))
    assert "LHCb Internal" in words(draw(style="LHCb", **made.LOOK))
    assert not {"ATLAS", "CMS", "LHCb"} & set(words(draw(label="Internal")))
    assert r"$\sqrt{s}$ = 7 and 8 TeV, 5 + 20 fb" in words(draw(energy="7 and 8 TeV", luminosity="5 + 20 fb"))


def test_arguments_of_a_figure_go_before_those_of_the_block():
    with plot.style("ATLAS", label="Internal", energy=13):
        assert {"ATLAS", "Internal", r"$\sqrt{s}$ = 13 TeV"} <= set(words(plot.brazil(made.tests()).figure))
        assert {"ATLAS", "Preliminary"} <= set(words(plot.brazil(made.tests(), label="Preliminary").figure))
        assert "LHCb Internal" in words(plot.brazil(made.tests(), style="LHCb").figure)
    assert "ATLAS" not in words(plot.brazil(made.tests()).figure)


@pytest.mark.parametrize(("style", "family"), [("ATLAS", "TeX Gyre Heros"), ("LHCb", "TeX Gyre Termes")])
def test_a_figure_keeps_its_style_when_it_is_saved_later(style, family, tmp_path):
    figure = made.figures()["brazil"](style=style, **made.LOOK)
    figure.savefig(tmp_path / "a.png")
    matplotlib.rcParams.update({"font.family": ["DejaVu Sans"], "mathtext.fontset": "cm", "xtick.direction": "out"})
    figure.savefig(tmp_path / "b.png")
    pickle.loads(pickle.dumps(figure)).savefig(tmp_path / "c.png")
    first = (tmp_path / "a.png").read_bytes()
    assert (tmp_path / "b.png").read_bytes() == first and (tmp_path / "c.png").read_bytes() == first
    names = {text.get_fontfamily()[0].lower() for text in figure.findobj(Text) if text.get_text()}
    assert names == {family.lower()}


def test_the_style_of_matplotlib_is_what_its_parameters_say():
    with matplotlib.rc_context({"font.family": ["DejaVu Serif"], "font.size": 15.0, "xtick.direction": "out"}):
        ax = plot.brazil(made.tests(), style="matplotlib")
        assert ax.xaxis.label.get_fontfamily() == ["DejaVu Serif"]
        assert ax.xaxis.get_major_ticks()[0].get_tickdir() == "out"
        assert ax.figure.get_size_inches()[0] > plot.brazil(made.tests(), style="plain").figure.get_size_inches()[0]


def test_a_figure_that_is_not_finished_is_closed():
    with pytest.raises(ValueError, match="no sample `x`"):
        plot.data_mc(made.yields(), "signal_region", signal="x")
    with pytest.raises(TypeError, match="unexpected keyword argument 'lable'") as raised:
        plot.brazil(made.tests(), lable="Internal")
    assert raised.value.hint == "did you mean `label`?"
    assert not matplotlib.pyplot.get_fignums()


WRONG = {
    "style": ({"style": "ALICE"}, ValueError, "`style` is `plain`, `ATLAS`, `CMS`, `LHCb` or `matplotlib`, not `'ALICE'`"),
    "label": ({"label": 3}, TypeError, "`label` is text, not `3`"),
    "energy": ({"energy": -13}, ValueError, "`energy` must be above 0, not -13"),
    "luminosity": ({"luminosity": [140]}, TypeError, "`luminosity` is a number or text, not `[140]`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_look_that_is_none_is_refused(name):
    options, kind, message = WRONG[name]
    with pytest.raises(kind) as raised:
        plot.brazil(made.tests(), **options)
    assert str(raised.value) == message


def test_axes_that_are_given_are_drawn_on():
    figure, axes = matplotlib.pyplot.subplots(2, 2)
    assert plot.brazil(made.tests(), ax=axes[0, 0]) is axes[0, 0]
    assert plot.gof(made.goodness(), ax=axes[0, 1]) is axes[0, 1]
    assert plot.data_mc(made.yields(), "signal_region", ax=axes[1])[0] is axes[1, 0]
    assert matplotlib.pyplot.get_fignums() == [figure.number]


def test_stored_documents_give_the_same_figures(tmp_path):
    limits = nextstat.upper_limit(made.shapes(), grid=made.GRID)
    (tmp_path / "limit.json").write_text(limits.to_json(), encoding="utf-8")
    calls = {
        plot.brazil: (limits, tmp_path / "limit.json", {}),
        plot.gof: (made.goodness(), made.goodness().to_dict(), {}),
        plot.exclusion: (made.exclusion(), made.exclusion().to_json(), {}),
        plot.search: (made.search(), made.search().to_dict(), {}),
        plot.data_mc: (made.yields(), made.yields().to_json().encode(), {"channel": "signal_region"}),
        plot.regions: (made.yields(), made.yields().to_dict(), {}),
    }
    for function, (result, stored, options) in calls.items():
        images = [pixels(numpy.atleast_1d(numpy.array(function(source, **options), dtype=object))[0].figure) for source in (result, stored)]
        assert (images[0] == images[1]).all(), function


DAMAGED = {
    "a number that is text": (lambda found: found["channels"][0]["data"].__setitem__(1, "x"), "`/channels/0/data/1`: expected number or null, found `'x'`"),
    "a key that is missing": (lambda found: found["channels"][1]["prefit"].pop("total"), "`/channels/1/prefit`: `total` is missing"),
    "lists of two lengths": (lambda found: found["channels"][0]["data"].pop(), "channel `control_region` has 2 data and 3 yields of the total"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_documents_are_refused_with_the_place(case):
    change, message = DAMAGED[case]
    document = made.yields().to_dict()
    change(document)
    with pytest.raises(nextstat.WorkspaceError) as raised:
        plot.data_mc(document, "control_region")
    assert message in str(raised.value)


def test_documents_of_another_kind_are_refused():
    with pytest.raises(nextstat.WorkspaceError, match="is one of `gof`, and this figure is drawn from `yields` or `report`"):
        plot.data_mc(made.goodness().to_dict())
    with pytest.raises(nextstat.WorkspaceError, match="not a result of nextstat: it has no `\\$schema`"):
        plot.data_mc({"channels": []})
    with pytest.raises(nextstat.WorkspaceError, match="is not JSON"):
        plot.data_mc('{"a": ')
