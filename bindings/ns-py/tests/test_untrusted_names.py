"""Names from documents reach no terminal as they are: neither in what results show nor in what
exceptions say. In results they stay as they are.
"""

import json
import unicodedata
import warnings

import nextstat
import numpy
import pytest
from nextstat import pyhf

# Controls of bytes and of C1, line separators, bidirectional and invisible characters, a tag, half
# a surrogate.
HIDDEN = "\x1b]0;x\x07\x1b[31m\x9b\r\u2028\u061c\u200b\u202e\u2066\ufeff\U000e0041"
NAMES = ("singlechannel", "signal", "background", "uncorr_bkguncrt", "mu", "Measurement")


def is_hidden(character):
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def is_fine(text):
    return not any(map(is_hidden, text))


@pytest.fixture(scope="module")
def workspace(root):
    text = (root / "examples/simple.json").read_text()
    for name in NAMES:
        text = text.replace(json.dumps(name), json.dumps(name + HIDDEN))
    return json.loads(text)


@pytest.fixture(scope="module")
def model(workspace):
    return nextstat.model_of(workspace)


def plane():
    """Exclusion contours of patches and labels with such names."""
    values = [(0, 0, 0.01), (1, 0, 0.2), (0, 1, 0.01)]
    patches = [
        {"patch": f"{cls}{HIDDEN}", "values": {f"a{HIDDEN}": x, f"b{HIDDEN}": y}, "result": {"CLs_obs": cls, "CLs_exp": None}}
        for x, y, cls in values
    ]
    return nextstat.exclusion({"patches": [*patches, {"patch": HIDDEN, "values": {}, "error": HIDDEN}]})


def found_by_search():
    """A search whose patches have such names."""
    strongest = {"patch": HIDDEN, "Z_obs": 1.0, "p0_obs": 0.16}
    patches = ({"patch": HIDDEN, "values": {}, "error": HIDDEN},)
    ways = dict.fromkeys(("field", "upcrossings", "toys"))
    return nextstat.SearchResult({"patches": patches, "strongest": strongest, "warnings": (HIDDEN,), **ways})


def found_by_scan():
    """A scan of signals whose strength has such a name."""
    numbers = {"bestfit": numpy.ones(1), "CLs_obs": numpy.ones(1), "CLs_exp": numpy.ones((1, 5))}
    fields = {"poi": "mu" + HIDDEN, "mu": 1.0, "n_signals": 1, "limits": None, "warnings": (HIDDEN,)}
    return nextstat.SignalScanResult({**fields, **numbers})


def _simplified():
    channel = {"channel": HIDDEN, "signal": None}
    numbers = ("data", "yields", "means", "linear_uncertainties", "uncertainties", "skewness")
    channel |= {key: (1.0,) for key in numbers}
    fields = {"form": "linear", "n_variables": 1, "channels": (channel,), "comparison": None, "warnings": (HIDDEN,)}
    return nextstat.SimplifiedModel({**fields, "workspace": {HIDDEN: HIDDEN}})


def results(model, workspace):
    poi = "mu" + HIDDEN
    toys = nextstat.fit_toys(model, n_toys=5)
    fits = nextstat.fits(model, [[57, 63], [51, 48], [66, 70]])
    yield from (
        nextstat.fit(model),
        nextstat.hypotest(model),
        nextstat.significance(model),
        nextstat.upper_limit(model),
        nextstat.limit_scan(model, {"uncorr_bkguncrt" + HIDDEN + "[0]": [1.0, 1.1]}),
        nextstat.every_poi(nextstat.model_of(workspace, poi=[poi, f"uncorr_bkguncrt{HIDDEN}[0]"]), nextstat.upper_limit),
        nextstat.profile_scan(model, [0.5, 1.0]),
        nextstat.contours(model, (poi, "uncorr_bkguncrt" + HIDDEN + "[0]")),
        nextstat.ranking(model),
        toys,
        fits,
        nextstat.replica_covariance(fits, fits),
        nextstat.hypotest_toys(model, n_toys=20),
        nextstat.interval(model, max_toys=500),
        nextstat.region(model, {poi: [0.0, 1.0, 2.0], f"uncorr_bkguncrt{HIDDEN}[0]": [0.9, 1.0, 1.1]}, max_toys=500),
        nextstat.coverage(model, [1.0], n_toys=20),
        nextstat.upper_limit_toys(model, max_toys=500),
        nextstat.significance_toys(model, max_toys=500),
        nextstat.goodness_of_fit(model),
        nextstat.yields(model),
        nextstat.report(model),
        nextstat.check(model),
        nextstat.inspect(workspace),
        nextstat.combine({"A" + HIDDEN: workspace}),
        _simplified(),
        nextstat.Result({"name" + HIDDEN: HIDDEN}),
        nextstat.Result({"name": "half \ud800"}),
        plane(),
        found_by_search(),
        found_by_scan(),
        nextstat.CommandResult({"exit_code": 0, "output": "", "messages": f"a\nb{HIDDEN}"}),
        nextstat.GridResult({"patches": ({"patch": HIDDEN, "values": {}, "error": HIDDEN},), "n_patches": 1}),
        nextstat.FitResult({"par_names": (HIDDEN,), "warnings": (HIDDEN,), "converged": False}),
    )


