"""The report: a record, an overview, and a labelled figure of each pair of templates."""

import json
import math

import analysis
import pytest
from nextstat.build import _command, build, report

pytest.importorskip("mplhep")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


def config():
    """Some of the systematics, since figures take a while."""
    found = analysis.with_options(Pruning={"Normalization": 0.02, "Shape": 0.06}, StaterrorThreshold=0.08)
    found["Systematics"] = [one for one in found["Systematics"] if one["Name"] in ("nothing", "luminosity", "btag", "scale_tt")]
    return found


@pytest.fixture
def result(files):
    return build(config())


def test_there_is_a_figure_of_each_pair(result, tmp_path):
    written = report(result, tmp_path / "a" / "b")
    assert {path.name for path in written} == {path.name for path in (tmp_path / "a" / "b").iterdir()}
    assert len(written) == len(result.pairs) + 2
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written if path.suffix == ".png")


def test_the_record_has_all_pairs_and_all_reasons(result, tmp_path):
    report(result, tmp_path / "r", format="pdf")
    record = json.loads((tmp_path / "r" / "record.json").read_text())
    assert len(record["pairs"]) == len(result.pairs)
    assert {one["kind"] for one in record["removed"]} == {"normsys", "histosys", "staterror"}
    assert all(one["reason"] for one in record["removed"])
    assert (tmp_path / "r" / "overview.pdf").read_bytes().startswith(b"%PDF")


def texts(figure):
    found = [text.get_text() for axes in figure.axes for text in axes.findobj(matplotlib.text.Text)]
    return {text for text in found if text}


def test_a_figure_says_what_it_is_of_and_what_was_done(result):
    from nextstat.build.reports import draw_pair

    pair = next(pair for pair in result.pairs if (pair.region, pair.sample, pair.systematic) == ("SR", "ttbar", "btag"))
    figure = draw_pair(pair)
    assert {"btag: ttbar in SR", "events", "change [%]", "observable", "nominal", "up", "down", "up, as read"} <= texts(figure)
    assert any(text.startswith("smoothing: 353QH, twice\nsymmetrisation: mirror\nshape left out: changes the shape by") for text in texts(figure))
    main, ratio = figure.axes
    top, bottom = ratio.get_ylim()
    assert top == -bottom and math.isfinite(top)
    assert main.get_xlim() == ratio.get_xlim() == (0.0, 120.0)


def test_the_overview_names_all_systematics_and_samples(result):
    from nextstat.build.reports import overview

    figure = overview(result)
    found = texts(figure) | {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert {"btag", "nothing", "scale", "SR: ttbar", "CR tt: signal", "rate only"} <= found


def test_names_of_files_are_different_and_safe(files):
    changed = config()
    changed["Systematics"][2]["Name"], changed["Systematics"][3]["Name"] = "a/b", "A$B"
    changed["Systematics"][3].pop("ModifierName")
    result = build(changed)
    written = report(result, files / "r")
    assert len({path.name.lower() for path in written}) == len(result.pairs) + 2
    assert all("/" not in path.name and "$" not in path.name for path in written)


def test_other_formats_are_refused(result, tmp_path):
    with pytest.raises(ValueError, match="`png` or `pdf`, not `gif`"):
        report(result, tmp_path / "r", format="gif")
    assert not (tmp_path / "r").exists()


def test_the_command_writes_a_report_and_says_what_it_did(files, capfd):
    yaml = pytest.importorskip("yaml")
    (files / "config.yml").write_text(yaml.safe_dump(config()))
    code = _command.main(["build", "config.yml", "--report", "report", "--summary"], "nextstat")
    said = capfd.readouterr()
    assert code == 0 and (files / "report" / "overview.png").is_file()
    assert json.loads(said.out)["version"] == "1.0.0"
    assert "symmetrisation: 5 of 8 pairs" in said.err and "below the threshold" in said.err
