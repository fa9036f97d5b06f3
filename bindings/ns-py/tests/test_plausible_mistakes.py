"""What users of pyhf, cabinetry, TRExFitter and Combine type first in Python: each works, or gets
an answer that says what to type instead. For the command, see plausible_mistakes.rs of ns-cli.
"""

import json

import nextstat
import numpy as np
import pytest
from nextstat.histograms import WorkspaceBuilder


def _sample():
    """A sample of a workspace that is being built."""
    return WorkspaceBuilder().channel("SR", data=[5.0]).sample("b", [4.0])


def _toys_as_fits(model):
    nextstat.fit_toys(model, n_toys=2).save("toys.npy")
    return nextstat.load_fits("toys.npy")


#: The call, the exception, what its message contains, and what its hint contains; None for no hint.
MISTAKES = {
    # Documents.
    "misspelt file": (lambda m: nextstat.load_workspace("shaeps.json"), FileNotFoundError, "shaeps.json", "did you mean `shapes.json`?"),
    "file of ROOT": (
        lambda m: nextstat.load_workspace("histograms.root"), nextstat.WorkspaceError, "is a ROOT file, not JSON",
        "name the file of the combination",
    ),
    "XML": (
        lambda m: nextstat.load_workspace("combination.xml"), nextstat.WorkspaceError,
        "`Combination` has no element `Input` at line 2, column 1", "names the file of a channel",
    ),
    "HS3": (lambda m: nextstat.load_workspace("hs3.json"), nextstat.WorkspaceError, "the document has no likelihood", "`likelihoods` says which data"),
    "Markdown": (lambda m: nextstat.load_workspace("README.md"), nextstat.WorkspaceError, "found `#` at line 1", "this is not JSON"),
    "fit of a path": (lambda m: nextstat.fit("shapes.json"), TypeError, "`nextstat.load_workspace('shapes.json')` reads it", None),
    "fit of a dictionary": (lambda m: nextstat.fit({"channels": []}), TypeError, "`nextstat.model_of(...)` makes one", None),
    # Names.
    "misspelt measurement": (
        lambda m: nextstat.load_workspace("shapes.json", measurement="Search"),
        nextstat.ModelError, "unknown measurement `Search`", "did you mean `search`?",
    ),
    "misspelt parameter of interest": (lambda m: nextstat.load_workspace("shapes.json", poi="Mu"), nextstat.ModelError, "`Mu`", "did you mean `mu`?"),
    "misspelt parameter": (lambda m: nextstat.fit(m, fixed={"lumii": 1}), nextstat.ParameterError, "the parameter `lumii`", "did you mean `lumi`?"),
    "misspelt value": (lambda m: nextstat.fit(m).value("normttbar"), nextstat.ParameterError, "no parameter `normttbar`", "did you mean `norm_ttbar`?"),
    "misspelt channel": (lambda m: nextstat.fit(m, mask="signal_regoin"), nextstat.ParameterError, "`mask` names the channel", "did you mean `signal_region`?"),
    "misspelt sample": (lambda m: nextstat.yields(m, groups={"a": "tbar"}), nextstat.ParameterError, "names the sample `tbar`", "did you mean `ttbar`?"),
    "misspelt table": (lambda m: nextstat.fit(m).to_latex("paramters"), nextstat.ParameterError, "no table `paramters`", "did you mean `parameters`?"),
    "misspelt statistic": (lambda m: nextstat.hypotest(m, test_stat="qtilda"), nextstat.ParameterError, "unknown test statistic `qtilda`", "`qtilde`"),
    # Values.
    "confidence level as level": (lambda m: nextstat.upper_limit(m, level=0.95), nextstat.ParameterError, "the level 0.95 is the CLs of a limit", "`cl=0.95`"),
    "confidence level below one half": (
        lambda m: nextstat.upper_limit(m, cl=0.3), nextstat.ParameterError, "needs a confidence level above 0.5, and 0.3 is not", None,
    ),
    "percent": (lambda m: nextstat.upper_limit(m, cl=95), nextstat.ParameterError, "`cl` is 95, which is not between 0 and 1", "0.95 for 95 %"),
    "empty range": (lambda m: nextstat.fit(m, bounds={"mu": (5, -5)}), nextstat.ParameterError, "the range 5 to -5 of `mu` is empty", None),
    "range as one number": (lambda m: nextstat.fit(m, bounds={"mu": 5}), TypeError, "the range of `mu` must be two numbers", None),
    "no threads": (lambda m: nextstat.fit_toys(m, threads=0), nextstat.ParameterError, "`threads` is 0, and must be at least 1", None),
    "points as values": (lambda m: nextstat.profile_scan(m, 21), TypeError, "`points=` sets their number", None),
    "groups as a list": (lambda m: nextstat.ranking(m, groups=["JES_*"]), TypeError, "`groups` is a dictionary of name patterns by group", None),
    "limits by toys": (lambda m: nextstat.upper_limit(m, calctype="toybased"), TypeError, "unexpected keyword argument 'calctype'", None),
    "two-sided by toys": (lambda m: nextstat.hypotest_toys(m, test_stat="t"), nextstat.ParameterError, "the test statistic `t`", "`qtilde`, `q`, `q0`"),
    "page as PDF": (lambda m: nextstat.report(m, html="report.pdf"), nextstat.ParameterError, "does not end in `.html`", "`report.html`"),
    "several data sets": (lambda m: nextstat.fit(m, data=np.ones((3, 7))), nextstat.DataError, "two dimensions instead of one", "`nextstat.fits` fits"),
    "one data set": (lambda m: nextstat.fits(m, np.ones(7)), nextstat.DataError, "one dimension instead of two", "`nextstat.fit` fits one"),
    "negative counts": (lambda m: nextstat.fit(m, data=[-1] * 7), nextstat.DataError, "channel `control_region`, bin 0: -1 is not a valid number", None),
    "everything hidden": (lambda m: nextstat.report(m, blind="*"), nextstat.ParameterError, "leaves no bin to fit", "fits expected data"),
    # Names of arguments elsewhere.
    "cabinetry's level": (lambda m: nextstat.upper_limit(m, confidence_level=0.95), TypeError, "'confidence_level'", "did you mean `cl`?"),
    "pyhf's bounds": (lambda m: nextstat.fit(m, par_bounds=[]), TypeError, "'par_bounds'", "did you mean `bounds`?"),
    "pyhf's starting values": (lambda m: nextstat.fit(m, init_pars=[]), TypeError, "'init_pars'", "did you mean `init`?"),
    "pyhf's fixed parameters": (lambda m: nextstat.fit(m, fixed_params=[]), TypeError, "'fixed_params'", "did you mean `fixed`?"),
    "cabinetry's fit": (lambda m: nextstat.yields(m, fit_results=None), TypeError, "'fit_results'", "did you mean `fit`?"),
    # Histograms.
    "one factor of a normsys": (lambda m: _sample().normsys("x", 1.05), nextstat.WorkspaceError, "normsys `x`", "`0.05` says the same"),
    "one factor up": (lambda m: _sample().normsys("x", up=1.05), nextstat.WorkspaceError, "`up` and `down` go together", None),
    # Files of results.
    "fits that are toys": (_toys_as_fits, nextstat.ToyError, "the file has toys", "load_toys"),
    "an absent file of fits": (lambda m: nextstat.load_fits("absent.npy"), FileNotFoundError, "absent.npy", None),
    "a combination of nothing": (lambda m: nextstat.combine(), nextstat.WorkspaceError, "there is no workspace to combine", None),
}


