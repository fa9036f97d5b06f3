"""Symmetrisation, pruning, decorrelation: definitions, records, and what must not change."""

import copy
import json
import math

import analysis
import nextstat
import numpy
import pytest
from nextstat import ParameterError, WorkspaceError
from nextstat.build import (
    PruningThresholds,
    Rule,
    averaged,
    build,
    decorrelate,
    drop_no_ops,
    effect,
    mirrored,
    prune,
    prune_staterror,
    split,
)
from nextstat.histograms import WorkspaceBuilder

NOMINAL, UP, DOWN = [40.0, 30.0, 20.0, 10.0], [44.0, 31.0, 21.0, 9.0], [37.0, 28.0, 20.0, 12.0]


@pytest.fixture
def workspace():
    builder = WorkspaceBuilder()
    for region in ("SR", "CR"):
        channel = builder.channel(region, data="asimov")
        signal = channel.sample("signal", [2.0, 4.0, 6.0, 8.0]).normfactor("mu")
        signal.normsys("JES", 0.003).normsys("theory", 0.1)
        background = channel.sample("background", NOMINAL)
        background.histosys("JES", up=UP, down=DOWN, split=True).normsys("theory", 0.02).staterror([0.1, 0.2, 1.0, 2.0])
    return builder.workspace(poi="mu", init={"JES": 0.5})


def modifiers(workspace):
    return {
        (channel["name"], sample["name"], modifier["name"], modifier["type"]): modifier
        for channel in workspace["channels"]
        for sample in channel["samples"]
        for modifier in sample["modifiers"]
    }


# Symmetrisation


def test_a_mirrored_template_has_the_mirrored_rate_and_the_mirrored_shape():
    up, down = mirrored(NOMINAL, UP)
    assert up == pytest.approx(UP, rel=1e-14)
    (rate_up, shape_up), (rate_down, shape_down) = split(NOMINAL, up), split(NOMINAL, down)
    assert rate_up + rate_down == pytest.approx(2.0, rel=1e-14)
    assert shape_up + shape_down == pytest.approx(2.0 * numpy.array(NOMINAL), rel=1e-14)


def test_without_a_change_of_the_rate_mirroring_is_twice_the_nominal_minus_up():
    up = [42.0, 29.0, 20.0, 9.0]
    assert mirrored(NOMINAL, up)[1] == pytest.approx([38.0, 31.0, 20.0, 11.0], rel=1e-14)


def test_averaged_templates_are_symmetric_and_keep_the_difference():
    up, down = averaged(NOMINAL, UP, DOWN)
    assert (up + down).tolist() == [2.0 * n for n in NOMINAL]
    assert (up - down).tolist() == [u - d for u, d in zip(UP, DOWN)]


def test_what_is_symmetric_is_not_changed():
    down = [2.0 * n - u for n, u in zip(NOMINAL, UP)]
    assert [side.tolist() for side in averaged(NOMINAL, UP, down)] == [UP, down]


def test_a_configuration_symmetrises_by_rules(files):
    config = analysis.with_options(Symmetrize=[{"Systematics": "scale_*", "Regions": "SR", "Method": "average"}, {"Systematics": "JES", "Method": "mirror"}])
    pairs = {(pair.region, pair.sample, pair.systematic): pair for pair in build(config).pairs}
    assert pairs["SR", "ttbar", "scale_tt"].steps == ("symmetrisation: average",)
    assert pairs["CR tt", "ttbar", "scale_tt"].steps == ()
    assert pairs["SR", "ttbar", "JES"].steps == ("smoothing: 353QH, twice", "symmetrisation: mirror")
    assert pairs["SR", "ttbar", "JES"].down is None
    up, down = pairs["SR", "ttbar", "scale_tt"].varied
    assert up + down == pytest.approx(2.0 * pairs["SR", "ttbar", "scale_tt"].nominal.values, rel=1e-14)


def test_a_configuration_smooths_by_rules(files):
    config = analysis.with_options(Smoothing={"Systematics": ["JER", "btag"], "Algorithm": "rebin", "Threshold": 0.09, "Samples": "ttbar"})
    pairs = {(pair.region, pair.sample, pair.systematic): pair for pair in build(config).pairs}
    assert pairs["SR", "ttbar", "JER"].steps[0].startswith("smoothing: ")
    assert "of 6 bins at a relative error of 0.09" in pairs["SR", "ttbar", "JER"].steps[0]
    assert pairs["SR", "signal", "JER"].steps == ("symmetrisation: mirror",)
    # The systematic's own setting comes first.
    assert pairs["SR", "ttbar", "btag"].steps[0] == "smoothing: 353QH, twice"


# Pruning


