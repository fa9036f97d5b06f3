"""The engine as WebAssembly, in Node, against the command: the same numbers and the same
messages."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGINE = Path(os.environ.get("NEXTSTAT_WASM") or ROOT / "target" / "web")
EXAMPLES = ROOT / "examples"
DATA = Path(os.environ.get("NEXTSTAT_DATA") or ROOT / "data")
NODE = shutil.which("node")
COMMAND = os.environ.get("NEXTSTAT")

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="there is no Node"),
    pytest.mark.skipif(not (ENGINE / "nextstat_wasm_bg.wasm").exists(), reason="the engine is not built (make web)"),
]
needs_command = pytest.mark.skipif(COMMAND is None, reason="there is no command to compare with")


def ask(files, opened, *questions):
    """The answers of the engine to `questions` about the files at these paths, by name."""
    task = {"files": {name: str(path) for name, path in files.items()}, "open": opened, "questions": questions}
    script = Path(__file__).with_name("engine.mjs")
    done = subprocess.run([NODE, script, ENGINE], input=json.dumps(task), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def run(*arguments, cwd=None):
    """The document of the command, which may say that a fit did not converge."""
    done = subprocess.run([COMMAND, *map(str, arguments), "--json"], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def close(found, expected, relative, path="", absolute=1e-12):
    """Whether two documents have the same keys, texts, and numbers within a tolerance."""
    if isinstance(expected, dict):
        assert set(found) == set(expected), path
        for key, value in expected.items():
            if key not in UNEQUAL:
                close(found[key], value, relative, f"{path}/{key}", absolute)
    elif isinstance(expected, list):
        assert len(found) == len(expected), path
        for i, value in enumerate(expected):
            close(found[i], value, relative, f"{path}/{i}", absolute)
    elif isinstance(expected, float) or isinstance(found, float):
        assert found == pytest.approx(expected, rel=relative, abs=absolute), path
    else:
        assert found == expected, path


# What depends on the machine or on the way to the minimum.
UNEQUAL = {"checksums", "n_iterations", "n_evaluations", "edm", "file", "files", "n_fits", "threads", "instruction_set"}

SIMPLE = {"simple.json": EXAMPLES / "simple.json"}
SHAPES = {"shapes.json": EXAMPLES / "shapes.json"}


@needs_command
@pytest.mark.parametrize(
    ("question", "arguments", "relative"),
    [
        ({"verb": "inspect"}, ["inspect"], 0),
        ({"verb": "fit"}, ["fit"], 1e-7),
        ({"verb": "report"}, ["report"], 1e-6),
        ({"verb": "ranking"}, ["ranking"], 1e-5),
        ({"verb": "scan", "points": 5}, ["scan", "--points=5"], 1e-6),
        ({"verb": "scan", "points": 5, "range": [0.0, 2.0]}, ["scan", "--start=0", "--stop=2", "--points=5"], 1e-6),
        ({"verb": "limit"}, ["limit"], 1e-6),
        ({"verb": "significance"}, ["significance"], 1e-6),
        ({"verb": "hypotest", "mu": 0.5}, ["hypotest", "--mu=0.5"], 1e-6),
        ({"verb": "hypotest-toys", "n_toys": 50}, ["hypotest-toys", "--n-toys=50"], 1e-6),
    ],
)
def test_documents_are_those_of_the_command(question, arguments, relative):
    found = ask(SHAPES, {"workspace": "shapes.json"}, question)["answers"][0]
    assert "error" not in found, found
    expected = run(*arguments, EXAMPLES / "shapes.json")
    expected.get("provenance", {}).pop("command", None)
    close(found["document"], expected, relative, absolute=1e-7)


@needs_command
def test_settings_and_the_command_that_reproduces_them(tmp_path):
    (tmp_path / "a shape.json").write_bytes((EXAMPLES / "shapes.json").read_bytes())
    names = run("fit", EXAMPLES / "shapes.json")["par_names"]
    other = next(name for name in names if "[" not in name and name != "mu")
    settings = {"fixed": {other: 0.25}, "bounds": {"mu": [-1.5, 8.0]}, "mask": ["control_region"], "asimov": 0.75}
    questions = [
        {"verb": verb, "settings": settings, **options}
        for verb, options in [
            ("fit", {}),
            ("overview", {}),
            ("scan", {"parameter": "mu", "points": 3, "range": [-1.0, 1.0]}),
            ("hypotest-toys", {"n_toys": 20, "seed": 3, "mu": 2.0}),
        ]
    ]
    files = {"a shape.json": EXAMPLES / "shapes.json"}
    for question, answer in zip(questions, ask(files, {"workspace": "a shape.json"}, *questions)["answers"], strict=True):
        assert "error" not in answer, answer
        words = shlex.split(answer["command"])
        assert words[0] == "nextstat"
        expected = run(*words[1:], cwd=tmp_path)
        expected["provenance"].pop("command")
        found = answer["document"]["report"] if question["verb"] == "overview" else answer["document"]
        for key in ("correlation", "mle_parameters", "minima"):
            expected.get("fit", {}).pop(key, None)
        close(found, expected, 1e-6, absolute=1e-7)


def test_the_report_of_a_slider_is_that_of_the_overview_and_nothing_else():
    settings = {"fixed": {"mu": 2.0}}
    overview, alone = ask(SHAPES, {"workspace": "shapes.json"}, *({"verb": verb, "settings": settings} for verb in ("overview", "conditional")))["answers"]
    close(alone["document"], overview["document"]["report"], 0)
    assert "correlation" not in alone["document"]["fit"]


# The Python of the virtual environment that the command is of.
PYTHON = Path(COMMAND or "").with_name("python")


@needs_command
@pytest.mark.skipif(not PYTHON.exists(), reason="the command has no Python beside it")
def test_the_python_program_gives_the_numbers(tmp_path):
    (tmp_path / "shapes.json").write_bytes((EXAMPLES / "shapes.json").read_bytes())
    settings = {"fixed": {"lumi": 1.01}, "bounds": {"mu": [-1.5, 8.0]}, "mask": ["control_region"], "asimov": 0.75}
    questions = [
        {"verb": "fit", "settings": settings},
        {"verb": "overview"},
        {"verb": "ranking"},
        {"verb": "limit", "settings": settings},
        {"verb": "significance"},
        {"verb": "hypotest", "mu": 0.5},
        {"verb": "hypotest-toys", "n_toys": 20, "seed": 3, "mu": 2.0},
        {"verb": "scan", "parameter": "lumi", "points": 3, "range": [0.99, 1.01]},
        {"verb": "inspect"},
    ]
    for question, answer in zip(questions, ask(SHAPES, {"workspace": "shapes.json"}, *questions)["answers"], strict=True):
        program = answer["python"]
        if question["verb"] in ("fit", "limit"):
            program += "import json\njson.dump(result.to_dict(), open('found.json', 'w'))\n"
        done = subprocess.run([PYTHON, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout, (program, done.stderr)
        if question["verb"] == "fit":
            found = json.loads((tmp_path / "found.json").read_text())
            close(found["twice_nll"], answer["document"]["twice_nll"], 1e-9)
        if question["verb"] == "limit":
            found = json.loads((tmp_path / "found.json").read_text())
            close(found["expected"], answer["document"]["expected"], 1e-6)


def test_progress_of_toys_is_told():
    answer = ask(SIMPLE, {"workspace": "simple.json"}, {"verb": "hypotest-toys", "n_toys": 200})
    assert answer["steps"] > 1
    assert answer["answers"][0]["document"]["n_toys"] == [200, 200]


@needs_command
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("broken.json", '{"channels": [{"name": "SR", "samples": [}]}'),
        ("empty.json", ""),
        ("number.json", '{"channels": [{"name": "SR", "samples": [{"name": "a", "data": ["x"], "modifiers": []}]}], "version": "1.0.0"}'),
        ("patch.json", '[{"op": "add", "path": "/a", "value": 1}]'),
    ],
)
def test_damaged_files_have_the_message_of_the_command(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    done = subprocess.run([COMMAND, "fit", name], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    [answer] = ask({name: tmp_path / name}, {"workspace": name}, {"verb": "fit"})["answers"]
    said = done.stderr.splitlines()
    assert answer["error"] and said[0] == f"error: {answer['error']}"
    assert said[1:2] == ([f"hint: {answer['hint']}"] if answer.get("hint") else [])


def test_settings_that_do_not_fit_are_errors_with_advice():
    [answer] = ask(SIMPLE, {"workspace": "simple.json"}, {"verb": "fit", "settings": {"fixed": {"Mu": 1}}})["answers"]
    assert "`Mu`" in answer["error"] and "did you mean `mu`" in answer["hint"]
    [answer] = ask(SIMPLE, {"workspace": "simple.json"}, {"verb": "scan", "points": 2**31 - 1})["answers"]
    assert answer["error"] == "a scan has 2 to 100000 points, and not 2147483647"
    [answer] = ask(SIMPLE, {"workspace": "simples.json"}, {"verb": "fit"})["answers"]
    assert "did you mean `simple.json`" in answer["hint"]


@needs_command
@pytest.mark.parametrize(
    ("folder", "workspace"), [("combine", "templates.txt"), ("histfactory", None)]
)
def test_documents_that_name_files_are_read_from_an_archive(tmp_path, folder, workspace):
    """Data cards and combinations in XML, with their ROOT files."""
    archive = shutil.make_archive(str(tmp_path / "inputs"), "zip", EXAMPLES, folder)
    listed = ask({"inputs.zip": archive}, {"workspace": "none"})["listed"][0]
    kinds = {entry["path"].split("/", 1)[1]: entry["kind"] for entry in listed}
    workspace = f"{folder}/{workspace}" if workspace else next(path for path, kind in kinds.items() if kind == "histfactory-xml")
    assert kinds[workspace] in ("card", "histfactory-xml")
    [answer] = ask({"inputs.zip": archive}, {"workspace": f"inputs.zip/{workspace}"}, {"verb": "fit"})["answers"]
    assert "error" not in answer, answer
    expected = run("fit", EXAMPLES / workspace)
    assert answer["document"]["par_names"] == expected["par_names"]
    close(answer["document"]["twice_nll"], expected["twice_nll"], 1e-9)


@needs_command
def test_patches_of_a_set_have_the_numbers_of_the_command():
    files = {"background.json": EXAMPLES / "background.json", "signals.json": EXAMPLES / "signals.json"}
    whole = run("hypotest", files["background.json"], f"--patchset={files['signals.json']}", "--every-patch")
    for patch in whole["patches"]:
        opened = {"workspace": "background.json", "patchset": {"file": "signals.json", "patch": patch["patch"]}}
        [answer] = ask(files, opened, {"verb": "hypotest", "provenance": False})["answers"]
        close(answer["document"], patch["result"], 1e-6)


@needs_command
def test_contours_of_a_grid_are_those_of_the_command(tmp_path):
    grid = run("hypotest", EXAMPLES / "background.json", f"--patchset={EXAMPLES / 'plane.json'}", "--every-patch")
    (tmp_path / "tests.json").write_text(json.dumps(grid))
    [found] = ask(SIMPLE, {"workspace": "simple.json"}, {"exclusion": {"grid": grid}})["answers"]
    expected = run("exclusion", tmp_path / "tests.json")
    assert expected["provenance"].pop("file") and expected["provenance"].pop("command")
    close(found, expected, 1e-9)


def published():
    path = DATA / "cases.json"
    return json.loads(path.read_text()) if path.exists() else {}


@needs_command
@pytest.mark.skipif(not published(), reason="the published likelihoods are absent")
@pytest.mark.parametrize("case", published())
def test_published_likelihoods_have_the_numbers_of_the_command(case):
    entry = published()[case]

    def file(stem):
        return next(path for end in (".json", ".json.zst") if (path := DATA / "workspaces" / f"{stem}{end}").exists())

    files, opened, arguments = {"ws": file(entry["file"])}, {"workspace": "ws"}, [file(entry["file"])]
    for i, (kind, stem, *name) in enumerate(entry["patches"]):
        files[f"patch{i}"] = file(stem)
        if kind == "file":
            opened["patches"] = [*opened.get("patches", []), f"patch{i}"]
            arguments.append(f"--patch={file(stem)}")
        else:
            opened["patchset"] = {"file": f"patch{i}", "patch": name[0]}
            arguments += [f"--patchset={file(stem)}", f"--patch-name={name[0]}"]
    if entry["poi"] is None:
        arguments.append("--poi=none")
    fit = run("fit", *arguments)
    questions = [{"verb": "fit"}] + [{"verb": "limit"}] * (entry["poi"] is not None)
    answers = ask(files, opened, *questions)["answers"]
    assert not any("error" in answer for answer in answers), answers
    close(answers[0]["document"]["twice_nll"], fit["twice_nll"], 1e-9)
    for answer in answers[1:]:
        limit = run("limit", *arguments)
        for key in ("observed", "expected"):
            close(answer["document"][key], limit[key], 1e-6)