@pytest.fixture(name="model")
def _model(examples_folder, monkeypatch):
    """A model, in a folder with the files that the mistakes name."""
    monkeypatch.chdir(examples_folder / "examples")
    texts = {
        "README.md": "# Title\n",
        "combination.xml": '<?xml version="1.0"?>\n<Combination/>\n',
        "hs3.json": json.dumps({"metadata": {"hs3_version": "0.2"}, "distributions": [], "likelihoods": []}),
    }
    for name, text in texts.items():
        (examples_folder / "examples" / name).write_text(text)
    (examples_folder / "examples/histograms.root").write_bytes(b"root\0\0\xf3\x10\0")
    return nextstat.load_workspace("shapes.json")


@pytest.mark.parametrize("name", MISTAKES)
def test_plausible_mistakes_are_explained(model, name):
    call, kind, message, hint = MISTAKES[name]
    with pytest.raises(kind) as raised:
        call(model)
    assert message in str(raised.value)
    said = getattr(raised.value, "hint", None)
    assert (said is None) if hint is None else (said is not None and hint in said), said


def test_what_users_try_first_works(model):
    by_cl, by_level = nextstat.upper_limit(model, cl=0.95), nextstat.upper_limit(model, level=0.05)
    # 1 - 0.95 is not 0.05 to the last bit.
    assert by_cl.observed == pytest.approx(by_level.observed, rel=1e-9)
    assert nextstat.fit(model, minos=True).minos and nextstat.fit(model, minos="mu").minos
    assert nextstat.fit(model, fixed={"theory_*": 0.0}).converged
    point = {"mu": 1.0}
    assert len(nextstat.asimov_data(model, point)) == len(model.data)
    assert nextstat.throw_toys(model, point, n_toys=2).shape == (2, len(model.data))
    by_channel = {"control_region": [300.0, 220.0, 160.0], "signal_region": [70.0, 50.0, 30.0, 20.0]}
    assert nextstat.fit(model, data=by_channel).provenance["data"]["source"] == "given"
    assert nextstat.yields(model, blind="signal_region").channels[1]["data"].tolist() == pytest.approx([float("nan")] * 4, nan_ok=True)
    assert nextstat.yields(model, fit=nextstat.fit(model), blind="*").channels[0]["postfit"]["total"]["sum"] > 0


def test_several_parameters_of_interest_are_not_silent(model):
    several = nextstat.load_workspace("shapes.json", poi=["mu", "norm_ttbar"])
    said = "the model has 2 parameters of interest, and this result is for the first, `mu`"
    with pytest.warns(nextstat.NextstatWarning, match=said):
        limit = nextstat.upper_limit(several)
    assert said in limit.warnings
    limits = nextstat.every_poi(several, nextstat.upper_limit)
    assert limits.names == ("mu", "norm_ttbar")
