"""Figures look like the baseline images, which `make_baselines.py` writes."""

import figures as made
import matplotlib
import numpy
import pytest

# Root mean square of 255, see `difference`. The same version of matplotlib draws text differently
# with another FreeType, by up to 1.5; a curve or a label that is moved by two pixels makes it 4.
TOLERANCE = 2.5

#: The version that drew the baselines: another one places ticks and text elsewhere.
DRAWN_BY = (made.BASELINE / "matplotlib").read_text(encoding="utf-8").strip()


def difference(path, other):
    """The root mean square of what each pixel of an image differs by from the nearest colour of the
    pixels at its place and next to it in the other.
    """
    first, second = (matplotlib.image.imread(image)[..., :3] for image in (path, other))
    assert first.shape == second.shape
    return 255 * max(distance(first, second), distance(second, first))


def distance(first, second):
    shifts = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    nearest = numpy.min([numpy.abs(first - numpy.roll(second, shift, axis=(0, 1))).max(axis=2) for shift in shifts], axis=0)
    return float(numpy.sqrt(numpy.mean(nearest**2)))


def same_version():
    return matplotlib.__version__.split(".")[:2] == DRAWN_BY.split(".")[:2]


@pytest.mark.skipif(not same_version(), reason=f"the images are of matplotlib {DRAWN_BY}, and this is {matplotlib.__version__}")
@pytest.mark.parametrize("name", sorted(made.IMAGES))
def test_a_figure_looks_as_it_did(name, tmp_path):
    made.image(name, tmp_path / f"{name}.png")
    assert difference(made.BASELINE / f"{name}.png", tmp_path / f"{name}.png") < TOLERANCE


def test_every_baseline_is_of_a_figure():
    assert {path.stem for path in made.BASELINE.glob("*.png")} == set(made.IMAGES)


def test_differences_that_a_reader_sees_are_above_the_tolerance(tmp_path):
    from nextstat import plot

    plot.data_mc(made.yields(), "signal_region", signal="signal")[0].figure.savefig(tmp_path / "a.png", dpi=55)
    plot.data_mc(made.yields(), "signal_region", signal="signal", colors={"wjets": "green"})[0].figure.savefig(tmp_path / "b.png", dpi=55)
    main, _ = plot.data_mc(made.yields(), "signal_region", signal="signal")
    main.set_ylim(0, 1.03 * main.get_ylim()[1])
    main.figure.savefig(tmp_path / "c.png", dpi=55)
    assert difference(tmp_path / "a.png", tmp_path / "b.png") > 2 * TOLERANCE
    assert difference(tmp_path / "a.png", tmp_path / "c.png") > 2 * TOLERANCE
