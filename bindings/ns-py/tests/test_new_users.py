"""What a physicist who knows pyhf, cabinetry, TRExFitter and Combine expects of the Python package
on the first day: the usual workflows, results that say what they are, and output for a paper. For
the command, see new_users.rs of ns-cli; for what is mistyped, test_plausible_mistakes.py.
"""

import json
import re
import statistics
import subprocess
import sys

import nextstat
import numpy as np
import pytest
from nextstat.histograms import WorkspaceBuilder

SIGNAL, CONTROL = "signal_region", "control_region"


@pytest.fixture(name="model", scope="module")
def _model(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


@pytest.fixture(name="fitted", scope="module")
def _fitted(model):
    return nextstat.fit(model)


def lines_of(result, label):
    """The lines of a result's text that begin with `label`."""
    return [line.strip() for line in repr(result).splitlines() if line.strip().startswith(label)]


# Workflows.


def test_histograms_become_a_workspace():
    builder = WorkspaceBuilder()
    region = builder.channel("SR", data=[12.0, 8.0])
    region.sample("signal", [2.0, 3.0]).normfactor("mu")
    background = region.sample("background", (np.array([10.0, 5.0]), np.array([0.0, 50.0, 100.0])))
    background.normsys("xsec", up=1.1, down=0.9).histosys("scale", up=[11.0, 5.5]).staterror([1.0, 0.7])
    model = builder.model(poi="mu")
    assert {"mu", "xsec", "scale"} <= set(model.par_names) and nextstat.fit(model).converged


def test_templates_are_smoothed_symmetrised_pruned_and_decorrelated():
    from nextstat import build

    nominal, up = np.array([100.0, 80.0, 60.0, 40.0]), np.array([104.0, 80.0, 63.0, 40.1])
    assert build.smooth_ratio(up, nominal, times=2).sum() == pytest.approx(up.sum())
    mirrored_up, mirrored_down = build.mirrored(nominal, up)
    assert mirrored_up.sum() * mirrored_down.sum() == pytest.approx(nominal.sum() ** 2, rel=0.01)
    builder = WorkspaceBuilder()
    for region in ("SR", "CR"):
        sample = builder.channel(region, data=[100.0]).sample("b", [100.0]).normfactor("mu")
        sample.normsys("small", up=1.001, down=0.999).normsys("large", up=1.1, down=0.9)
    workspace, removed = build.prune(builder.workspace(poi="mu"), normalization=0.01)
    assert {found.modifier for found in removed} == {"small"}
    assert set(nextstat.model_of(build.decorrelate(workspace, "large", "region")).par_names) == {"mu", "large_SR", "large_CR"}


def test_each_usual_question_is_one_call(model):
    assert nextstat.fit(model, minos="mu").minos[0]["parameter"] == "mu"
    assert nextstat.fit(model).correlation.shape == (model.n_params, model.n_params)
    assert nextstat.profile_scan(model, points=3).intervals and nextstat.contours(model, ("mu", "lumi"), points=8).contours
    assert nextstat.upper_limit(model).observed > 0 and nextstat.significance(model).Z_obs > 0
    assert 0 < nextstat.goodness_of_fit(model, toys=20).toys["total"]["value"] <= 1
    assert len(nextstat.fit_toys(model, n_toys=3).bestfit) == 3


def test_asimov_data_are_of_any_values_and_results_say_so(model):
    data = nextstat.asimov_data(model, {"mu": 0.5, "norm_ttbar": 1.15})
    result = nextstat.fit(model, data=data)
    assert result.value("norm_ttbar") == pytest.approx(1.15, abs=1e-6)
    assert lines_of(result, "data:") == ["data: Asimov (mu = 0.5, norm_ttbar = 1.15)"]
    assert nextstat.throw_toys(model, {"mu": 0.5}, n_toys=2).shape == (2, len(data))


def test_asimov_data_of_a_fit_have_its_nuisance_parameters_and_another_signal(model):
    control = nextstat.fit(model, mask=SIGNAL)
    data = nextstat.asimov_data(model, {"mu": 1.0}, fit=control)
    result = nextstat.fit(model, data=data)
    assert result.value("mu") == pytest.approx(1.0, abs=1e-6)
    assert result.value("norm_ttbar") == pytest.approx(control.value("norm_ttbar"), abs=1e-6)


def test_reports_and_figures_hide_data_on_demand(model):
    for result in (nextstat.report(model, blind=SIGNAL).channels, nextstat.yields(model, blind_above=0.01).channels):
        assert np.isnan(result[-1]["data"]).all() and np.isfinite(result[-1]["postfit"]["total"]["yields"]).all()
    plot = pytest.importorskip("nextstat.plot")
    pytest.importorskip("mplhep")
    axes, _ = plot.data_mc(nextstat.yields(model), SIGNAL, blind=True)
    assert "Blinded" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_fit_of_control_regions_predicts_the_signal_region(model, root):
    control = nextstat.fit(model, fit_channels="control_*", fixed={"fakes_control_region": 1.0})
    predicted = nextstat.yields(model, fit=control, blind="*")
    assert (predicted.channels[1]["postfit"]["total"]["uncertainties"] > 0).all()
    assert predicted.provenance["stored_fit"]["sha256"]
    # To mask a region is to fit the workspace without it.
    pruned = json.loads(nextstat.command(["prune", root / "examples/shapes.json", "-c", SIGNAL]).output)
    alone = nextstat.fit(nextstat.model_of(pruned, poi="none"), fixed={"fakes_control_region": 1.0})
    assert control.value("norm_ttbar") == pytest.approx(alone.value("norm_ttbar"), abs=1e-8)


def test_many_data_sets_are_one_call(model):
    replicas = nextstat.bootstrap(np.arange(500) % 7, np.arange(500), n_bins=7, n_replicas=5)
    fits = nextstat.fits(model, replicas)
    assert fits.bestfit.shape == (5, model.n_params) and fits.standard_deviation("mu") > 0
    assert nextstat.replica_covariance(fits, fits).correlation[0, 0] == pytest.approx(1.0)


def test_any_number_of_workspaces_combine_with_a_map(root):
    workspace = json.loads((root / "examples/shapes.json").read_text())
    parts = {name: json.loads(json.dumps(workspace).replace("_region", f"_{name}")) for name in ("a", "b", "c")}
    by_analysis = [{"parameters": name, "by": "analysis"} for name in ("theory_ttbar", "fakes_*", "mc_stat_*")]
    combined = nextstat.combine(parts, map={"poi": {"name": "mu", "parameters": dict.fromkeys(parts, "mu")}, "decorrelate": by_analysis})
    model = nextstat.model_of(combined.workspace)
    assert len(model.channels) == 6 and {"lumi", "theory_ttbar_a", "theory_ttbar_c"} <= set(model.par_names)


def test_parameters_are_decorrelated_by_channel_and_by_sample(root):
    path = root / "examples/shapes.json"
    by_region = nextstat.decorrelate(path, "theory_ttbar", by="region").workspace
    assert {f"theory_ttbar_{SIGNAL}", f"theory_ttbar_{CONTROL}"} <= set(nextstat.model_of(by_region).par_names)
    by_sample = nextstat.decorrelate(path, "theory_*", by="sample").workspace
    assert {"theory_ttbar_ttbar", "theory_signal_signal"} <= set(nextstat.model_of(by_sample).par_names)


def test_tables_are_latex_csv_and_markdown(model):
    yields = nextstat.yields(model)
    assert r"\toprule" in yields.to_latex() and yields.to_csv().count("\n") > 7 and "| region | sample |" in yields.to_markdown()


def test_tables_are_frames_of_pandas(model, fitted):
    pytest.importorskip("pandas")
    assert fitted.to_pandas("parameters").shape[0] == model.n_params


def test_records_of_hepdata_a_page_and_root_files_are_written(model, tmp_path):
    nextstat.report(model, html=tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    pytest.importorskip("yaml")
    from nextstat import hepdata

    submission = hepdata.submission({"limit": nextstat.upper_limit(model)}, tmp_path / "record")
    assert submission.tables and (tmp_path / "record/submission.yaml").is_file()
    pytest.importorskip("uproot")
    nextstat.write_root(nextstat.yields(model), tmp_path / "yields.root")


# Results say what they are.

QUESTIONS = {
    "fit": nextstat.fit,
    "yields": nextstat.yields,
    "report": nextstat.report,
    "gof": nextstat.goodness_of_fit,
    "limit": nextstat.upper_limit,
    "significance": nextstat.significance,
    "hypotest": nextstat.hypotest,
    "ranking": lambda model, **options: nextstat.ranking(model, methods="covariance", **options),
    "scan": lambda model, **options: nextstat.profile_scan(model, points=3, **options),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_result_names_its_workspace_its_data_and_its_settings(model, root, question):
    data = nextstat.asimov_data(model, {"mu": 1.0})
    provenance = QUESTIONS[question](model, data=data, fixed={"lumi": 1.0}, bounds={"mu": (0.0, 8.0)}).provenance
    assert provenance["workspace"]["digest"] == nextstat.digest(root / "examples/shapes.json")
    assert provenance["nextstat_version"] == nextstat.__version__ and provenance["pois"] == ("mu",)
    assert provenance["data"]["source"] == "asimov" and provenance["data"]["parameters"] == {"mu": 1.0}
    assert provenance["settings"]["fixed"] == {"lumi": 1.0} and provenance["settings"]["bounds"] == {"mu": (0.0, 8.0)}
    assert provenance["device"] == "cpu" and provenance["seed"] == 0


def test_a_limit_of_asimov_data_has_no_row_called_observed(model):
    limit = nextstat.upper_limit(model, data=nextstat.asimov_data(model, {"mu": 0.0}))
    assert not lines_of(limit, "observed") and len(lines_of(limit, "Asimov data")) == 1


def test_impacts_are_labelled_and_up_comes_first(model):
    result = nextstat.ranking(model, groups={"theory": "theory_*"})
    [heading] = lines_of(result, "impact on mu")
    assert re.findall(r"[+-]1σ|−1σ", heading) == ["+1σ", "-1σ"] * 3
    [row] = lines_of(result, "theory_signal")
    entry = next(entry for entry in result.ranking if entry["parameter"] == "theory_signal")
    shown = [float(text) for text in row.split()[3:5]]
    assert shown == pytest.approx([entry["prefit"][side]["impact"] for side in ("up", "down")], abs=5e-4)
    [group] = lines_of(result, "group")
    assert group.split() == ["group", "parameters", "frozen", "global"]


def test_free_normalisations_are_in_the_table_of_a_fit(model, root):
    for result in (nextstat.fit(model), nextstat.fit(nextstat.load_workspace(root / "examples/shapes.json", poi="none"))):
        assert len(lines_of(result, "norm_ttbar")) == 1


def test_an_uncertainty_that_is_not_parabolic_is_warned_of(model):
    result = nextstat.fit(model, data=nextstat.asimov_data(model, {"mu": 0.0}))
    [warning] = [warning for warning in result.warnings if "not parabolic" in warning]
    assert "2ΔNLL of `norm_ttbar`" in warning and "MINOS" in warning


def test_the_uncertainty_is_split_into_stat_and_syst(fitted):
    assert fitted.poi.statistical**2 + fitted.poi.systematic**2 == pytest.approx(fitted.uncertainty("mu") ** 2, rel=1e-6)
    assert "(stat. 0.70, syst. 0.23, by covariance)" in lines_of(fitted, "mu")[0]


def test_low_counts_are_tested_by_toys_without_and_with_signal(model):
    excluded, discovered = nextstat.hypotest_toys(model, 2.0, n_toys=50), nextstat.hypotest_toys(model, n_toys=50, test_stat="q0")
    assert 0 <= excluded.CLs_obs <= 1 and 0 <= discovered.p0_obs <= 1 and discovered.p0_obs_error > 0
    assert discovered.p0_exp == discovered.CLs_exp and not hasattr(excluded, "p0_exp")


def test_discoveries_by_toys_have_significances_as_the_asymptotic_ones(model):
    """Both Z are of their p-values, and near the asymptotic ones, which counts below ten shift."""
    toys, asymptotic = nextstat.hypotest_toys(model, n_toys=2000, n_toys_b=500, test_stat="q0", seed=1), nextstat.significance(model)
    pairs = [
        (toys.Z_obs, toys.p0_obs, toys.p0_obs_error, asymptotic.Z_obs),
        (toys.Z_exp, toys.p0_exp[2], toys.p0_exp_errors[2], asymptotic.Z_exp),
    ]
    normal = statistics.NormalDist()
    for z, p, error, wanted in pairs:
        assert z == pytest.approx(-normal.inv_cdf(p), rel=1e-9)
        assert abs(z - wanted) < 0.3 and error > 0
    assert f"{toys.Z_obs:.4g}, expected {toys.Z_exp:.4g}" in repr(toys)


# Numbers.


def test_intervals_have_any_level(model):
    wide, narrow = (nextstat.fit(model, minos="mu", minos_cl=level).minos[0] for level in (0.95, 0.68))
    assert wide["up"] > narrow["up"] and wide["down"] < narrow["down"]
    levels = [interval["cl"] for interval in nextstat.profile_scan(model).intervals]
    assert levels == pytest.approx([0.6827, 0.9545], abs=1e-4)


def test_numbers_are_rounded_as_in_a_paper(model, fitted):
    assert lines_of(fitted, "mu")[0].split()[1:4] == ["1.37", "±", "0.74"]
    asimov = nextstat.fit(model, data=nextstat.asimov_data(model, {"mu": 1.0}))
    assert not re.search(r"e-\d", repr(asimov).split("strongest pulls")[1])
    assert lines_of(nextstat.yields(model), CONTROL)[0].split()[1:] == ["723", "702", "±", "36", "724", "±", "26"]


def test_a_fit_at_a_bound_says_how_to_get_an_interval(model):
    result = nextstat.fit(model, data=nextstat.asimov_data(model, {"mu": 0.0}), bounds={"mu": (0.0, 10.0)}, minos="mu")
    assert "(at its bound)" in lines_of(result, "mu")[0] and "open" not in repr(result)


def test_a_parameter_that_its_range_limits_is_warned_of():
    workspace = {
        "channels": [{"name": "CR", "samples": [
            {"name": "s", "data": [0.1], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
            {"name": "b", "data": [100.0], "modifiers": []},
        ]}],
        "observations": [{"name": "CR", "data": [100.5]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    }  # fmt: skip
    assert any("the data hardly determine `mu`" in warning for warning in nextstat.fit(nextstat.model_of(workspace)).warnings)


def test_one_quantity_has_one_name_in_every_result(model, fitted):
    results = [question(model) for question in QUESTIONS.values()]
    for result in results:
        assert result.converged in (True, False)
        assert {"params", "mu_hat", "best_fit"}.isdisjoint(result.to_dict())
    with_poi = [result.to_dict()["poi"] for result in results if "poi" in result.to_dict()]
    assert len(with_poi) >= 4 and all(poi["name"] == "mu" and poi["bestfit"] == pytest.approx(fitted.value("mu"), abs=1e-6) for poi in with_poi)


def test_columns_of_a_table_have_different_names(fitted):
    [heading] = lines_of(fitted, "strongest pulls")
    assert heading.split()[2:] == ["best", "fit", "pull", "constraint"]


def test_the_builder_writes_no_modifier_that_changes_nothing():
    builder = WorkspaceBuilder()
    sample = builder.channel("SR", data=[3.0, 3.0]).sample("b", [1.0, 2.0]).normfactor("mu")
    sample.histosys("shape", up=[2.0, 1.0], down=[0.5, 2.5], split=True)
    kinds = [modifier["type"] for modifier in builder.workspace(poi="mu")["channels"][0]["samples"][0]["modifiers"]]
    assert kinds == ["normfactor", "histosys"], "the totals do not change, so there is no normsys"


def test_signals_of_a_grid_make_a_patch_set_and_an_exclusion_contour(root):
    grid = nextstat.every_patch(root / "examples/background.json", root / "examples/plane.json", nextstat.hypotest)
    contour = nextstat.exclusion(grid, "m_gluino", "m_lsp")
    assert contour.expected[2]["contours"] and (contour.x, contour.y) == ("m_gluino", "m_lsp")
    from nextstat.build import patch_set

    background = json.loads((root / "examples/background.json").read_text())
    signals = {name: nextstat.PatchSet(root / "examples/signals.json").apply(background, name) for name in ("signal_300", "signal_500")}
    made = patch_set(background, signals, labels=["mass"], values={"signal_300": [300], "signal_500": [500]})
    assert nextstat.PatchSet(made).verify(background)["verified"]


def test_limits_of_several_parameters_of_interest_profile_the_others(root):
    several = nextstat.load_workspace(root / "examples/shapes.json", poi=["mu", "norm_ttbar"])
    limits = nextstat.every_poi(several, nextstat.upper_limit)
    alone = nextstat.upper_limit(several, poi="norm_ttbar")
    assert limits["norm_ttbar"].observed == pytest.approx(alone.observed, rel=1e-9)


# Figures.


@pytest.fixture(name="plot")
def _plot():
    for package in ("matplotlib", "mplhep"):
        pytest.importorskip(package)
    import matplotlib

    matplotlib.use("agg")
    from nextstat import plot

    yield plot
    matplotlib.pyplot.close("all")


def words_of(axes):
    """Everything that is written in the figure of `axes`."""
    from matplotlib.text import Text

    return [text.get_text() for text in axes.figure.findobj(Text) if text.get_visible() and text.get_text()]


def test_figures_have_the_label_of_an_experiment(plot, model):
    axes, _ = plot.data_mc(nextstat.yields(model), SIGNAL, style="ATLAS", label="Internal", energy=13, luminosity=140)
    words = " ".join(words_of(axes))
    assert "ATLAS" in words and "Internal" in words and "13 TeV" in words and "140" in words
    assert axes.xaxis.get_tick_params()["direction"] == "in" and axes.xaxis.get_tick_params()["top"]


def test_data_and_prediction_have_fixed_ratios_widths_and_colours_by_name(plot, model):
    result, edges = nextstat.yields(model), [0, 50, 100, 200, 400]
    axes, ratio = plot.data_mc(result, SIGNAL, edges=edges, xlabel="m [GeV]", goodness=nextstat.goodness_of_fit(model), overlay=5, signal="signal")
    assert ratio.get_ylim() == (0.5, 1.5) and "GeV" in axes.get_ylabel() and axes.get_ylabel().startswith("Events / ")
    assert any("chi^2" in words for words in words_of(axes)) and any("5" in words and "times" in words for words in words_of(axes))
    colours = plot.sample_colours(result)
    assert plot.sample_colours(nextstat.yields(model, mask=CONTROL)) == colours


def test_bands_of_limits_are_green_and_yellow_and_end_at_the_limit(plot, model):
    from matplotlib.colors import to_hex

    limit = nextstat.upper_limit(model)
    axes = plot.brazil(limit)
    bands = {to_hex(band.get_facecolor()[0][:3]) for band in axes.collections if len(band.get_facecolor())}
    assert {to_hex(colour) for colour in plot.PALETTES["classic"][:2]} <= bands and axes.get_yscale() == "log"
    assert any(f"{limit.observed:.3g}"[:4] in words for words in words_of(axes))


def test_rankings_have_a_legend_of_pulls_and_set_free_parameters_apart(plot, model):
    axes = plot.ranking(nextstat.ranking(model), top=None, impacts="global")
    assert any("pull" in words.lower() for words in words_of(axes))


def test_several_fits_have_pulls_of_their_own_colour_and_a_panel_of_normalisations(plot, model, fitted):
    axes = plot.pulls({"B-only": nextstat.fit(model, fixed={"mu": 0.0}), "S+B": fitted}, groups={"Theory": "theory_*"})
    assert {"B-only", "S+B"} <= set(words_of(axes)) and len(axes.figure.axes) == 2


def test_scans_have_crossings_and_the_best_fit_in_words(plot, model):
    axes = plot.scan(nextstat.profile_scan(model, points=9))
    assert any("1.37" in words for words in words_of(axes)) and len(axes.get_lines()[0].get_xdata()) > 50


def test_the_parameter_of_interest_is_in_every_correlation_matrix(plot, fitted):
    row = np.abs(np.delete(fitted.correlation[fitted.par_names.index("mu")], fitted.par_names.index("mu")))
    others = np.abs(fitted.correlation - np.eye(len(fitted.par_names))).max()
    threshold = (row.max() + others) / 2
    assert row.max() < threshold and "mu" in words_of(plot.correlation(fitted, threshold=threshold))


def test_figures_of_toys_name_the_parameter_of_interest(plot, root):
    workspace = (root / "examples/simple.json").read_text("utf-8").replace('"mu"', '"strength"')
    axes = plot.toys(nextstat.hypotest_toys(nextstat.model_of(workspace), 2.0, n_toys=100))
    assert any("strength" in words for words in words_of(axes))


# What is published as a field's standard, and what is not there.


def test_scale_factors_may_be_formulas_and_constraint_terms_of_any_kind(root):
    eft = nextstat.load_workspace(root / "examples/eft.json")
    assert nextstat.fit(eft).converged
    workspace = json.loads((root / "examples/simple.json").read_text())
    assert nextstat.fit(nextstat.model_of(workspace)).converged


def test_the_likelihood_has_gradients_for_samplers(model):
    value, gradient = model.nll_and_grad(model.init)
    assert np.isfinite(value) and gradient.shape == (model.n_params,)


@pytest.mark.parametrize(
    "words",
    ["Unbinned", "HS3", "RooWorkspace", "Parametric shapes", "Bayesian", "Unfolding"],
)
def test_what_is_missing_is_listed_with_what_to_do_instead(root, words):
    page = (root / "docs/explanation/not-supported.md").read_text("utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("|") and words in line.split("|")[1]]
    assert len(row.split("|")[2].strip()) > 10


# The package and its pages.


def test_the_package_installs_under_a_free_name_with_one_dependency(root):
    settings = (root / "bindings/ns-py/pyproject.toml").read_text("utf-8")
    assert 'name = "nextstat-rs"' in settings and re.search(r'dependencies = \["numpy[^"]*"\]', settings)
    assert "pip install nextstat-rs" in (root / "README.md").read_text("utf-8")


@pytest.mark.parametrize("page", ["tutorials/coming-from-cabinetry", "tutorials/coming-from-pyhf", "tutorials/coming-from-trexfitter",
                                  "tutorials/analysis", "tutorials/histograms", "reference/json"])  # fmt: skip
def test_pages_that_a_newcomer_looks_for_are_on_the_site(root, page):
    assert (root / f"docs/{page}.md").is_file() and f"{page}.md" in (root / "mkdocs.yml").read_text("utf-8")


def test_there_are_notebooks_a_citation_and_a_recipe(root):
    assert list((root / "docs/notebooks").glob("*.ipynb")) and (root / "CITATION.cff").is_file()
    assert (root / "recipe/recipe.yaml").is_file() and (root / "rust-toolchain.toml").is_file()


@pytest.fixture(name="rules", scope="module")
def _rules(root):
    """The words that the check of the repository refuses."""
    done = subprocess.run([sys.executable, root / "scripts/prose.py", "--words"], capture_output=True, encoding="utf-8", check=True)
    return [re.compile(rule["pattern"]) for rule in json.loads(done.stdout)]


# In two halves, because the check reads this file, too.
@pytest.mark.parametrize("halves", ["fo|lds", "he|ld", "slo|pe", "the ans|wer is no", "sis|ter command", "`x` i|s no histogram"])
def test_words_that_no_physicist_uses_are_refused_everywhere(rules, halves):
    text = halves.replace("|", "")
    assert any(rule.search(text) for rule in rules), text
