"""A configuration of cabinetry gives cabinetry's workspace, to the last digit."""

import copy

import analysis
import nextstat
import numpy
import pytest
from nextstat.build import build, drop_no_ops, smooth_ratio
from oracle import asked

#: Digests of the workspaces that cabinetry 0.6.0 with pyhf 0.7.6 and uproot 5.7.7 built of these
#: configurations and files on 2026-11-23; `test_cabinetry_agrees` compares them where it is
#: installed.
DIGESTS = {
    "histograms": "4764206d2113a8a2e8d7454f8a94604a27da3fa6f483dc774ed10c0e59b9cde3",
    "small": "c07963dd67bce7895c9da9a66c8d31e2f5f6588eeb99b00d0286d38bd982c387",
    "trees": "de79dff1b56a1c6241cb8e42ffadf73f4f66c25414237dc862b3eb015f0403ae",
}


@pytest.mark.parametrize("name", DIGESTS)
def test_digests_are_those_that_cabinetry_gave(name, files):
    assert nextstat.digest(build(analysis.CONFIGURATIONS[name]).workspace) == DIGESTS[name]


CABINETRY = """
import logging, cabinetry, pyhf
logging.disable(logging.CRITICAL)
cabinetry.configuration.validate(question)
trees = any("Tree" in sample for sample in question["Samples"])
(cabinetry.templates.build if trees else cabinetry.templates.collect)(question)
cabinetry.templates.postprocess(question)
workspace = cabinetry.workspace.build(question)
answer = {"workspace": workspace, "digest": pyhf.utils.digest(workspace)}
"""


@pytest.mark.parametrize("name", DIGESTS)
def test_cabinetry_agrees(name, files):
    config = analysis.CONFIGURATIONS[name]
    theirs = asked("cabinetry", CABINETRY, config)
    assert build(config).workspace == theirs["workspace"]
    assert theirs["digest"] == DIGESTS[name]


CABINETRY_SMOOTHS = """
import numpy
from cabinetry.histo import Histogram
from cabinetry.templates.postprocessor import _apply_353qh_twice

numpy.seterr(all="ignore")
answer = []
for nominal, varied in question:
    nominal, varied = (Histogram.from_arrays([0, 1, 2, 3, 4, 5], contents, [0.0] * 5) for contents in (nominal, varied))
    _apply_353qh_twice(varied, nominal, "")
    answer.append([None if numpy.isnan(value) else float(value) for value in varied.yields])
"""


def test_cabinetry_smooths_full_bins_alike_and_empty_ones_to_nan():
    full = [50.0, 40.0, 30.0, 20.0, 10.0], [55.0, 36.0, 30.0, 26.0, 8.0]
    empty = [50.0, 40.0, 0.0, 20.0, 10.0], [55.0, 36.0, 0.0, 26.0, 8.0]
    theirs = asked("cabinetry", CABINETRY_SMOOTHS, [full, empty])
    assert smooth_ratio(full[1], full[0]).tolist() == theirs[0]
    assert theirs[1] == [None] * 5
    assert numpy.isfinite(smooth_ratio(empty[1], empty[0])).all()


def test_cabinetry_moves_events_out_of_a_bin_that_only_the_varied_template_fills():
    nominal, varied = [50.0, 40.0, 0.0, 20.0, 10.0], [55.0, 36.0, 1.0, 26.0, 8.0]
    (theirs,) = asked("cabinetry", CABINETRY_SMOOTHS, [(nominal, varied)])
    assert theirs[2] == 0.0 and sum(theirs) == pytest.approx(sum(varied), rel=1e-14)
    with pytest.raises(nextstat.ParameterError, match="no ratio to smooth"):
        smooth_ratio(varied, nominal)


def test_an_empty_section_of_our_own_leaves_out_what_changes_nothing_only(files):
    plain = build(analysis.HISTOGRAMS).workspace
    ours = build(analysis.with_options())
    assert {one.reason for one in ours.removed} == {"changes nothing"}
    assert {one.modifier for one in ours.removed} == {"nothing"}
    assert drop_no_ops(plain)[0] == ours.workspace
    assert build(analysis.with_options(NoOps="keep")).workspace == plain


def test_files_are_not_needed_where_a_function_returns_the_histograms():
    built = build(analysis.HISTOGRAMS, analysis.template)
    assert [channel["name"] for channel in built.workspace["channels"]] == list(analysis.REGIONS)
    assert built.model().poi == "mu"


def test_a_model_of_the_workspace_fits(files):
    result = nextstat.fit(build(analysis.HISTOGRAMS).model())
    assert result.converged
    assert 0.5 <= result.value("k_tt") <= 2.0


def test_a_selection_without_events_gives_floating_point_zeros(files):
    """The digest of `0` is not that of `0.0`."""
    config = copy.deepcopy(analysis.TREES)
    config["Samples"][0]["Filter"] = "pt < 0"
    observed = build({**config, "Systematics": []}).workspace["observations"]
    assert [repr(value) for one in observed for value in one["data"]] == ["0.0"] * 12
