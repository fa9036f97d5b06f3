"""Where the verb writes: never over its inputs or another result."""

import os
from pathlib import Path

import analysis
import pytest
from nextstat.build import _command
from test_patch_sets import GRID

yaml = pytest.importorskip("yaml")


@pytest.fixture
def folder(files):
    (files / "histograms.yml").write_text(yaml.safe_dump(analysis.with_options(PatchSet=GRID)))
    (files / "trees.yml").write_text(yaml.safe_dump(analysis.TREES))
    (files / "sub").mkdir()
    os.link("histograms.root", "hard.json")
    os.symlink("trees.root", "link.json")
    os.symlink("sub", "report")
    return files


def run(capfd, *arguments):
    code = _command.main(["build", *arguments], "nextstat")
    return code, capfd.readouterr()


#: Arguments, and the file that is an input under this or another name.
INPUTS = {
    "histograms": (["histograms.yml", "-o", "histograms.root"], "histograms.root"),
    "configuration": (["histograms.yml", "-o", "histograms.yml"], "histograms.yml"),
    "configuration by another path": (["histograms.yml", "-o", "sub/../histograms.yml"], "sub/../histograms.yml"),
    "hard link": (["histograms.yml", "-o", "hard.json"], "hard.json"),
    "patch set": (["histograms.yml", "-o", "b.json", "--patchset", "histograms.yml"], "histograms.yml"),
    "patch set over histograms": (["histograms.yml", "-o", "b.json", "--patchset", "histograms.root"], "histograms.root"),
    "trees by a link": (["trees.yml", "-o", "link.json"], "link.json"),
    "record": (["sub/record.json", "--report", "sub"], "sub/record.json"),
    "figure": (["sub/overview.pdf", "--report", "report", "--format", "pdf"], "report/overview.pdf"),
    "figure of a pair": (["sub/SR_ttbar_JES.png", "--report", "sub"], "sub/SR_ttbar_JES.png"),
}


def contents(folder):
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", INPUTS)
def test_a_result_never_replaces_an_input(name, folder, capfd):
    pytest.importorskip("mplhep")
    arguments, shown = INPUTS[name]
    for given in arguments[:1]:
        if not Path(given).exists():
            Path(given).write_text(Path("histograms.yml").read_text())
    # Whatever is read of them now is an error of another kind.
    for damaged in ("histograms.root", "trees.root"):
        Path(damaged).write_bytes(b"not a ROOT file")
    before = contents(folder)
    code, said = run(capfd, *arguments)
    wanted = f"error: `{shown}` is an input of this command, and the result would replace it\nhint: write the result to another file\n"
    assert (code, said.out, said.err) == (2, "", wanted)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (["-o", "b.json", "--patchset", "b.json"], "`b.json`"),
        (["-o", "sub/b.json", "--patchset", "report/b.json"], "`report/b.json`"),
        (["-o", "sub/record.json", "--report", "report"], "`report/record.json`"),
    ],
)
def test_two_results_never_go_to_one_place(arguments, place, folder, capfd):
    pytest.importorskip("mplhep")
    before = contents(folder)
    code, said = run(capfd, "histograms.yml", *arguments)
    assert (code, said.out) == (2, "")
    assert said.err == f"error: two results would go to {place}\nhint: write the result to another file\n"
    assert contents(folder) == before