def test_rate_and_shape_are_pruned_separately(workspace):
    smaller, removed = prune(workspace, normalization=0.005, shape=0.3)
    gone = {(one.channel, one.sample, one.modifier, one.kind) for one in removed}
    assert gone == {(region, *rest) for region in ("SR", "CR") for rest in (("signal", "JES", "normsys"), ("background", "JES", "histosys"))}
    assert modifiers(workspace).keys() - modifiers(smaller).keys() == gone
    # What is left is as it was.
    assert all(modifiers(workspace)[key] == modifier for key, modifier in modifiers(smaller).items())


def test_every_record_says_what_was_compared(workspace):
    _, removed = prune(workspace, normalization=0.005, shape=0.3)
    for one in removed:
        modifier = modifiers(workspace)[one.channel, one.sample, one.modifier, one.kind]
        nominal = next(sample["data"] for channel in workspace["channels"] for sample in channel["samples"] if sample["name"] == one.sample)
        assert one.effect == effect(modifier, nominal) < one.threshold
        assert f"below {one.threshold:g}" in one.reason


def test_an_effect_at_the_threshold_is_kept(workspace):
    assert prune(workspace, normalization=effect({"type": "normsys", "data": {"hi": 1.003, "lo": 0.997}}, []))[1] == []


def test_rules_choose_what_is_pruned_and_the_first_one_counts(workspace):
    rules = [
        (Rule(samples=("signal",)), PruningThresholds(0.0, 0.0)),
        (Rule(regions=("C*",), systematics=("theory",)), PruningThresholds(0.05, 0.0)),
    ]
    _, removed = prune(workspace, rules=rules)
    assert [(one.channel, one.sample, one.modifier) for one in removed] == [("CR", "background", "theory")]


def test_settings_of_parameters_that_are_gone_are_gone_too(workspace):
    smaller, _ = prune(workspace, normalization=0.5, shape=0.5)
    assert smaller["measurements"][0]["config"]["parameters"] == []
    assert nextstat.model_of(smaller).par_names[0] == "mu"
    assert workspace["measurements"][0]["config"]["parameters"] != []


def test_a_bin_that_only_the_varied_template_fills_is_never_pruned():
    histosys = {"type": "histosys", "data": {"hi_data": [1.0, 0.001], "lo_data": [1.0, 0.0]}}
    assert effect(histosys, [1.0, 0.0]) == math.inf


def test_what_changes_nothing_is_left_out_and_rounding_is_nothing(workspace):
    sample = workspace["channels"][0]["samples"][1]
    sample["modifiers"] += [
        {"name": "a", "type": "normsys", "data": {"hi": 1.0 + 1e-15, "lo": 1.0}},
        {"name": "b", "type": "histosys", "data": {"hi_data": [value * (1.0 + 2e-16) for value in NOMINAL], "lo_data": NOMINAL}},
        {"name": "c", "type": "normsys", "data": {"hi": 1.0 + 1e-9, "lo": 1.0}},
    ]
    smaller, removed = drop_no_ops(workspace)
    assert [(one.modifier, one.reason) for one in removed] == [("a", "changes nothing"), ("b", "changes nothing")]
    assert drop_no_ops(smaller)[1] == []


def test_the_builder_writes_no_modifier_that_changes_nothing():
    builder = WorkspaceBuilder()
    channel = builder.channel("SR", data="asimov")
    sample = channel.sample("background", NOMINAL).normfactor("mu")
    sample.histosys("shape", up=[41.0, 29.0, 20.0, 10.0], down=[39.0, 31.0, 20.0, 10.0], split=True)
    sample.histosys("rate", up=[1.5 * value for value in NOMINAL], down=[0.5 * value for value in NOMINAL], split=True)
    sample.histosys("nothing", up=NOMINAL, down=NOMINAL, split=True).normsys("zero", 0.0)
    found = {(name, kind) for _, _, name, kind in modifiers(builder.workspace(poi="mu", fixed={"zero": 0.0}))}
    assert found == {("mu", "normfactor"), ("shape", "histosys"), ("rate", "normsys")}


def test_pruning_a_configuration_is_pruning_its_workspace(files):
    plain = build(analysis.HISTOGRAMS).workspace
    pruned = build(analysis.with_options(NoOps="keep", Pruning={"Normalization": 0.02, "Shape": 0.03}))
    wanted, removed = prune(plain, normalization=0.02, shape=0.03)
    assert pruned.workspace == wanted
    assert pruned.removed == tuple(removed) and len(removed) > 5
    assert len(pruned.record()["removed"]) == len(removed)
    json.dumps(pruned.record(), allow_nan=False)


