"""`nextstat plot` draws stored results as the functions of `nextstat.plot` draw them."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import nextstat
import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("mplhep")
matplotlib.use("agg")

from nextstat import plot  # noqa: E402
from nextstat._plot_command import FIGURES, main  # noqa: E402


@pytest.fixture(scope="module")
def shapes(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


@pytest.fixture(scope="module")
def stored(shapes, root, tmp_path_factory):
    """A folder with a document of each kind."""
    folder = tmp_path_factory.mktemp("stored")
    background, signals = root / "examples/background.json", root / "examples/signals.json"
    limits = nextstat.every_patch(background, signals, nextstat.upper_limit)
    results = {
        "yields": nextstat.yields(shapes),
        "report": nextstat.report(shapes),
        "b_only": nextstat.report(shapes, fixed={"mu": 0.0}),
        "gof": nextstat.goodness_of_fit(shapes),
        "limit": nextstat.upper_limit(shapes, grid=[0.0, 1.0, 2.0, 3.0, 4.0]),
        "test_1": nextstat.hypotest(shapes, 1.0),
        "test_3": nextstat.hypotest(shapes, 3.0),
        "patches": limits,
        "at": nextstat.limit_scan(shapes, {"norm_ttbar": [0.9, 1.0, 1.1]}),
        "exclusion": nextstat.exclusion(nextstat.every_patch(background, root / "examples/plane.json", nextstat.hypotest), "m_gluino", "m_lsp"),
        "search": nextstat.search(root / "examples/spectrum.json", root / "examples/bumps.json"),
        "significance": nextstat.significance(shapes),
        **{f"mass_{k}": patch["result"] for k, patch in enumerate(limits.patches)},
    }
    for name, result in results.items():
        (folder / f"{name}.json").write_text(result.to_json(), encoding="utf-8")
    nextstat.command(["fit", str(root / "examples/shapes.json"), "-o", str(folder / "fit.json")])
    return folder


def run(stored, *words):
    """Exit code and messages of the verb, in the folder of the documents."""
    before = os.getcwd()
    os.chdir(stored)
    try:
        return main(["plot", *map(str, words)], "nextstat")
    finally:
        os.chdir(before)
        matplotlib.pyplot.close("all")


def bytes_of(figure, tmp_path):
    figure.savefig(tmp_path / "wanted.png", metadata={"Software": None})
    return (tmp_path / "wanted.png").read_bytes()


CASES = {
    "yields of a region": (
        ["yields.json", "--channel", "signal_region", "--edges", "0,50,100,200,400", "--signal", "signal", "--xlabel", "mass [GeV]", "--style", "ATLAS",
         "--label", "Internal", "--energy", "13", "--luminosity", "140", "--labels", "ttbar=$t$", "--groups", "other=wjets,fakes",
         "--blind", "signal_region[3:]"],
        lambda stored: plot.data_mc(
            stored / "yields.json", "signal_region", edges=[0, 50, 100, 200, 400], signal="signal", xlabel="mass [GeV]", style="ATLAS", label="Internal",
            energy=13, luminosity=140, labels={"ttbar": "$t$"}, groups={"other": ["wjets", "fakes"]}, blind=["signal_region[3:]"],
        )[0],
    ),
    "yields of all regions": (["yields.json", "--no-log"], lambda stored: plot.regions(stored / "yields.json", log=False)[0]),
    "a report": (["report.json", "--channel", "signal_region"], lambda stored: plot.data_mc(stored / "report.json", "signal_region")[0]),
    "pulls of a fit": (["fit.json", "--kind", "pulls"], lambda stored: plot.pulls(nextstat.fit(nextstat.example("shapes")))),
    "fits by the names of their files": (
        ["report.json", "b_only.json", "--kind", "pulls"],
        lambda stored: plot.pulls({"report": stored / "report.json", "b_only": stored / "b_only.json"}),
    ),
    "goodness": (["gof.json"], lambda stored: plot.gof(stored / "gof.json")),
    "goodness of a report": (["report.json", "--kind", "gof"], lambda stored: plot.gof(stored / "report.json")),
    "a limit": (["limit.json", "--palette", "accessible"], lambda stored: plot.brazil(stored / "limit.json", palette="accessible")),
    "tests": (
        ["test_3.json", "test_1.json", "--limit", "limit.json"],
        lambda stored: plot.brazil([stored / "test_1.json", stored / "test_3.json"], stored / "limit.json"),
    ),
    "limits": (
        ["mass_0.json", "mass_1.json", "mass_2.json", "--values", "300,500,800", "--theory", "3,2,1"],
        lambda stored: plot.limits([300, 500, 800], [stored / f"mass_{k}.json" for k in range(3)], theory=[3, 2, 1]),
    ),
    "limits of patches": (["patches.json"], lambda stored: plot.limits(stored / "patches.json")),
    "limits of a scan": (["at.json", "--ylabel", "limit"], lambda stored: plot.limits(stored / "at.json", ylabel="limit")),
    "an exclusion": (["exclusion.json", "--forbidden"], lambda stored: plot.exclusion(stored / "exclusion.json", forbidden=True)),
    "a search": (["search.json", "--x", "mass"], lambda stored: plot.search(stored / "search.json", x="mass")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_figures_are_those_of_python(case, stored, tmp_path, capsys):
    words, draw = CASES[case]
    output = tmp_path / "figure.png"
    assert run(stored, *words, "-o", output) == 0, capsys.readouterr().err
    assert output.read_bytes() == bytes_of(draw(stored).figure, tmp_path)


def test_all_samples_are_not_the_usual_number_of_them(stored, tmp_path, monkeypatch):
    given, data_mc = [], plot.data_mc

    @functools.wraps(data_mc)
    def noted(*arguments, **options):
        given.append(options)
        return data_mc(*arguments, **options)

    monkeypatch.setattr(plot, "data_mc", noted)
    assert run(stored, "yields.json", "--channel", "signal_region", "--top", "all", "-o", tmp_path / "a.svg") == 0
    assert given[0]["top"] is None


@pytest.mark.parametrize("suffix", ["pdf", "svg", "png", "eps"])
def test_the_suffix_is_the_format_and_the_bytes_are_the_same_every_time(suffix, stored, tmp_path):
    begins = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG", "eps": b"%!PS"}
    for name in "ab":
        assert run(stored, "gof.json", "-o", tmp_path / f"{name}.{suffix}") == 0
    first = (tmp_path / f"a.{suffix}").read_bytes()
    assert first.startswith(begins[suffix])
    if suffix != "eps":
        # PostScript has the time in it.
        assert first == (tmp_path / f"b.{suffix}").read_bytes()


def test_size_and_resolution_are_those_that_are_given(stored, tmp_path):
    assert run(stored, "gof.json", "-o", tmp_path / "a.png", "--size", "4,3", "--dpi", "50") == 0
    assert matplotlib.image.imread(tmp_path / "a.png").shape[:2] == (150, 200)


def test_every_kind_of_figure_is_a_function_of_the_package():
    # `variations` are drawn from a model.
    others = {"sample_colours", "style", "variations"}
    assert set(FIGURES) == {name for name in plot.__all__ if callable(getattr(plot, name))} - others


WRONG = {
    "no file": (["absent.json", "-o", "a.png"], "cannot read or write `absent.json`: no such file"),
    "no suffix": (["gof.json", "-o", "figure"], "`--output figure`: it has no suffix; choose one of"),
    "an unknown suffix": (["gof.json", "-o", "a.doc"], "`--output a.doc`: there is no format `doc` of figures; choose one of"),
    "a document without a figure": (["significance.json", "-o", "a.png"], "`significance.json`: there is no figure of documents of the kind `significance`"),
    "another figure": (["gof.json", "--kind", "scan", "-o", "a.png"], "`gof.json` is of the kind `gof`, and a figure of `scan` is drawn from `scan`"),
    "another option": (["gof.json", "--channel", "SR", "-o", "a.png"], "a figure of `gof` has no option `--channel`"),
    "two kinds": (["gof.json", "limit.json", "-o", "a.png"], "the results are of different kinds: `gof` and `limit`"),
    "two of one": (["yields.json", "yields.json", "-o", "a.png"], "is drawn from one result, not 2"),
    "two grids of limits": (["limit.json", "limit.json", "--kind", "brazil", "-o", "a.png"], "of the kind `limit` is drawn from one, not 2"),
    "limits without values": (["mass_0.json", "mass_1.json", "-o", "a.png"], "limits of several signals need `--values`\nhint: such as"),
    "another region": (["yields.json", "--channel", "SR", "-o", "a.png"], "there is no channel `SR`; choose one of control_region, signal_region"),
    "values of a scan": (["at.json", "--values", "1,2,3", "-o", "a.png"], "a result of the kind `limit-scan` has its own"),
    "label of a scan": (["at.json", "--x", "mass", "-o", "a.png"], "the limits of a scan are over `norm_ttbar`"),
    "no parameter of matplotlib": (["gof.json", "--rc", "font.siz=9", "-o", "a.png"], "`--rc font.siz=9`: there is no such parameter"),
    "no value of a parameter": (["gof.json", "--rc", "axes.grid=perhaps", "-o", "a.png"], "`--rc axes.grid=perhaps`: "),
    "a prediction in words": (["at.json", "--theory", "low", "-o", "a.png"], "`--theory`: expected numbers"),
    "another result as theory": (["exclusion.json", "--theory", "gof.json", "-o", "a.png"], "this figure is drawn from `exclusion`"),
    "no such signal": (["yields.json", "--channel", "signal_region", "--signal", "Z*", "-o", "a.png"], "there is no sample `Z*`"),
    "no size": (["gof.json", "--size", "4", "-o", "a.png"], "`--size` is a width and a height above 0 in inches"),
    "no resolution": (["gof.json", "--dpi", "0", "-o", "a.png"], "`--dpi` is above 0 and at most 2400, not 0"),
    "no folder": (["gof.json", "-o", "absent/a.png"], "absent/a.png`: no such file or directory"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_drawn_is_said(case, stored, capsys):
    words, message = WRONG[case]
    there = sorted(stored.iterdir())
    assert run(stored, *words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and message in said
    assert sorted(stored.iterdir()) == there


def test_documents_that_are_none_are_refused_with_the_place(stored, tmp_path, capsys):
    document = json.loads((stored / "gof.json").read_text("utf-8"))
    document["channels"][0]["p_value"] = "likely"
    for content, message in (
        (json.dumps(document), "the document is damaged at `/channels/0/p_value`: expected number or null, found `'likely'`"),
        ('{"channels": []}', "not a result of nextstat: it has no `$schema`\nhint: commands write results with `-o FILE`"),
        ('{"channels"', "is not JSON"),
    ):
        (tmp_path / "a.json").write_text(content, encoding="utf-8")
        assert run(stored, tmp_path / "a.json", "-o", tmp_path / "a.png") == 2
        assert message in capsys.readouterr().err and not (tmp_path / "a.png").exists()


def test_an_old_figure_stays_where_the_new_one_cannot_be_drawn(stored, tmp_path):
    (tmp_path / "a.png").write_bytes(b"old")
    assert run(stored, "yields.json", "--channel", "SR", "-o", tmp_path / "a.png") == 2
    assert (tmp_path / "a.png").read_bytes() == b"old"


@pytest.mark.parametrize(("words", "message"), [
    (["gof.json"], "the following arguments are required: -o/--output"),
    (["gof.json", "-o", "a.png", "--kind", "pie"], "invalid choice: 'pie'"),
    (["gof.json", "-o", "a.png", "--edges", "0,x"], "expected numbers, such as 0,50,100, not `0,x`"),
    (["gof.json", "-o", "a.png", "--labels", "ttbar"], "expected NAME=TEXT, not `ttbar`"),
    (["gof.json", "-o", "a.png", "--top", "few"], "expected a whole number or `all`, not `few`"),
])  # fmt: skip
def test_wrong_words_are_usage_errors(words, message, stored, capsys):
    with pytest.raises(SystemExit) as raised:
        run(stored, *words)
    assert raised.value.code == 2 and message in capsys.readouterr().err


def drawn(stored, *words):
    """The figure that the verb draws, as SVG."""
    assert run(stored, *words, "-o", stored / "drawn.svg") == 0
    try:
        return (stored / "drawn.svg").read_text("utf-8")
    finally:
        (stored / "drawn.svg").unlink()


def test_styles_are_named_in_any_case(stored):
    assert drawn(stored, "gof.json", "--style", "atlas") == drawn(stored, "gof.json", "--style", "ATLAS") != drawn(stored, "gof.json")


def test_signals_are_named_by_patterns(stored):
    words = ("yields.json", "--channel", "signal_region", "--overlay", "5")
    assert drawn(stored, *words, "--signal", "sig*") == drawn(stored, *words, "--signal", "signal")


def test_parameters_of_matplotlib_go_with_a_style(stored):
    plain, large = (drawn(stored, "gof.json", "--style", "CMS", *rc) for rc in ((), ("--rc", "font.size=14")))
    assert plain != large and drawn(stored, "gof.json", "--rc", "font.size=11") == drawn(stored, "gof.json")


def test_widths_labels_of_bins_and_predictions_are_options(stored):
    words = ("yields.json", "--channel", "signal_region", "--edges", "0,50,100,200,400")
    assert drawn(stored, *words, "--per", "50") == drawn(stored, *words) != drawn(stored, *words, "--per", "bin")
    assert drawn(stored, "yields.json", "--channel", "signal_region", "--bins", "a,b,c,d") != drawn(stored, "yields.json", "--channel", "signal_region")
    assert drawn(stored, "exclusion.json", "--theory", "exclusion.json") != drawn(stored, "exclusion.json")
    one, two = (drawn(stored, "at.json", *theory) for theory in (("--theory", "1,2,3"), ("--theory", "1,2,3", "--theory", "2,3,4")))
    assert one != two != drawn(stored, "at.json")


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(nextstat.__file__).parents[1])}


def test_the_command_reads_standard_input(stored, tmp_path):
    text = (stored / "gof.json").read_text("utf-8")
    done = nextstat.command(["plot", "-", "-o", tmp_path / "a.svg"], input=text)
    assert done.exit_code == 0 and (tmp_path / "a.svg").exists()


def test_the_command_says_what_is_missing_without_matplotlib(stored, tmp_path):
    code = "import sys; sys.modules['matplotlib'] = None; from nextstat._plot_command import main; sys.exit(main(['plot', *sys.argv[1:]]))"

    def run(*words):
        return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment(), check=False)

    done = run(str(stored / "gof.json"), "-o", str(tmp_path / "a.png"))
    assert done.returncode == 2 and "nextstat.plot needs matplotlib and mplhep: `pip install 'nextstat-rs[plot]'`" in done.stderr
    done = run("--help")
    assert done.returncode == 0 and "--kind" in done.stdout