def test_text_is_escaped_where_shown_and_kept_as_it_is_in_results(model, workspace):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = list(results(model, workspace))
    kinds = {type(result) for result in found}
    assert kinds >= {kind for kind in vars(nextstat).values() if isinstance(kind, type) and issubclass(kind, nextstat.Result)}
    for shown in (*found, model):
        for text in (str(shown), repr(shown), shown._repr_html_()):
            assert is_fine(text), text
    assert "\\u{202e}" in str(model) and "\\u{9b}" in str(found[0]) and "\\u{e0041}" in found[0]._repr_html_()
    assert found[0].pois[0]["name"] == model.poi == "mu" + HIDDEN
    assert nextstat.fit(model).par_names == tuple(model.par_names)
    assert str(found[-3]).splitlines()[-1].strip() == "b" + nextstat._nextstat.escape(HIDDEN)


def refusals(model, workspace):
    yield lambda: nextstat.fit(model, fixed={"no" + HIDDEN: 1})
    yield lambda: nextstat.profile_scan(model, [0.5, 1.0], parameter="no" + HIDDEN)
    yield lambda: nextstat.fit_toys(model, n_toys=2).values("no" + HIDDEN)
    yield lambda: nextstat.model_of(workspace, measurement="no" + HIDDEN)
    yield lambda: nextstat.model_of({**workspace, "channels": [{"name": HIDDEN, "samples": 1}]})
    yield lambda: nextstat.load_workspace("no" + HIDDEN)
    yield lambda: nextstat.command(["fit", "no" + HIDDEN])
    yield lambda: nextstat.hypotest(model, test_stat="no" + HIDDEN)
    yield lambda: nextstat.load_toys(f"no{HIDDEN}.npy")
    yield lambda: pyhf.Workspace({**workspace, HIDDEN: 1})
    yield lambda: pyhf.Workspace(workspace).get_measurement(measurement_name="no" + HIDDEN)
    yield lambda: pyhf.Workspace(workspace).model(patches=[[{"op": "remove", "path": "/no" + HIDDEN}]])


def test_exceptions_are_escaped(model, workspace):
    n_refused = 0
    for refused in refusals(model, workspace):
        with pytest.raises(Exception) as caught:
            refused()
        error = caught.value
        said = [str(error), repr(error), *getattr(error, "__notes__", ()), getattr(error, "hint", None) or ""]
        assert all(map(is_fine, said)), said
        n_refused += "\\u{202e}" in str(error) or "\\u202e" in str(error)
    assert n_refused >= 9
    assert HIDDEN in nextstat.NextstatError(HIDDEN).args[0]


def test_warnings_are_escaped():
    from nextstat._errors import warn

    with pytest.warns(nextstat.NextstatWarning) as caught:
        warn(HIDDEN)
    assert is_fine(str(caught[0].message))
    assert is_fine(warnings.formatwarning(caught[0].message, nextstat.NextstatWarning, "f", 1))


def test_the_verbs_of_python_are_escaped(tmp_path, capsys):
    from nextstat.pyhf._cli import main

    assert main(["xml2json", f"no{HIDDEN}"]) == 2
    # XML has no control characters.
    (tmp_path / "top.xml").write_text('<Combination><Input>no\u202e</Input><Measurement Name="m"/></Combination>', "utf-8")
    assert main(["xml2json", str(tmp_path / "top.xml"), "--basedir", str(tmp_path)]) == 2
    with pytest.raises(SystemExit):
        main(["xml2json", "top.xml", "--no" + HIDDEN])
    said = capsys.readouterr().err
    assert is_fine(said) and said.count("\\u{202e}") == 3, said
