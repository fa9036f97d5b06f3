"""The worked analysis: its page says what the command prints, Python gets the same numbers, nothing
before the unblinding depends on hidden data, and the fit finds what was put into the data.
"""

import importlib.util
import json
import os
import re
import runpy
import subprocess
from pathlib import Path

import nextstat
import pytest
from test_command_parity import assert_same

for package in ("hist", "uproot", "yaml"):
    pytest.importorskip(package)
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the commands are those of a POSIX shell")

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples/analysis"
PAGE = (ROOT / "docs/tutorials/analysis.md").read_text("utf-8")
PROGRESS = re.compile(r"\d+ of \d+ .*, .* left$")
VERBS = {
    "check": "check",
    "cr": "fit",
    "validation": "gof",
    "prediction": "yields",
    "blinded": "report",
    "expected": "limit",
    "fit": "fit",
    "gof": "gof",
    "ranking": "ranking",
    "scan": "scan",
    "significance": "significance",
    "limit": "limit",
    "yields": "yields",
    "toys": "hypotest-toys",
}


def _steps():
    """The commands of the page with the lines that follow each."""
    steps = []
    for block in re.findall(r"^```shell-session\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return steps


STEPS = _steps()


def _same_line(wanted, printed):
    """Whether the words are the same, and the numbers up to the last digits that a page shows;
    `...` at the end of a line stands for its rest.
    """
    if wanted.endswith("..."):
        return printed.startswith(wanted[:-3])
    wanted, printed = wanted.split(), printed.split()
    return len(wanted) == len(printed) and all(a == b or _same_number(a, b) for a, b in zip(wanted, printed))


def _same_number(a, b):
    try:
        return float(a) == pytest.approx(float(b), rel=1e-4, abs=1e-8)
    except ValueError:
        return False


def _matches(wanted, printed):
    """Whether `printed` is what the page says; a line `...` stands for any lines."""
    if not wanted:
        return not printed
    if wanted[0] == "...":
        return any(_matches(wanted[1:], printed[skipped:]) for skipped in range(len(printed) + 1))
    return bool(printed) and _same_line(wanted[0], printed[0]) and _matches(wanted[1:], printed[1:])


def _lines(folder, command, search_path):
    done = subprocess.run(["sh", "-c", command], cwd=folder, env={**os.environ, "PATH": search_path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line for line in (done.stdout + done.stderr).splitlines() if not PROGRESS.match(line)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory, search_path):
    """The folder of the analysis, and what each command of the page printed there."""
    folder = tmp_path_factory.mktemp("analysis")
    (folder / "examples").symlink_to(ROOT / "examples")
    return folder, {command: _lines(folder, command, search_path) for command, _ in STEPS}


@pytest.fixture(scope="module")
def analysis():
    """The example in Python."""
    about = importlib.util.spec_from_file_location("worked_analysis", EXAMPLE / "analysis.py")
    module = importlib.util.module_from_spec(about)
    about.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def done(printed, analysis):
    """The model, and the results of Python by name."""
    before = os.getcwd()
    os.chdir(printed[0])
    try:
        return analysis.run()
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def truth():
    """What the data were drawn with."""
    return runpy.run_path(str(EXAMPLE / "make_histograms.py"))["TRUTH"]


def test_the_page_has_the_commands_of_the_script_in_their_order():
    script = (EXAMPLE / "run.sh").read_text("utf-8").splitlines()
    assert [command for command, _ in STEPS] == [line for line in script if line and not line.startswith(("#", "set "))]


@pytest.mark.parametrize(("command", "wanted"), STEPS, ids=[command.split(" -o ")[-1] for command, _ in STEPS])
def test_the_command_prints_what_the_page_says(command, wanted, printed):
    assert _matches(wanted, printed[1][command]), "\n".join([command, *printed[1][command]])


def test_the_python_of_the_page_is_that_of_the_example():
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    source = (EXAMPLE / "analysis.py").read_text("utf-8")
    assert blocks and all(block in source for block in blocks)


@pytest.mark.parametrize("name", VERBS)
def test_the_command_and_python_have_the_same_numbers(name, printed, done):
    document, result = json.loads((printed[0] / f"{name}.json").read_text("utf-8")), done[1][name].to_dict()
    # Where a fit came from is a file for the command and an object for Python.
    document.pop("provenance", None), result.pop("provenance", None)
    assert_same(document, result, VERBS[name])


def test_python_builds_the_workspace_of_the_command(printed, done):
    written = json.loads((printed[0] / "workspace.json").read_text("utf-8"))
    assert nextstat.digest(written) == done[1]["fit"].provenance["workspace"]["digest"]


def test_the_build_smooths_symmetrises_and_prunes(printed):
    lines = printed[1][STEPS[1][0]]
    counts = {line.split(":")[0]: int(re.search(r"\d+", line.split(":")[1]).group()) for line in lines[1:]}
    # JES is on ttbar, Zjets and diboson in four regions, and on the signal in two. So is JER, which
    # is mirrored like the generator of ttbar in four regions.
    assert counts["smoothing"] == 14
    assert counts["symmetrisation"] == 14 + 14 + 4
    assert counts["histosys"] > 0 and counts["normsys"] > 0 and counts["staterror"] > 0


def test_no_result_before_the_unblinding_depends_on_data_of_the_signal_region(printed, analysis, done):
    workspace = json.loads((printed[0] / "workspace.json").read_text("utf-8"))
    hidden = next(one for one in workspace["observations"] if one["name"] == "SR")
    hidden["data"] = [2 * count + 10 for count in hidden["data"]]
    model, results = nextstat.model_of(workspace), done[1]
    for name, other in analysis.blinded(model).items():
        one, two = results[name].to_dict(), other.to_dict()
        one.pop("provenance"), two.pop("provenance")
        assert json.dumps(one) == json.dumps(two), name
    assert nextstat.fit(model).value("mu") != results["fit"].value("mu")


def test_blinded_documents_do_not_contain_data_of_the_signal_region(printed):
    for name in ("prediction", "blinded"):
        document = json.loads((printed[0] / f"{name}.json").read_text("utf-8"))
        channels = document.get("yields", document)["channels"]
        region = next(channel for channel in channels if channel["channel"] == "SR")
        assert region["data"] == [None] * 8
        others = [channel["data"] for channel in channels if channel["channel"] != "SR"]
        assert all(None not in data for data in others)


def test_the_fit_finds_what_was_injected(done, truth):
    fit = done[1]["fit"]
    assert fit.converged
    assert abs(fit.value("mu") - truth["mu"]) < fit.uncertainty("mu")
    for name in ("k_ttbar", "k_Zjets"):
        assert abs(fit.value(name) - truth[name]) < fit.uncertainty(name)
        assert done[1]["cr"].value(name) == pytest.approx(fit.value(name), abs=fit.uncertainty(name))
    for name in ("JES", "b_tagging", "Zjets_scale"):
        assert abs(fit.value(name) - truth[name]) < 2


def test_the_control_regions_predict_the_validation_region(done):
    test = done[1]["validation"]
    assert test.n_dof == 5 and 0.05 < test.p_value < 0.95
    assert done[1]["blinded"].to_dict()["goodness_of_fit"]["p_value"] == test.p_value


def test_results_are_those_of_cabinetry(done):
    """cabinetry 0.6.0 with pyhf 0.7.6 and Minuit on workspace.json, 2026-11-24: `fit.fit` of the
    workspace and of the workspace without SR and VR, `model_utils.match_fit_results` and
    `prediction`, `fit.significance`, `fit.limit` (tolerance 0.01), `fit.ranking`. Of the validation
    region: χ² by SciPy of pyhf's yields, their finite differences and cabinetry's covariance.
    """
    fit, control, ranking = done[1]["fit"], done[1]["cr"], done[1]["ranking"].ranking
    # Minuit stops at an estimated distance of 1e-3 times its tolerance; ours are exact.
    assert fit.value("mu") == pytest.approx(1.109316, abs=2e-3)
    assert fit.uncertainty("mu") == pytest.approx(0.439341, rel=5e-3)
    assert fit.twice_nll == pytest.approx(87.134585, abs=1e-3)
    for name, value, uncertainty in (("k_Zjets", 0.885459, 0.094238), ("k_ttbar", 1.102327, 0.053624), ("JES", -0.110903, 0.798671)):
        assert control.value(name) == pytest.approx(value, abs=0.01 * uncertainty)
        assert control.uncertainty(name) == pytest.approx(uncertainty, rel=5e-3)
    assert done[1]["validation"].statistic == pytest.approx(5.983940, rel=1e-3)
    assert done[1]["validation"].p_value == pytest.approx(0.307785, rel=1e-3)
    assert done[1]["gof"].p_value == pytest.approx(0.556447, abs=1e-3)
    assert done[1]["significance"].Z_obs == pytest.approx(2.837063, rel=1e-3)
    assert done[1]["significance"].Z_exp == pytest.approx(2.576844, rel=1e-3)
    assert done[1]["limit"].observed == pytest.approx(1.905827, rel=0.01)
    assert done[1]["limit"].expected == pytest.approx([0.400514, 0.544361, 0.781244, 1.130388, 1.603924], rel=0.01)
    impacts = {row["parameter"]: row["postfit"] for row in ranking}
    for name, up, down in (("JES", -0.119942, 0.138524), ("signal_theory", -0.081810, 0.095456), ("k_ttbar", 0.089457, -0.085977)):
        assert [impacts[name][side]["impact"] for side in ("up", "down")] == pytest.approx([up, down], abs=3e-3)


def test_the_prediction_is_that_of_cabinetry(done):
    """Yields to Minuit's accuracy. cabinetry moves parameters by one standard deviation where our
    uncertainty has the derivative; an uncertainty of 40 % makes the two differ by 1.5 %.
    """
    wanted = {"CR_Zjets": (3336.744, 57.804), "CR_ttbar": (4089.682, 63.945), "SR": (1249.334, 26.319), "VR": (1436.223, 25.811)}
    for channel in done[1]["prediction"].channels:
        total, (events, uncertainty) = channel["postfit"]["total"], wanted[channel["channel"]]
        assert total["sum"] == pytest.approx(events, rel=2e-4)
        assert total["sum_uncertainty"] == pytest.approx(uncertainty, rel=0.02)


def test_half_differences_have_the_uncertainties_of_cabinetry(done):
    """cabinetry 0.6.0 with pyhf 0.7.6, 2026-11-25: `model_utils.match_fit_results` of the fit in
    cr.json and `yield_stdev`, in which parameters are moved by one standard deviation.
    """
    model, results = done
    predicted = nextstat.yields(model, fit=results["cr"], blind="SR", uncertainty="half-difference")
    wanted = {"CR_Zjets": 57.91826562, "CR_ttbar": 63.95563072, "SR": 26.53737164, "VR": 25.95029177}
    for channel in predicted.channels:
        assert channel["postfit"]["total"]["sum_uncertainty"] == pytest.approx(wanted[channel["channel"]], rel=1e-6)


def test_toys_agree_with_the_asymptotic_significance(done):
    toys = done[1]["toys"]
    assert abs(toys.p0_obs - done[1]["significance"].p0_obs) < 3 * toys.p0_obs_error


def test_every_figure_is_drawn(done, analysis, tmp_path):
    pytest.importorskip("mplhep")
    pytest.importorskip("matplotlib").use("agg")
    figures = analysis.draw(*done, tmp_path)
    assert {path.stem for path in tmp_path.glob("*.png")} == set(figures)
    # Points with errors are data: the blinded figure has none.
    points = {name: len(figures[name].containers) for name in ("blinded", "prefit", "postfit")}
    assert points["blinded"] < points["postfit"] == points["prefit"]


def test_hepdata_accepts_the_results(printed, tmp_path):
    """All stored documents that have tables, but for the tests of goodness and by toys."""
    validator = pytest.importorskip("hepdata_validator.full_submission_validator")
    import nextstat.hepdata

    names = ("cr", "prediction", "blinded", "expected", "fit", "ranking", "scan", "significance", "limit")
    files = {name: printed[0] / f"{name}.json" for name in names}
    made = nextstat.hepdata.submission(files, tmp_path / "record", workspace=printed[0] / "workspace.json", archive=tmp_path / "record.tar.gz")
    assert {"Upper limits (limit)", "Upper limits (expected)", "Yields in SR (prediction)"} <= set(made.tables)
    checker = validator.FullSubmissionValidator(schema_version="1.1.1")
    is_valid = checker.validate(directory=str(made.folder)) and checker.validate(archive=str(made.archive))
    assert is_valid, [message.message for found in checker.get_messages().values() for message in found]
    prediction = (made.folder / "yields_in_sr_prediction.yaml").read_text("utf-8")
    hidden = next(one for one in json.loads((printed[0] / "workspace.json").read_text("utf-8"))["observations"] if one["name"] == "SR")
    assert all(f"value: {count}\n" not in prediction for count in hidden["data"])
