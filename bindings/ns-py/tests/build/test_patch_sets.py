"""Patch sets: every patch gives the workspace of its signal, digests are right, pyhf reads them."""

import copy
import json
import re

import analysis
import nextstat
import pytest
from nextstat.build import _command, build, build_patch_set, patch_set, without_samples
from oracle import asked

GRID = {
    "Sample": "signal",
    "Description": "two points",
    "HEPData": "ins1234567",
    "Labels": ["m_parent", "m_child"],
    "Signals": [
        {"Name": "p_300_300", "Values": [300, 300], "SamplePath": "signal"},
        {"Name": "p_500_100", "Values": [500, 100], "SamplePath": "zjets"},
    ],
}


def config():
    """The signal is in all regions of the configuration, and has no shape in one of them."""
    return analysis.with_options(PatchSet=GRID)


def of_point(path):
    """The workspace of one signal, built by itself."""
    changed = copy.deepcopy(config())
    next(sample for sample in changed["Samples"] if sample["Name"] == "signal")["SamplePath"] = path
    return build(changed).workspace


def test_every_patch_gives_the_workspace_of_its_signal(files):
    background, patches = build_patch_set(config())
    found = nextstat.PatchSet(patches)
    assert found.verify(background.workspace)["verified"]
    for point in GRID["Signals"]:
        assert found.apply(background.workspace, point["Name"]) == of_point(point["SamplePath"])
        assert found.values(point["Name"]) == dict(zip(GRID["Labels"], point["Values"]))
    assert found.model(background.workspace, "p_300_300").poi == "mu"


PYHF = """
import {module} as pyhf
found, workspace = pyhf.PatchSet(question["patches"]), pyhf.Workspace(question["background"])
found.verify(workspace)
question["background"]["channels"][0]["samples"][0]["data"][0] += 1.0
try:
    found.verify(pyhf.Workspace(question["background"]))
    refused = False
except pyhf.exceptions.PatchSetVerificationError:
    refused = True
digest = pyhf.utils.digest(found.apply(workspace, "p_500_100"))
answer = {{"digest": digest, "name": found[(300, 300)].name, "refused": refused}}
"""


@pytest.mark.parametrize("module", ["nextstat.pyhf", "pyhf"])
def test_pyhf_reads_the_set_and_verifies_its_digest(module, files):
    background, patches = build_patch_set(config())
    answer = asked(module.partition(".")[0], PYHF.format(module=module), {"background": background.workspace, "patches": patches})
    assert answer == {"digest": nextstat.digest(of_point("zjets")), "name": "p_300_300", "refused": True}


def test_a_workspace_with_another_background_is_refused(files):
    workspace = of_point("signal")
    background = without_samples(workspace, ["signal"])
    workspace["channels"][0]["samples"][1]["data"][0] += 1.0
    with pytest.raises(nextstat.WorkspaceError, match="signal `a`: the workspace differs from the background in more") as caught:
        patch_set(background, {"a": workspace}, labels=["m"], values={"a": [1]})
    assert "without_samples" in caught.value.hint


def test_values_and_labels_have_to_match(files):
    with pytest.raises(nextstat.ParameterError, match="1 values of `a` for 2 labels"):
        patch_set({}, {"a": {}}, labels=["m", "n"], values={"a": [1]})


def test_the_command_writes_background_and_patch_set(files, capfd):
    yaml = pytest.importorskip("yaml")
    (files / "config.yml").write_text(yaml.safe_dump(config()))
    code = _command.main(["build", "config.yml", "-o", "background.json", "--patchset", "signals.json", "--quiet"], "nextstat")
    assert (code, capfd.readouterr()) == (0, ("", ""))
    patches = json.loads((files / "signals.json").read_text())
    assert patches["metadata"]["digests"]["sha256"] == nextstat.digest("background.json")
    assert len(nextstat.every_patch("background.json", "signals.json", nextstat.hypotest).patches) == 2


def test_the_background_may_not_depend_on_the_signal(files):
    changed = config()
    changed["Nextstat"]["StaterrorThreshold"] = 0.12
    with pytest.raises(nextstat.WorkspaceError, match=r"/Nextstat/StaterrorThreshold: the statistical errors of `signal`") as caught:
        build_patch_set(changed)
    assert "DisableStaterror" in caught.value.hint
    changed["Samples"][1]["DisableStaterror"] = True
    background, patches = build_patch_set(changed)
    assert nextstat.PatchSet(patches).verify(background.workspace)["verified"]
    assert any(one.kind == "staterror" for one in background.removed)


#: Changes of the grid, or of its second point; where the error is; what it says.
MISTAKES = {
    "identifier": ({"HEPData": "ins1"}, {}, "/Nextstat/PatchSet/HEPData: `ins1` is not an INSPIRE identifier"),
    "name twice": ({}, {"Name": "p_300_300"}, "/Nextstat/PatchSet/Signals/1/Name: the name `p_300_300` is there twice"),
    "values twice": ({}, {"Values": [300, 300]}, "/Nextstat/PatchSet/Signals/1/Values: patches `p_300_300` and `p_500_100` have the same values$"),
    "name with a blank": ({}, {"Name": "p 500"}, "/Nextstat/PatchSet/Signals/1/Name: `p 500` is not a name of letters"),
    "label": ({"Labels": ["m/parent", "m"]}, {}, "/Nextstat/PatchSet/Labels: `m/parent` is not a name of letters"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_set_that_the_engine_refuses_is_an_error_with_a_place(name, files, capfd):
    yaml = pytest.importorskip("yaml")
    grid, point, message = MISTAKES[name]
    changed = config()
    changed["Nextstat"]["PatchSet"] = {**copy.deepcopy(GRID), **grid}
    changed["Nextstat"]["PatchSet"]["Signals"][1].update(point)
    (files / "config.yml").write_text(yaml.safe_dump(changed))
    before = sorted(path.name for path in files.iterdir())
    code = _command.main(["build", "config.yml", "-o", "background.json", "--patchset", "signals.json"], "nextstat")
    said = capfd.readouterr()
    assert (code, said.out) == (2, "")
    assert re.search(r"^error: config.yml, line \d+, " + message, said.err, re.MULTILINE), said.err
    assert sorted(path.name for path in files.iterdir()) == before


def test_a_background_without_samples_is_an_error_with_a_place(files):
    changed = config()
    changed["Regions"].append({"Name": "signal only", "RegionPath": "SR"})
    for sample in changed["Samples"][2:]:
        sample["RegionsExclude"] = "signal only"
    with pytest.raises(nextstat.WorkspaceError, match=r"^/Nextstat/PatchSet: channel `signal only`: no samples are left"):
        changed["Samples"][1]["Regions"].append("signal only")
        build_patch_set(changed)


def test_a_configuration_without_signals_has_no_patch_set(files):
    with pytest.raises(nextstat.WorkspaceError, match="no patch set"):
        build_patch_set(analysis.HISTOGRAMS)
