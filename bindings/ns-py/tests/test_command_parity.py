"""Python's results are the command's documents, to the last bit: the same keys, the same numbers.
"""

import json
import warnings

import nextstat
import numpy
import pytest

# What a run of toys is, for the document beside a file of them.
ABOUT_THE_RUN = {"workspace_sha256", "interpolation", "ensemble", "asimov", "asimov_at", "multi_start", "fixed", "bounds"}

#: What documents of one face have and those of the other do not, by the verb.
ONLY_COMMAND = {
    "toys": {"rule", "mu", *ABOUT_THE_RUN},
}
ONLY_PYTHON = {
    # The command prints matrices if it is asked for them.
    "fit": {"pulls", "covariance", "correlation"},
    "hypotest-toys": {"toys_tested", "toys_alternative"},
}


def command(*arguments):
    return nextstat.command([str(argument) for argument in arguments]).json()


def assert_same(document, result, verb, place=""):
    """The command's `document` is `result`, apart from the entries that only one of them has."""
    if isinstance(document, dict):
        assert isinstance(result, dict), place
        only_command, only_python = set(document) - set(result), set(result) - set(document)
        assert only_command <= ONLY_COMMAND.get(verb, set()), f"{place}: only the command has {only_command}"
        assert only_python <= ONLY_PYTHON.get(verb, set()), f"{place}: only Python has {only_python}"
        for key in set(document) & set(result):
            if key == "provenance":
                assert document[key].pop("command")[1] == verb
            assert_same(document[key], result[key], verb, f"{place}/{key}")
    elif isinstance(document, list):
        assert isinstance(result, list) and len(result) == len(document), place
        for i, (value, other) in enumerate(zip(document, result)):
            assert_same(value, other, verb, f"{place}/{i}")
    else:
        assert document == result, f"{place}: {document!r} and {result!r}"


