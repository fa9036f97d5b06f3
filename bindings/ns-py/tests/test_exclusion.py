"""Exclusion contours against SciPy and contourpy, and against a published grid."""

import json

import nextstat
import numpy
import pytest

BAND = (1.0, 0.5, 0.0, -0.5, -1.0)


def made(points, z):
    """The document of a grid whose CLs have the normal quantiles `z`."""
    norm = pytest.importorskip("scipy.stats").norm
    patches = []
    for i, ((x, y), value) in enumerate(zip(points.tolist(), z, strict=True)):
        result = {"CLs_obs": norm.sf(value), "CLs_exp": [norm.sf(value + shift) for shift in BAND]}
        patches.append({"patch": f"s{i}", "values": {"m1": x, "m2": y}, "result": result})
    return {"patches": patches}


def grid(seed):
    """Points of a triangular mass grid, jittered so that its Delaunay triangulation is unique, and
    a smooth function with islands and a part that ends at the edge.
    """
    random = numpy.random.default_rng(seed)
    points = numpy.array([[200.0 + 50 * i, 40.0 * j] for i in range(14) for j in range(12) if 40 * j < 150 + 50 * i])
    points += random.uniform(-8, 8, points.shape)
    x, y = (points - [200, 0]).T / 500
    return points, 1.6 + 1.5 * numpy.sin(4 * x + seed) * numpy.cos(5 * y) - 0.4 * x


def scaled(points, splitting=False):
    plane = numpy.column_stack([points[:, 0], points[:, 0] - points[:, 1]]) if splitting else points
    return (plane - plane.min(axis=0)) / numpy.ptp(plane, axis=0)



@pytest.mark.parametrize("splitting", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_contours_are_those_of_scipy_and_contourpy(seed, splitting):
    spatial = pytest.importorskip("scipy.spatial")
    interpolate = pytest.importorskip("scipy.interpolate")
    matplotlib_tri = pytest.importorskip("matplotlib.tri")
    contours_of = pytest.importorskip("matplotlib._tri").TriContourGenerator
    norm = pytest.importorskip("scipy.stats").norm
    points, z = grid(seed)
    result = nextstat.exclusion(made(points, z), mass_splitting=splitting)
    mesh = spatial.Delaunay(scaled(points, splitting))
    triangulation = matplotlib_tri.Triangulation(*points.T, mesh.simplices)
    n_vertices = 0
    for curve, shift in zip((result.observed, *result.expected), (0.0, *BAND), strict=True):
        interpolated = interpolate.LinearNDInterpolator(mesh, z + shift)
        generator = contours_of(triangulation.get_cpp_triangulation(), z + shift)
        lines, _ = generator.create_contour(norm.ppf(0.95))
        ours = [contour["vertices"] for contour in curve["contours"]]
        assert sorted(len(line) for line in lines) == sorted(len(line) for line in ours)
        for line in ours:
            # Vertices of both are on the same edges; a contour may start elsewhere.
            nearest = min(lines, key=lambda other: numpy.abs(other - line[0]).sum(axis=1).min())
            distance = numpy.abs(line[:, None, :] - nearest[None, :, :]).max(axis=2)
            assert distance.min(axis=1).max() < 1e-9 and distance.min(axis=0).max() < 1e-9
            # On the edge of the grid SciPy has no value: a bit inside.
            middle = (line[1:] + line[:-1]) / 2
            plane = numpy.column_stack([middle[:, 0], middle[:, 0] - middle[:, 1]]) if splitting else middle
            low = (numpy.column_stack([points[:, 0], points[:, 0] - points[:, 1]]) if splitting else points)
            place = (plane - low.min(axis=0)) / numpy.ptp(low, axis=0)
            assert numpy.nanmax(numpy.abs(interpolated(place) - norm.ppf(0.95))) < 1e-9
            n_vertices += len(line)
    assert n_vertices > 200


def test_the_result_is_that_of_any_spelling_of_the_grid(root, tmp_path):
    points, z = grid(1)
    document = made(points, z)
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(document))
    result = nextstat.exclusion(document)
    assert result == nextstat.exclusion(path) == nextstat.exclusion(str(path)) == nextstat.exclusion(path.read_bytes())
    assert nextstat.exclusion(path).provenance["file"] == str(path)
    random = numpy.random.default_rng(2)
    assert nextstat.exclusion({"patches": list(random.permutation(numpy.array(document["patches"], dtype=object)))}) == result