def test_templates_as_used_are_those_of_the_workspace(files):
    found = build(analysis.with_options(Pruning={"Normalization": 0.02, "Shape": 0.03}))
    kept, left_out = modifiers(found.workspace), set()
    for pair in found.pairs:
        place = pair.region, pair.sample, pair.modifier
        rate = kept.get((*place, "normsys"), {"data": {"hi": 1.0, "lo": 1.0}})["data"]
        nominal = pair.nominal.values
        shape = kept.get((*place, "histosys"), {"data": {"hi_data": nominal, "lo_data": nominal}})["data"]
        assert pair.varied[0] == pytest.approx(rate["hi"] * numpy.array(shape["hi_data"]), rel=1e-12)
        assert pair.varied[1] == pytest.approx(rate["lo"] * numpy.array(shape["lo_data"]), rel=1e-12)
        left_out |= {step.partition(":")[0] for step in pair.steps}
    assert {"rate left out", "shape left out"} <= left_out


# MC statistics


def test_statistical_errors_below_the_threshold_are_fixed(workspace):
    smaller, removed = prune_staterror(workspace, 0.01)
    assert [(one.channel, one.bins) for one in removed] == [("SR", (0, 1)), ("CR", (0, 1))]
    assert modifiers(smaller)["SR", "background", "staterror_SR", "staterror"]["data"] == [0.0, 0.0, 1.0, 2.0]
    assert removed[0].effect == pytest.approx(0.2 / 30.0)
    before, after = (nextstat.fit(nextstat.model_of(one)) for one in (workspace, smaller))
    names = [entry["parameter"] for entry in after.pulls if entry["parameter"].startswith("staterror_SR") and entry["uncertainty"] is not None]
    assert names == ["staterror_SR[2]", "staterror_SR[3]"]
    assert after.value("mu") == pytest.approx(before.value("mu"), abs=1e-6)


def test_a_channel_in_which_no_bin_is_left_has_no_staterror(workspace):
    smaller, removed = prune_staterror(workspace, 0.25)
    assert [(one.channel, one.bins) for one in removed] == [("SR", ()), ("CR", ())]
    assert not any(kind == "staterror" for *_, kind in modifiers(smaller))


def test_the_error_that_is_compared_is_that_of_all_samples():
    builder = WorkspaceBuilder()
    channel = builder.channel("SR", data="asimov")
    channel.sample("signal", [10.0]).normfactor("mu").staterror([3.0])
    channel.sample("background", [90.0]).staterror([4.0])
    workspace = builder.workspace(poi="mu")
    assert prune_staterror(workspace, 0.0499)[1] == []
    assert prune_staterror(workspace, 0.0501)[1][0].effect == pytest.approx(0.05)


@pytest.mark.parametrize("bad", [-0.1, 1.0, 5, float("nan")])
def test_thresholds_are_relative(workspace, bad):
    for call in (lambda: prune(workspace, shape=bad), lambda: prune_staterror(workspace, bad)):
        with pytest.raises(ParameterError):
            call()


# Decorrelation


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("region", {"JES_SR", "JES_CR"}),
        ("sample", {"JES_signal", "JES_background"}),
        (["sample", "region"], {"JES_SR_signal", "JES_SR_background", "JES_CR_signal", "JES_CR_background"}),
    ],
)
def test_decorrelation_makes_a_parameter_of_each(workspace, by, names):
    found = decorrelate(workspace, "JE*", by)
    model = nextstat.model_of(found)
    assert {name for name in model.par_names if name.startswith("JES")} == names
    settings = found["measurements"][0]["config"]["parameters"]
    assert {one["name"] for one in settings} == names and all(one["inits"] == [0.5] for one in settings)
    # Shape and rate of one sample remain one parameter.
    assert len(modifiers(found)) == len(modifiers(workspace))


@pytest.mark.parametrize("by", ["region", "channel", "sample", ["channel", "sample"]])
def test_decorrelation_is_that_of_the_verb(workspace, by):
    """Of both, one after the other."""
    wanted, names = workspace, "JES"
    for part in [by] if isinstance(by, str) else by:
        made = nextstat.decorrelate(wanted, names, by="sample" if part == "sample" else "channel")
        wanted, names = made.workspace, made.rules[0]["parameters"]
    assert nextstat.digest(decorrelate(workspace, "JES", by)) == nextstat.digest(wanted)


@pytest.mark.parametrize("by", ["sample", ["region", "sample"], ["sample", "region"]])
def test_decorrelation_renames_by_definition(workspace, by):
    """Compared with renaming one modifier after the other."""
    found = decorrelate(workspace, "JES", by)
    for channel in workspace["channels"]:
        for sample in channel["samples"]:
            for modifier in sample["modifiers"]:
                if modifier["name"] == "JES":
                    modifier["name"] = "_".join(["JES", *([channel["name"]] if "region" in by else []), sample["name"]])
    names = list(dict.fromkeys(name for _, _, name, _ in modifiers(workspace) if name.startswith("JES")))
    workspace["measurements"][0]["config"]["parameters"] = [{"name": name, "inits": [0.5]} for name in names]
    assert found == workspace


