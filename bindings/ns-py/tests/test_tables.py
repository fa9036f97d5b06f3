"""Tables of results in Python are those of the command; pandas has the numbers of the result."""

import csv
import io
import sys

import nextstat
import pytest


@pytest.fixture(scope="module")
def model(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


def _rows(text):
    return list(csv.DictReader(io.StringIO(text)))


CASES = {
    "fit": (["fit", "--covariance", "--correlation", "--minos=mu"], lambda model: nextstat.fit(model, minos="mu"), ["parameters", "correlation", "covariance"]),
    "yields": (
        ["yields", "--group", "other=wjets,fakes"],
        lambda model: nextstat.yields(model, groups={"other": ["wjets", "fakes"]}),
        ["yields", "prefit", "postfit", "bins"],
    ),
    "report": (["report"], nextstat.report, ["parameters", "pulls", "correlation", "yields"]),
    "ranking": (["ranking"], nextstat.ranking, ["ranking", "breakdown"]),
    "limit": (["limit"], nextstat.upper_limit, ["limits"]),
    "hypotest": (["hypotest"], nextstat.hypotest, ["tests"]),
    "significance": (["significance"], nextstat.significance, ["significance"]),
    "scan": (["scan", "--points", "5"], lambda model: nextstat.profile_scan(model, points=5), ["scan", "intervals"]),
    "grid": (
        ["scan", "--parameter", "mu", "--parameter", "lumi", "--points", "3"],
        lambda model: nextstat.profile_scan(model, parameter=("mu", "lumi"), points=3),
        ["scan"],
    ),
    "gof": (["gof", "--toys", "20"], lambda model: nextstat.goodness_of_fit(model, toys=20), ["goodness"]),
    "hypotest-toys": (
        ["hypotest-toys", "--mu", "2", "--n-toys", "50"],
        lambda model: nextstat.hypotest_toys(model, 2.0, n_toys=50),
        ["tests", "p_values"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_python_and_the_command_write_the_same_table(name, model, examples_folder):
    (verb, *options), question, tables = CASES[name]
    result = question(model)
    for table in tables:
        for format in ("latex", "csv", "md"):
            arguments = [verb, "examples/shapes.json", *options, "--format", format, "--table", table]
            assert nextstat.table(result, table, format=format).replace("\r\n", "\n") == nextstat.command(arguments).output


def test_contours_have_a_row_for_each_point(model):
    result = nextstat.contours(model, ("mu", "lumi"), [0.68, 0.95], points=12)
    rows = _rows(result.to_csv())
    points = [(contour["cl"], *point["values"]) for contour in result.contours for point in contour["points"]]
    assert [(float(row["cl"]), float(row["mu"]), float(row["lumi"])) for row in rows] == points


def test_fits_of_toys_and_of_data_sets_have_a_row_for_each(model):
    toys = nextstat.fit_toys(model, n_toys=5)
    assert [float(row["mu"]) for row in _rows(toys.to_csv())] == toys.bestfit[:, toys.par_names.index("mu")].tolist()
    data = nextstat.throw_toys(model, model.init, n_toys=4)
    fits = nextstat.fits(model, data, uncertainties=True)
    rows = _rows(fits.to_csv("data_sets"))
    mu = fits.par_names.index("mu")
    assert [float(row["mu"]) for row in rows] == fits.bestfit[:, mu].tolist()
    spread = next(row for row in _rows(fits.to_csv()) if row["parameter"] == "mu")
    assert float(spread["mean"]) == pytest.approx(fits.bestfit[:, mu].mean())
    assert float(spread["standard_deviation"]) == pytest.approx(fits.bestfit[:, mu].std(ddof=1))


def test_an_exclusion_has_its_signals_and_contours(root):
    grid = nextstat.every_patch(root / "examples/background.json", root / "examples/plane.json", nextstat.hypotest)
    result = nextstat.exclusion(grid, "m_gluino", "m_lsp")
    assert [float(row["observed"]) for row in _rows(result.to_csv())] == [point["observed"] for point in result.points]
    vertices = [vertex.tolist() for contour in result.observed["contours"] for vertex in contour["vertices"]]
    observed = [row for row in _rows(result.to_csv("contours")) if row["exclusion"] == "observed"]
    assert [[float(row["m_gluino"]), float(row["m_lsp"])] for row in observed] == vertices


def test_a_stored_result_has_the_table_of_the_result(model, tmp_path):
    limits = nextstat.upper_limit(model)
    (tmp_path / "limits.json").write_text(limits.to_json())
    for stored in (tmp_path / "limits.json", limits.to_json(), limits.to_dict()):
        assert nextstat.table(stored, format="latex") == limits.to_latex()
    [row] = _rows(limits.to_csv())
    assert float(row["observed"]) == limits.observed
    assert [float(row[name]) for name in row if name.startswith("expected")] == list(limits.expected)


def test_a_grid_has_a_row_for_each_patch(root):
    grid = nextstat.every_patch(root / "examples/background.json", root / "examples/plane.json", nextstat.upper_limit)
    rows = _rows(grid.to_csv())
    assert [row["patch"] for row in rows] == [found["patch"] for found in grid.patches]
    assert [float(row["m_gluino"]) for row in rows] == [found["values"]["m_gluino"] for found in grid.patches]
    assert [float(row["expected"]) for row in rows] == [found["result"].expected[2] for found in grid.patches]


def test_groups_have_the_uncertainty_of_their_sum(model):
    """The group of all samples is the total; the sum of two has their correlation."""
    result = nextstat.yields(model, groups={"all": "*"})
    for channel in result.channels:
        for stage in ("prefit", "postfit"):
            group, total = channel[stage]["groups"]["all"], channel[stage]["total"]
            assert group["sum"] == total["sum"] and group["sum_uncertainty"] == total["sum_uncertainty"]
            assert group["samples"] == tuple(channel[stage]["samples"])
    for groups, message in (
        ({"a": "nothing*"}, "names the sample `nothing[*]`"),
        ({"a": "ttbar", "b": "t*"}, "is in the groups `a` and `b`"),
        ({"ttbar": "wjets"}, "has the name of a sample"),
    ):
        with pytest.raises(nextstat.ParameterError, match=message):
            nextstat.yields(model, groups=groups)


def test_pandas_has_the_numbers_of_the_result(model):
    pandas = pytest.importorskip("pandas")
    fit = nextstat.fit(model)
    frame = fit.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["parameter", "bestfit", "bestfit_uncertainty"]
    assert frame["bestfit"].tolist() == fit.bestfit.tolist()
    at_bound = frame["bestfit_uncertainty"].isna()
    assert frame["parameter"][at_bound].tolist() == ["fakes_control_region[1]"]
    correlation = fit.to_pandas("correlation", rows=["mu", "lumi"]).set_index("parameter")
    i, j = fit.par_names.index("mu"), fit.par_names.index("lumi")
    assert correlation["mu"]["lumi"] == fit.correlation[i, j]


def test_without_pandas_the_error_says_what_to_install(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="a data frame needs pandas: `pip install pandas`"):
        nextstat.fit(model).to_pandas()


def test_hidden_data_are_in_no_format(model):
    result = nextstat.yields(model, blind="signal_region")
    data = model.data[model.channel_slices["signal_region"]] if hasattr(model, "channel_slices") else None
    for table in ("yields", "prefit", "postfit", "bins"):
        rows = [row for row in _rows(result.to_csv(table)) if row["sample"] == "data" and row.get("region") == "signal_region"]
        assert all(row["prefit"] == row["postfit"] == "" for row in rows)
    assert data is None or str(data.sum()) not in result.to_csv()
    assert "| data | 723 | – |" in result.to_markdown("postfit")


def test_what_is_no_table_is_an_error(model, tmp_path):
    fit = nextstat.fit(model, covariance=False)
    with pytest.raises(nextstat.ParameterError, match="no table `params`") as error:
        fit.to_latex("params")
    assert error.value.hint == "did you mean `parameters`?"
    with pytest.raises(nextstat.ParameterError, match="not a format of tables: choose one of `latex`, `csv`, `md`"):
        nextstat.table(fit, format="html")
    with pytest.raises(nextstat.WorkspaceError, match="has no tables"):
        nextstat.check(model).to_csv()
    with pytest.raises(nextstat.WorkspaceError, match="is not a result"):
        nextstat.table("{}")
    with pytest.raises(TypeError, match="`table` must be text, not"):
        nextstat.table(fit, 3)
