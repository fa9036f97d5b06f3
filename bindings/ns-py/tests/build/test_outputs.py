"""Where the verb writes: never over its inputs or another result, and a terminal gets the table."""

import json
import os
import subprocess
import sys
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
    "configuration by another path": (["histograms.yml", "--output", "sub/../histograms.yml"], "sub/../histograms.yml"),
    "hard link": (["histograms.yml", "-o", "hard.json"], "hard.json"),
    "patch set": (["histograms.yml", "-o", "b.json", "--patchset", "histograms.yml"], "histograms.yml"),
    "patch set over histograms": (["histograms.yml", "--patchset", "histograms.root"], "histograms.root"),
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
        (["--patchset", "-"], "standard output"),
        (["-o", "-", "--patchset", "-"], "standard output"),
    ],
)
def test_two_results_never_go_to_one_place(arguments, place, folder, capfd):
    pytest.importorskip("mplhep")
    before = contents(folder)
    code, said = run(capfd, "histograms.yml", *arguments)
    assert (code, said.out) == (2, "")
    assert said.err == f"error: two results would go to {place}\nhint: write the result to another file\n"
    assert contents(folder) == before


def test_a_result_may_replace_another_file(folder, capfd):
    (folder / "b.json").write_text("old")
    code, said = run(capfd, "histograms.yml", "-o", "b.json", "--patchset", "-")
    assert code == 0
    assert json.loads(said.out)["metadata"]["labels"] == GRID["Labels"]
    assert json.loads((folder / "b.json").read_text())["version"] == "1.0.0"


# Terminals

TABLE = "3 channels, 10 bins, 3 samples,"
NOTE = "note: `-o FILE` writes the workspace"


class Terminal:
    """Makes a stream of this process a terminal."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def isatty(self):
        return True


def on_terminals(monkeypatch, *names):
    for name in names:
        monkeypatch.setattr(sys, name, Terminal(getattr(sys, name)))


#: Which streams are terminals, and more arguments; whether there is a table, and a workspace, on
#: standard output, and a table on standard error.
SHOWN = [
    ((), [], (False, True, False)),
    ((), ["--summary"], (False, True, True)),
    ((), ["--quiet", "--summary"], (False, True, True)),
    (("stderr",), [], (False, True, True)),
    (("stderr",), ["-q"], (False, True, False)),
    (("stderr",), ["-o", "b.json"], (False, False, True)),
    (("stdout", "stderr"), [], (True, False, False)),
    (("stdout",), ["-o", "b.json"], (True, False, False)),
    (("stdout",), ["-o", "-"], (False, True, False)),
    (("stdout", "stderr"), ["--json"], (False, True, True)),
    (("stdout",), ["--quiet"], (False, True, False)),
    (("stdout",), ["--summary", "-q", "-o", "b.json"], (False, False, False)),
]


@pytest.mark.parametrize(("terminals", "arguments", "shown"), SHOWN)
def test_a_terminal_gets_the_table_and_a_pipe_the_workspace(terminals, arguments, shown, folder, capsys, monkeypatch):
    on_terminals(monkeypatch, *terminals)
    assert _command.main(["build", "histograms.yml", *arguments], "nextstat") == 0
    said = capsys.readouterr()
    assert (TABLE in said.out, '"channels": [' in said.out, TABLE in said.err) == shown
    is_left_out = shown[0] and "-o" not in arguments
    assert (NOTE in said.out + said.err) == is_left_out
    assert not is_left_out or len(said.out) < 1000
    assert Path("b.json").exists() == ("b.json" in arguments)


def test_quiet_leaves_out_warnings_and_not_errors(folder, capfd):
    config = yaml.safe_load((folder / "histograms.yml").read_text())
    config["NormFactors"][1]["Samples"] = ["ttbar", "tbar"]
    (folder / "config.yml").write_text(yaml.safe_dump(config))
    assert "warning: config.yml" in run(capfd, "config.yml", "-o", "b.json")[1].err
    assert run(capfd, "config.yml", "-o", "b.json", "-q") == (0, ("", ""))
    assert run(capfd, "nothing.yml", "-q")[1].err.startswith("error: ")


def test_a_pseudoterminal_is_a_terminal(folder):
    pty = pytest.importorskip("pty")
    primary, secondary = pty.openpty()
    command = [sys.executable, "-m", "nextstat", "build", "histograms.yml"]
    done = subprocess.run(command, stdout=secondary, stderr=subprocess.PIPE, check=False)
    os.close(secondary)
    said = os.read(primary, 100_000).decode()
    os.close(primary)
    assert done.returncode == 0, done.stderr
    assert TABLE in said and NOTE in said and '"channels"' not in said


@pytest.mark.skipif(os.name != "posix", reason="closes a descriptor in a shell")
def test_a_closed_standard_output_is_an_error(folder):
    command = f"{sys.executable} -m nextstat build histograms.yml >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (2, "error: cannot write standard output: it is closed\n")