def said(call):
    """The result of `call`, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(warning.message) for warning in caught if issubclass(warning.category, nextstat.NextstatWarning)]


def warned(messages):
    """The warnings on standard error."""
    return [line.removeprefix("warning: ") for line in messages.splitlines() if line.startswith("warning: ")]


CASES = {
    "fit": (["fit", "--covariance", "--correlation", "--minos=mu"], lambda model: nextstat.fit(model, minos="mu")),
    "fit with all intervals": (["fit", "--minos=all"], lambda model: nextstat.fit(model, minos=True)),
    "fit with intervals of the parameters of interest": (
        ["fit", "--minos"],
        lambda model: nextstat.fit(model, minos=model.pois),
    ),
    "fit with options": (
        ["fit", "--fix", "mu=0.5", "--multi-start=3", "--seed", "7"],
        lambda model: nextstat.fit(model, fixed={"mu": 0.5}, multi_start=3, seed=7),
    ),
    "hypotest": (["hypotest", "--mu", "1.5"], lambda model: nextstat.hypotest(model, 1.5)),
    "hypotest q": (["hypotest", "--test-stat", "q"], lambda model: nextstat.hypotest(model, test_stat="q")),
    "hypotest q0": (["hypotest", "--test-stat", "q0"], lambda model: nextstat.hypotest(model, test_stat="q0")),
    "significance": (["significance"], nextstat.significance),
    "limit": (["limit"], nextstat.upper_limit),
    "interval by toys": (
        ["interval", "--cl", "0.68", "--tolerance", "0.2", "--seed", "3"],
        lambda model: nextstat.interval(model, cl=0.68, tolerance=0.2, seed=3),
    ),
    "central interval by toys": (
        ["interval", "--construction", "central", "--max-toys", "1500", "--aux", "fixed"],
        lambda model: nextstat.interval(model, construction="central", max_toys=1500, aux="fixed"),
    ),
    "coverage": (
        ["coverage", "--true", "0,1", "--n-toys", "200", "--seed", "2"],
        lambda model: nextstat.coverage(model, [0.0, 1.0], n_toys=200, seed=2),
    ),
    "coverage of Feldman-Cousins intervals": (
        ["coverage", "--true", "1", "--method", "fc", "--method", "minos", "--cl", "0.68", "--n-toys", "40",
         "--max-inner-toys", "100", "--tolerance", "0.1", "--aux", "fixed"],
        lambda model: nextstat.coverage(
            model, [1.0], methods=["fc", "minos"], cl=0.68, n_toys=40, max_inner_toys=100, tolerance=0.1, aux="fixed"
        ),
    ),
    "limit by toys": (
        ["limit", "--toys", "--test-stat", "q", "--tolerance", "0.2", "--max-toys", "3000"],
        lambda model: nextstat.upper_limit_toys(model, test_stat="q", tolerance=0.2, max_toys=3000),
    ),
    "observed limit of CLs+b by toys": (
        ["limit", "--toys", "--cl", "0.9", "--criterion", "clsb", "--observed-only", "--tolerance", "0.1"],
        lambda model: nextstat.upper_limit_toys(model, cl=0.9, criterion="CLsb", expected=False, tolerance=0.1),
    ),
    "significance by toys": (
        ["significance", "--toys", "--max-toys", "1000"],
        lambda model: nextstat.significance_toys(model, max_toys=1000),
    ),
    "significance by importance sampling": (
        ["significance", "--toys", "--max-toys", "1000", "--importance-sampling"],
        lambda model: nextstat.significance_toys(model, max_toys=1000, importance_sampling=True),
    ),
    "limit by a grid": (
        ["limit", "--start", "0", "--stop", "5", "--points", "6"],
        lambda model: nextstat.upper_limit(model, grid=[0, 1, 2, 3, 4, 5]),
    ),
    "scan": (["scan", "--points", "5"], lambda model: nextstat.profile_scan(model, points=5)),
    "scan of masked bins": (
        ["scan", "--points", "3", "--mask", "*[0]"],
        lambda model: nextstat.profile_scan(model, points=3, mask="*[0]"),
    ),
    "fit of some channels": (
        ["fit", "--fit-channels", "*", "--mask", "*[1:]"],
        lambda model: nextstat.fit(model, fit_channels="*", mask=["*[1:]"]),
    ),
    "report of masked bins": (["report", "--mask", "*[0]"], lambda model: nextstat.report(model, mask="*[0]")),
    "report of blinded bins": (["report", "--blind", "*[0]"], lambda model: nextstat.report(model, blind="*[0]")),
    "report of bins with signal": (
        ["report", "--blind-above", "1.6", "--blind-by", "s/sqrt(b)"],
        lambda model: nextstat.report(model, blind_above=1.6, blind_by="s/sqrt(b)"),
    ),
    "report of hidden data": (
        ["report", "--blind", "*[0]", "--fit-blinded"],
        lambda model: nextstat.report(model, blind="*[0]", fit_blinded=True),
    ),
    "gof of masked bins": (["gof", "--mask", "*[0]"], lambda model: nextstat.goodness_of_fit(model, mask="*[0]")),
    "scan at values": (
        ["scan", "--start", "0", "--stop", "2", "--points", "3"],
        lambda model: nextstat.profile_scan(model, [0.0, 1.0, 2.0]),
    ),
    "scan outside the range": (
        ["scan", "--start", "-1", "--stop", "11", "--points", "3"],
        lambda model: nextstat.profile_scan(model, [-1.0, 5.0, 11.0]),
    ),
    "ranking": (
        ["ranking", "--group", "statistics=mc_stat_*,uncorr*"],
        lambda model: nextstat.ranking(model, groups={"statistics": ["mc_stat_*", "uncorr*"]}),
    ),
    "gof": (["gof", "--toys", "30", "--seed", "3"], lambda model: nextstat.goodness_of_fit(model, toys=30, seed=3)),
    "gof with fixed auxiliary data": (
        ["gof", "--toys", "30", "--seed", "3", "--aux", "fixed"],
        lambda model: nextstat.goodness_of_fit(model, toys=30, seed=3, aux="fixed"),
    ),
    "report": (["report"], nextstat.report),
    "toys": (
        ["toys", "--n-toys", "20", "--seed", "3", "--poi-uncertainty"],
        lambda model: nextstat.fit_toys(model, n_toys=20, seed=3, poi_uncertainty=True),
    ),
    "toys with fixed auxiliary data": (
        ["toys", "--n-toys", "20", "--seed", "3", "--aux", "fixed"],
        lambda model: nextstat.fit_toys(model, n_toys=20, seed=3, aux="fixed"),
    ),
    "hypotest-toys": (
        ["hypotest-toys", "--n-toys", "40", "--seed", "3"],
        lambda model: nextstat.hypotest_toys(model, n_toys=40, seed=3),
    ),
    "hypotest-toys q0": (
        ["hypotest-toys", "--n-toys", "40", "--test-stat", "q0"],
        lambda model: nextstat.hypotest_toys(model, n_toys=40, test_stat="q0"),
    ),
    "hypotest-toys q0 of 0": (
        ["hypotest-toys", "--n-toys", "40", "--test-stat", "q0", "--mu", "0"],
        lambda model: nextstat.hypotest_toys(model, 0.0, n_toys=40, test_stat="q0"),
    ),
    "inspect": (["inspect"], nextstat.inspect),
    "check": (["check"], nextstat.check),
}


def assert_said_alike(path, case):
    """The command and Python have the same result, warnings and errors; returns the result."""
    arguments, call = CASES[case]
    verb = arguments[0]
    try:
        done = nextstat.command([verb, str(path), *arguments[1:]])
    except nextstat.NextstatError as refused:
        with pytest.raises(nextstat.NextstatError) as raised:
            call(nextstat.load_workspace(path))
        assert_refused_alike(raised.value, refused)
        return None
    result, here = said(lambda: call(nextstat.load_workspace(path)))
    assert_same(done.json(), result.to_dict(), verb)
    # What `check` finds is the result; the command adds a line about its exit code.
    assert verb == "check" or warned(done.messages) == here
    return result


@pytest.mark.parametrize("example", ["simple", "shapes"])
@pytest.mark.parametrize("case", CASES)
def test_results_are_the_commands_documents(root, example, case):
    assert assert_said_alike(root / f"examples/{example}.json", case) is not None


#: Of `shapes.json`: arguments, and the question of the model with the parameters of interest.
POIS = {
    "region by toys": (
        ["interval", "--grid", "mu=0:4:3", "--grid", "norm_ttbar=0.9:1.1:3", "--cl", "0.68", "--tolerance", "0.3"],
        lambda model: nextstat.region(
            model, {"mu": [0.0, 2.0, 4.0], "norm_ttbar": [0.9, 1.0, 1.1]}, cl=[0.68], tolerance=0.3
        ),
    ),
    "limit at values": (
        ["limit", "--at", "norm_ttbar=0.5:1.5:3", "--cl", "0.9"],
        lambda model: nextstat.limit_scan(model, {"norm_ttbar": [0.5, 1.0, 1.5]}, cl=0.9),
    ),
    "limit at values, on another parameter": (
        ["limit", "--poi", "norm_ttbar", "--at", "mu=-1:2:4", "--bounds", "mu=-1:5"],
        lambda model: nextstat.limit_scan(model, {"mu": [-1, 0, 1, 2]}, poi="norm_ttbar", bounds={"mu": (-1, 5)}),
    ),
    "limit on another parameter": (
        ["limit", "--poi", "norm_ttbar"],
        lambda model: nextstat.upper_limit(model, poi="norm_ttbar"),
    ),
    "significance of another parameter": (
        ["significance", "--poi", "norm_ttbar"],
        lambda model: nextstat.significance(model, poi="norm_ttbar"),
    ),
    "test of another parameter": (
        ["hypotest", "--poi", "norm_ttbar", "--mu", "1.1"],
        lambda model: nextstat.hypotest(model, 1.1, poi="norm_ttbar"),
    ),
    "ranking of another parameter": (
        ["ranking", "--poi", "norm_ttbar"],
        lambda model: nextstat.ranking(model, poi="norm_ttbar"),
    ),
    "limits on both": (
        ["limit", "--poi", "mu", "--poi", "norm_ttbar"],
        lambda model: nextstat.every_poi(model, nextstat.upper_limit),
    ),
    "tests of both, with warnings": (
        ["hypotest", "--poi", "lumi", "--poi", "mu", "--mu", "25"],
        lambda model: nextstat.every_poi(model, lambda model: nextstat.hypotest(model, 25)),
    ),
    "significances of both": (
        ["significance", "--poi", "norm_ttbar", "--poi", "mu"],
        lambda model: nextstat.every_poi(model, nextstat.significance),
    ),
    "rankings of both": (
        ["ranking", "--poi", "mu", "--poi", "norm_ttbar"],
        lambda model: nextstat.every_poi(model, nextstat.ranking),
    ),
    "limits on one of one": (["limit"], lambda model: nextstat.every_poi(model, nextstat.upper_limit)),
}


@pytest.mark.parametrize("case", POIS)
def test_results_of_several_parameters_of_interest_are_the_commands(root, case):
    arguments, call = POIS[case]
    path, verb = root / "examples/shapes.json", arguments[0]
    pois = [arguments[i + 1] for i, option in enumerate(arguments) if option == "--poi"]
    done = nextstat.command([verb, str(path), *arguments[1:]])
    model = nextstat.load_workspace(path, poi=pois if len(pois) > 1 else None)
    result, here = said(lambda: call(model))
    assert_same(done.json(), result.to_dict(), verb)
    assert warned(done.messages) == here


def _workspace(samples, observed, parameters=(), poi="mu"):
    return {
        "version": "1.0.0",
        "channels": [{"name": "SR", "samples": samples}],
        "observations": [{"name": "SR", "data": observed}],
        "measurements": [{"name": "m", "config": {"poi": poi, "parameters": list(parameters)}}],
    }


def _sample(name, data, *modifiers):
    return {"name": name, "data": data, "modifiers": list(modifiers)}


MU = {"name": "mu", "type": "normfactor", "data": None}


def _normsys(name, hi, lo):
    return {"name": name, "type": "normsys", "data": {"hi": hi, "lo": lo}}


def _histosys(name, hi, lo):
    return {"name": name, "type": "histosys", "data": {"hi_data": hi, "lo_data": lo}}


#: Models that make fits fail, minima multiply or limits vanish: the command and Python say the same
#: about them.
AWKWARD = {
    "signal only": _workspace([_sample("signal", [5.0], MU)], [3.0]),
    "an impossible bin": _workspace(
        [_sample("signal", [5.0, 0.0], MU), _sample("background", [10.0, 0.0], _normsys("xs", 1.1, 0.9))],
        [12.0, 2.0],
    ),
    "no signal": _workspace([_sample("signal", [0.0], MU), _sample("background", [10.0], _normsys("xs", 1.1, 0.9))], [12.0]),
    "two minima": _workspace(
        [_sample("signal", [5.0, 1.0], MU), _sample("background", [50.0, 60.0], _histosys("shape", [60.0, 62.0], [58.0, 61.0]))], [58.0, 62.0]
    ),
    "a negative yield": _workspace(
        [_sample("signal", [5.0], MU), _sample("small", [1.0], _histosys("shape", [4.0], [-2.5])), _sample("background", [40.0])], [30.0]
    ),
    "a range below zero": _workspace(
        [_sample("signal", [5.0], MU), _sample("background", [50.0], _normsys("xs", 1.1, 0.9))],
        [40.0],
        [{"name": "mu", "bounds": [[-5.0, 10.0]]}],
    ),
    "a limit beyond the range": _workspace(
        [_sample("signal", [0.1], MU), _sample("background", [50.0], _normsys("xs", 1.1, 0.9))], [80.0], [{"name": "mu", "bounds": [[0.0, 2.0]]}]
    ),
    "a huge systematic": _workspace(
        [_sample("signal", [5.0], MU), _sample("tiny", [0.04], _normsys("huge", 40.0, 0.01)), _sample("background", [20.0], _normsys("xs", 1.1, 0.9))], [26.0]
    ),
}

@pytest.mark.parametrize("awkward", AWKWARD)
@pytest.mark.parametrize("case", CASES)
def test_what_is_said_of_awkward_models_is_what_the_command_says(tmp_path, awkward, case):
    path = tmp_path / "workspace.json"
    path.write_text(json.dumps(AWKWARD[awkward]))
    assert_said_alike(path, case)


#: What one face calls `fixed` and the other `--fix`; the longer ones first.
SPELLINGS = {
    "`fixed`": "`--fix`",
    "`bounds`": "`--bounds`",
    "`minos`": "`--minos`",
    "`mask`": "`--mask`",
    "`blind`": "`--blind`",
    "`blind_above`": "`--blind-above`",
    "`data=asimov_data(model), fit_blinded=True`": "`--asimov --fit-blinded`",
    "`fit_channels`": "`--fit-channels`",
    "`poi_uncertainty`": "`--poi-uncertainty`",
    "`parameter`": "`--parameter`",
    "`upper_limit`": "`limit`",
    "`profile_scan`": "`scan`",
    "`hypotest_toys`": "`hypotest-toys`",
    "`model.par_names` lists": "`nextstat inspect` lists",
    "`model.channels` lists": "`nextstat inspect` lists",
}

#: Advice that only the command has, because it names other verbs.
ONLY_COMMANDS_ADVICE = {
    "`nextstat fit` shows the fit; `--fix NAME=VALUE` fixes the parameter of interest where toys are thrown",
    "`nextstat evaluate` prints the data that a model expects at a point",
}


def _as_the_command_says(message):
    for here, there in SPELLINGS.items():
        message = message.replace(here, there)
    return message


def assert_refused_alike(here, there):
    """Python's error `here` has the message and the hint of the command's `there`."""
    message, _, hint = str(there).partition("\nhint: ")
    assert message
    assert _as_the_command_says(str(here)) == message
    assert _as_the_command_says(here.hint or "") == ("" if hint in ONLY_COMMANDS_ADVICE else hint)


MISTAKES = {
    "an unknown parameter": (["fit", "--fix", "Mu=1"], lambda m: nextstat.fit(m, fixed={"Mu": 1})),
    "a fixed parameter": (["limit", "--fix", "mu=1"], lambda m: nextstat.upper_limit(m, fixed={"mu": 1})),
    "a fixed parameter of a test": (["hypotest", "--fix", "mu=1"], lambda m: nextstat.hypotest(m, fixed={"mu": 1})),
    "a fixed parameter of a ranking": (["ranking", "--fix", "mu=1"], lambda m: nextstat.ranking(m, fixed={"mu": 1})),
    "a fixed parameter of a scan": (["scan", "--fix", "mu=1"], lambda m: nextstat.profile_scan(m, fixed={"mu": 1})),
    "an interval of a fixed parameter": (["fit", "--fix", "mu=1", "--minos=mu"], lambda m: nextstat.fit(m, fixed={"mu": 1}, minos="mu")),
    "an interval of an unknown one": (["fit", "--minos=nu"], lambda m: nextstat.fit(m, minos="nu")),
    "a scan of an unknown one": (["scan", "--parameter", "nu"], lambda m: nextstat.profile_scan(m, parameter="nu")),
    "a scan against itself": (
        ["scan", "--parameter", "mu", "--parameter", "mu"],
        lambda m: nextstat.profile_scan(m, parameter=("mu", "mu")),
    ),
    "a discovery of something else than a signal of 0": (
        ["hypotest-toys", "--test-stat", "q0", "--mu", "1", "--n-toys", "10"],
        lambda m: nextstat.hypotest_toys(m, 1.0, test_stat="q0", n_toys=10),
    ),
    "a discovery of something else than 0 by formulas": (
        ["hypotest", "--test-stat", "q0", "--mu", "1"],
        lambda m: nextstat.hypotest(m, 1.0, test_stat="q0"),
    ),
    "an uncertainty of a fixed parameter": (
        ["toys", "--fix", "mu=1", "--poi-uncertainty", "--n-toys", "10"],
        lambda m: nextstat.fit_toys(m, fixed={"mu": 1}, poi_uncertainty=True, n_toys=10),
    ),
    "an empty group": (["ranking", "--group", "none=xyz*"], lambda m: nextstat.ranking(m, groups={"none": ["xyz*"]})),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_explained_as_the_command_explains_them(root, mistake):
    arguments, call = MISTAKES[mistake]
    path = root / "examples/simple.json"
    with pytest.raises(nextstat.ParameterError) as raised:
        call(nextstat.load_workspace(path))
    with pytest.raises(nextstat.NextstatError) as refused:
        nextstat.command([arguments[0], str(path), *arguments[1:]])
    assert_refused_alike(raised.value, refused.value)


def test_a_grid_of_two_parameters_is_the_commands(root):
    path = root / "examples/shapes.json"
    document = command("scan", path, "--parameter", "mu", "--parameter", "norm_ttbar", "--points", "4", "--contour", "0.68")
    model = nextstat.load_workspace(path)
    result = nextstat.profile_scan(model, parameter=("mu", "norm_ttbar"), points=4).to_dict()
    found = document.pop("contours")
    assert_same(document, result, "scan")
    best = result["fit"]["bestfit"]
    lines = nextstat.contours(model, ("mu", "norm_ttbar"), [0.68], init=best).to_dict()["contours"]
    assert_same(found, lines, "scan")


def test_evaluations_are_the_commands(root):
    document = command("evaluate", root / "examples/simple.json", "--points", root / "examples/points.json")
    model = nextstat.load_workspace(root / "examples/simple.json")
    points = json.loads((root / "examples/points.json").read_text())
    nll, gradient = model.nll_and_grad(points)
    expected = model.expected_data(points)
    for i, point in enumerate(document["points"]):
        assert point["twice_nll"] == 2 * nll[i] == 2 * model.nll(points)[i] == 2 * model.nll(points[i])
        assert point["gradient"] == (2 * gradient[i]).tolist()
        assert point["expected_data"] == expected[i].tolist()


def test_an_error_of_every_patch_is_raised_as_the_command_stops(root):
    files = root / "examples/background.json", root / "examples/signals.json"
    with pytest.raises(nextstat.NextstatError, match="`--fix` names the parameter `Mu`"):
        command("hypotest", files[0], "--patchset", files[1], "--every-patch", "--fix", "Mu=1")
    with pytest.raises(nextstat.ParameterError, match="`fixed` names the parameter `Mu`"):
        nextstat.every_patch(*files, lambda model: nextstat.hypotest(model, fixed={"Mu": 1.0}))


def test_every_patch_is_the_commands_grid(root):
    background, signals = root / "examples/background.json", root / "examples/signals.json"
    document = command("limit", background, "--patchset", signals, "--every-patch")
    assert document["provenance"]["workspace"]["digest"] == nextstat.digest(background)
    assert document["provenance"]["patchset"] == {"file": str(signals), "digest": nextstat.digest(signals)}
    assert_same(document, nextstat.every_patch(background, signals, nextstat.upper_limit).to_dict(), "limit")


def test_search_is_the_commands(root):
    background, plane = root / "examples/background.json", root / "examples/plane.json"
    options = ["--toys", "50", "--limits", "--correlations", "--seed", "3", "--fix", "lumi=1", "--samples", "500"]
    document = command("search", background, "--patchset", plane, *options)
    here = nextstat.search(
        background, plane, toys=50, limits=True, correlations=True, seed=3, fixed={"lumi": 1}, samples=500
    )
    assert_same(document, here.to_dict(), "search")
    with pytest.raises(nextstat.ParameterError, match="has no label `mas`"):
        nextstat.search(background, plane, along="mas")


def test_simplify_is_the_commands(root, tmp_path):
    options = ["-c", "signal_region", "--fix", "norm_ttbar=1", "--compare", "--report", tmp_path / "report.json"]
    background, signals = root / "examples/background.json", root / "examples/signals.json"
    for workspace, patches in ((root / "examples/shapes.json", None), (background, signals)):
        given = [] if patches is None else ["--patchset", patches]
        small = command("simplify", workspace, *given, *options)
        here = nextstat.simplify(workspace, "signal_region", patches, fixed={"norm_ttbar": 1}, compare=True)
        assert_same(json.loads((tmp_path / "report.json").read_text("utf-8")), here.to_dict(), "simplify")
        assert small == json.loads(json.dumps(here.workspace, default=dict))


def test_signal_scan_is_the_commands(root, tmp_path):
    background, signals = root / "examples/background.json", root / "examples/signal_events.json"
    options = ["--limits", "--level", "0.1", "--mu", "0.7", "--test-stat", "q", "--lumi", "lumi", "--explore", "no"]
    options += ["--normsys", "theory_signal=0.9:1.2", "--fix", "theory_wjets=0.5", "--bounds", "mu=0:50"]
    document = command("signal-scan", background, "--signals", signals, *options)
    scanner = nextstat.Scanner(
        background, lumi="lumi", normsys={"theory_signal": (0.9, 1.2)}, fixed={"theory_wjets": 0.5}, bounds={"mu": (0, 50)}
    )
    arrays = {name: numpy.array(rows) for name, rows in json.loads(signals.read_text("utf-8")).items()}
    wanted = {"mu": 0.7, "test_stat": "q", "limits": True, "level": 0.1, "explore": False}
    assert_same(document, scanner.scan(arrays, **wanted).to_dict(), "signal-scan")
    numpy.savez(tmp_path / "signals.npz", **arrays)
    assert scanner.scan(tmp_path / "signals.npz", **wanted) == scanner.scan(arrays, **wanted)
    document = command("signal-scan", background, "--signals", tmp_path / "signals.npz", *options)
    assert_same(document, scanner.scan(arrays, **wanted).to_dict(), "signal-scan")


def test_exclusion_is_the_commands(root, tmp_path):
    background, signals, grid = root / "examples/background.json", root / "examples/plane.json", tmp_path / "grid.json"
    for verb in ("hypotest", "limit"):
        nextstat.command([verb, background, "--patchset", signals, "--every-patch", "-o", grid])
        document = command("exclusion", grid, "--x", "m_gluino", "--mass-splitting")
        assert_same(document, nextstat.exclusion(grid, x="m_gluino", mass_splitting=True).to_dict(), "exclusion")
    here = nextstat.exclusion(nextstat.every_patch(background, signals, nextstat.upper_limit), "m_gluino", mass_splitting=True)
    assert here == nextstat.exclusion(grid, "m_gluino", mass_splitting=True)
    failed = json.loads(grid.read_text())
    failed["patches"][3]["result"]["converged"] = False
    grid.write_text(json.dumps(failed))
    done = nextstat.command(["exclusion", grid])
    result, here = said(lambda: nextstat.exclusion(grid))
    assert warned(done.messages) == here == list(result.warnings) and done.exit_code == 1


def test_patches_that_have_no_answer_are_the_commands(root, tmp_path):
    document = json.loads((root / "examples/signals.json").read_text())
    document["patches"][0]["patch"] = [{"op": "remove", "path": "/channels/7"}]
    document["patches"][1]["patch"] = []
    signals, background = tmp_path / "signals.json", root / "examples/background.json"
    signals.write_text(json.dumps(document))
    done = nextstat.command(["limit", str(background), "--patchset", str(signals), "--every-patch"])
    result, here = said(lambda: nextstat.every_patch(background, signals, nextstat.upper_limit))
    assert [key for patch in result.patches for key in patch if key == "error"] == ["error", "error"]
    assert_same(done.json(), result.to_dict(), "limit")
    assert warned(done.messages) == here == ["2 of 3 patches have errors or fits that did not converge"]


def test_patch_sets_are_the_commands(root):
    background, signals = root / "examples/background.json", root / "examples/signals.json"
    patches = nextstat.PatchSet(signals)
    assert "\n".join(patches.names) == nextstat.command(["patchset", "list", signals]).output.strip()
    name = patches.names[1]
    assert patches.patch(name) == command("patchset", "extract", signals, "--name", name)
    assert patches.apply(background, name) == command("patchset", "apply", background, signals, "--name", name)
    assert patches.verify(background) == command("patchset", "verify", background, signals)
    assert patches.verify(root / "examples/simple.json")["verified"] is False
    by_model = nextstat.hypotest(patches.model(background, name))
    by_file = nextstat.load_workspace(background, patchset=signals, patch_name=name)
    assert by_model == nextstat.hypotest(by_file)


def test_digests_are_the_commands(root):
    path = root / "examples/background.json"
    for algorithm in ("sha256", "md5"):
        printed = nextstat.command(["digest", path, "--algorithm", algorithm]).output.strip()
        assert printed == f"{algorithm}:{nextstat.digest(path, algorithm)}"


def _published_paths(folder, n_cases=8):
    cases = json.loads((folder / "cases.json").read_text())
    patched = {case["file"] for case in cases.values() if case["patches"] or case["poi"] != "auto"}
    files = {case["file"] for case in cases.values()} - patched
    found = [path for file in files for path in folder.glob(f"workspaces/{file}.json*")]
    return sorted(found, key=lambda path: (path.stat().st_size, path))[:n_cases]


def test_published_workspaces_give_the_commands_numbers(published):
    paths = _published_paths(published)
    assert len(paths) > 3
    for path in paths:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nextstat.NextstatWarning)
            result = nextstat.fit(nextstat.load_workspace(path)).to_dict()
        assert_same(command("fit", path), result, "fit", path.name)


def test_the_page_of_a_report_is_the_commands(root, tmp_path):
    def shown(path):
        page = path.read_text()
        start = page.index('id="report-data">') + len('id="report-data">')
        data = json.loads(page[start : page.index("</script>", start)])
        data["report"]["provenance"].pop("command", None)
        return page[:start], data

    workspace, here, there = root / "examples/shapes.json", tmp_path / "here.html", tmp_path / "there.html"
    report = nextstat.report(nextstat.load_workspace(workspace), html=here)
    assert report == nextstat.report(nextstat.load_workspace(workspace))
    nextstat.command(["report", workspace, "--html", there, "--quiet"])
    assert shown(here) == shown(there)