def test_a_configuration_may_say_channel_for_region(files):
    found = [build(analysis.with_options(Decorrelate={"Parameters": "JES", "By": by})).workspace for by in ("channel", "region", ["region", "channel"])]
    assert found[0] == found[1] == found[2]
    assert "JES_CR1" in {name for _, _, name, _ in modifiers(found[0])}


def test_decorrelation_adds_constraint_terms_and_leaves_yields_as_they_were(workspace):
    workspace["measurements"][0]["config"]["parameters"] = []
    before, after = nextstat.model_of(workspace), nextstat.model_of(decorrelate(workspace, ["JES", "theory"], "region"))
    nlls = [nextstat.fit(model, fixed={"mu": 1.0}).nll for model in (before, after)]
    # Asimov data are fitted with all parameters at zero: two normal densities more.
    assert nlls[1] - nlls[0] == pytest.approx(2 * 0.5 * math.log(2 * math.pi), abs=1e-9)


def test_decorrelation_refuses_what_it_cannot_do(workspace):
    with pytest.raises(WorkspaceError, match="`JSE`") as caught:
        decorrelate(workspace, "JSE", "region")
    assert "`JES`" in caught.value.hint
    with pytest.raises(WorkspaceError, match="parameter of interest") as caught:
        decorrelate(workspace, "*", "region")
    assert caught.value.hint == "choose a narrower pattern"
    with pytest.raises(ParameterError, match="not `systematic`"):
        decorrelate(workspace, "JES", "systematic")
    clash = copy.deepcopy(workspace)
    clash["channels"][0]["samples"][0]["modifiers"].append({"name": "JES_CR", "type": "normfactor", "data": None})
    with pytest.raises(WorkspaceError, match="cannot be called `JES_CR`"):
        decorrelate(clash, "JES", "region")


def test_a_configuration_decorrelates(files):
    found = build(analysis.with_options(Decorrelate=[{"Parameters": "JES", "By": ["region", "sample"]}, {"Parameters": "scale", "By": "sample"}]))
    names = {name for _, _, name, _ in modifiers(found.workspace)}
    assert {"JES_SR_ttbar", "JES_CR tt_signal", "scale_ttbar", "scale_Z+jets"} <= names and not {"JES", "scale"} & names
    assert found.model().poi == "mu"


def test_lumi_has_its_auxiliary_data(files):
    found = build(analysis.with_options(Lumi={"Uncertainty": 0.02, "SamplesExclude": "ttbar"}))
    assert {sample for _, sample, name, kind in modifiers(found.workspace) if kind == "lumi"} == {"signal", "Z+jets"}
    setting = found.workspace["measurements"][0]["config"]["parameters"][-1]
    assert setting == {"name": "lumi", "auxdata": [1.0], "sigmas": [0.02], "inits": [1.0], "bounds": [[0.0, 10.0]]}
    assert nextstat.fit(found.model()).converged


# The builder


def test_the_builder_smooths_and_averages():
    sample = WorkspaceBuilder().channel("SR", data="asimov").sample("background", NOMINAL)
    sample.histosys("smooth", up=UP, down=DOWN, smooth="353QH, twice").histosys("average", up=UP, down=DOWN, symmetrize="average")
    smooth, average = (modifier["data"] for modifier in sample._modifiers)
    assert smooth["hi_data"] == nextstat.build.smooth_ratio(UP, NOMINAL).tolist() != UP
    assert [average["hi_data"], average["lo_data"]] == [side.tolist() for side in averaged(NOMINAL, UP, DOWN)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smooth": "gauss"}, "`smooth` is `353QH, twice` or `rebin`, not `gauss`"),
        ({"smooth": "rebin"}, "`threshold` goes with"),
        ({"symmetrize": "mirror"}, '`symmetrize` is `"average"`'),
    ],
)
def test_the_builder_refuses_what_it_does_not_know(options, message):
    sample = WorkspaceBuilder().channel("SR", data="asimov").sample("background", NOMINAL)
    with pytest.raises(WorkspaceError, match=message):
        sample.histosys("JES", up=UP, down=DOWN, **options)


def test_the_builder_reads_root_files(files):
    builder = WorkspaceBuilder()
    channel = builder.channel("SR", data="histograms.root:SR/data")
    channel.sample("signal", "histograms.root:SR/signal").normfactor("mu").staterror()
    assert builder.edges["SR"] == analysis.REGIONS["SR"]
    assert builder.workspace(poi="mu")["channels"][0]["samples"][0]["data"] == analysis.nominal("SR", "signal").tolist()
    with pytest.raises(WorkspaceError, match="channel `SR`, sample `other`: there is no histogram `SR/ttbr`") as caught:
        channel.sample("other", "histograms.root:SR/ttbr")
    assert caught.value.hint == "did you mean `SR/ttbar`?"