def test_values_of_other_labels_are_numbers_or_words():
    points, z = grid(0)
    document = made(points, z)
    for i, patch in enumerate(document["patches"]):
        patch["values"].update(width=5 if i % 3 else 1, kind="bino" if i % 2 else "wino")
    result = nextstat.exclusion(document, "m1", "m2", at={"width": numpy.float64(5.0), "kind": "bino"})
    assert result.at == {"width": 5, "kind": "bino"} and 20 < len(result.points) < len(points) / 2


def test_contours_of_the_example_are_near_the_exact_one(root):
    """The signals of the example are multiples of one another, so that μ_up is exactly proportional
    to 1 / scale, and the mass with the limit 1 is the root of a formula.
    """
    brentq = pytest.importorskip("scipy.optimize").brentq
    found = {}
    for question in (nextstat.hypotest, nextstat.upper_limit):
        grid = nextstat.every_patch(root / "examples/background.json", root / "examples/plane.json", question)
        [contour] = nextstat.exclusion(grid, "m_gluino", "m_lsp").observed["contours"]
        [found[question]] = [x for x, y in contour["vertices"] if y == 0]
    limit = {patch["patch"]: patch["result"].observed for patch in grid.patches}

    def scale(mass):
        return numpy.exp(-mass / 220) * (1 - numpy.exp(-mass / 250))

    exact = brentq(lambda mass: limit["gluino_600_0"] * scale(600) / scale(mass) - 1, 500, 900)
    # Yields in the file have four decimals.
    assert limit["gluino_700_0"] == pytest.approx(limit["gluino_600_0"] * scale(600) / scale(700), rel=1e-4)
    assert exact == pytest.approx(657.8, abs=0.1)
    assert found[nextstat.upper_limit] == pytest.approx(exact, abs=0.5)
    assert found[nextstat.hypotest] == pytest.approx(exact, abs=5)


WRONG = {
    "a fit": (
        lambda: nextstat.exclusion({"bestfit": [1.0], "par_names": ["mu"]}),
        nextstat.WorkspaceError,
        "the document is the result of a fit",
        "every_patch",
    ),
    "an unknown label": (lambda: nextstat.exclusion(made(*grid(0)), "M1"), nextstat.ParameterError, "have no label `M1`", "did you mean `m1`?"),
    "a level in percent": (lambda: nextstat.exclusion(made(*grid(0)), cl=95), nextstat.ParameterError, "95 is not between", "95 % is `cl=0.95`"),
    "no dictionary": (lambda: nextstat.exclusion(made(*grid(0)), at="m1=3"), TypeError, "`at` is a dictionary of labels and values", None),
    "a label that is a number": (lambda: nextstat.exclusion(made(*grid(0)), 1), TypeError, "`x` must be text, not `1`", None),
    "a flag that is a word": (lambda: nextstat.exclusion(made(*grid(0)), mass_splitting="no"), TypeError, "`mass_splitting` is True or False", None),
    "a grid of fits": (
        lambda: nextstat.exclusion({"patches": [{"patch": "a", "values": {"m1": 1}, "result": {"bestfit": [1.0]}}]}),
        nextstat.ParameterError,
        "no patch has CLs or a limit",
        "`hypotest` or `upper_limit`",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_explained(case):
    call, kind, message, hint = WRONG[case]
    with pytest.raises(kind) as raised:
        call()
    assert message in str(raised.value)
    assert hint is None or hint in raised.value.hint


def test_grids_without_a_boundary_warn():
    points, _ = grid(0)
    with pytest.warns(nextstat.NextstatWarning, match="every signal is excluded, so that there is no contour"):
        result = nextstat.exclusion(made(points, numpy.full(len(points), 4.0)))
    assert not result.observed["contours"] and len(result.observed["region"]) == 1
