"""Submissions to HEPData: its own validator accepts them, and they have the numbers of the results.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import nextstat
import nextstat.hepdata
import pytest

yaml = pytest.importorskip("yaml")


def _load(folder):
    """The index without its head, and the data of each table."""
    head, *index = yaml.safe_load_all((folder / "submission.yaml").read_text("utf-8"))
    return head, index, {entry["name"]: yaml.safe_load((folder / entry["data_file"]).read_text("utf-8")) for entry in index}


def _values(table, name):
    [found] = [variable for variable in table["independent_variables"] + table["dependent_variables"] if variable["header"]["name"] == name]
    return found["values"]


def _require_valid(path):
    """Asks HEPData's validator, where it is installed: the command of hepdata-validator, which
    HEPDATA_VALIDATE names or the search path has.
    """
    command = os.environ.get("HEPDATA_VALIDATE") or shutil.which("hepdata-validate")
    if not command:
        pytest.skip("there is no hepdata-validate (pip install hepdata-validator)")
    done = subprocess.run([command, "-d" if path.is_dir() else "-a", path], capture_output=True, encoding="utf-8", check=False)
    # Its exit code is 0 for what is not valid, too.
    assert done.returncode == 0 and "is valid" in done.stdout.splitlines()[0] and "error - " not in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def shapes(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


@pytest.fixture(scope="module")
def grid(root):
    """Tests of every patch; the median expected exclusion has a contour."""
    return nextstat.every_patch(root / "examples/background.json", root / "examples/plane.json", nextstat.hypotest)


@pytest.fixture
def record(shapes, grid, root, tmp_path):
    results = {
        "fit": nextstat.fit(shapes, minos="mu"),
        "yields": nextstat.yields(shapes, groups={"other": ["wjets", "fakes"]}),
        "limit": nextstat.upper_limit(shapes),
        "scan": nextstat.profile_scan(shapes, points=4),
        "ranking": nextstat.ranking(shapes),
        "significance": nextstat.significance(shapes),
        "map": nextstat.profile_scan(shapes, parameter=("mu", "lumi"), points=3),
        "contours": nextstat.contours(shapes, ("mu", "lumi"), [0.68], points=8),
        "goodness": nextstat.goodness_of_fit(shapes, toys=20),
        "toys": nextstat.hypotest_toys(shapes, 2.0, n_toys=100),
        "grid": grid,
        "contour": nextstat.exclusion(grid, "m_gluino", "m_lsp"),
    }
    with pytest.warns(nextstat.NextstatWarning, match="result `grid` is of a workspace with another digest"):
        made = nextstat.hepdata.submission(
            results, tmp_path / "record", workspace=root / "examples/shapes.json", archive=tmp_path / "record.tar.gz",
            comment="A search.", keywords={"cmenergies": [13000.0], "reactions": ["P P --> X"]},
            edges={"signal_region": [0, 100, 200, 300, 500]},
        )  # fmt: skip
    return results, made


def test_the_validator_of_hepdata_accepts_a_submission(record):
    _, made = record
    _require_valid(made.folder)
    _require_valid(made.archive)


def test_the_validator_refuses_a_damaged_submission(record):
    _, made = record
    table = made.folder / "upper_limits.yaml"
    table.write_text(table.read_text("utf-8").replace("value:", "valu:", 1), encoding="utf-8")
    with pytest.raises(AssertionError, match="valu"):
        _require_valid(made.folder)


def test_a_submission_has_the_numbers_of_the_results(record):
    results, made = record
    head, index, tables = _load(made.folder)
    assert list(tables) == list(made.tables) and all(entry["keywords"][0]["values"] == [13000.0] for entry in index)
    assert head["comment"] == "A search."
    fit = results["fit"]
    best = _values(tables["Parameters"], "Best fit")
    assert [value["value"] for value in best] == fit.bestfit.tolist()
    mu = fit.par_names.index("mu")
    assert best[mu]["errors"] == [{"symerror": fit.uncertainty("mu"), "label": "Hessian"}]
    interval = _values(tables["Parameters"], "Best fit, 68.27 % interval")[mu]["errors"][0]["asymerror"]
    assert (interval["minus"], interval["plus"]) == (fit.minos[0]["down"], fit.minos[0]["up"])
    known = [i for i in range(len(fit.par_names)) if fit.uncertainties[i] == fit.uncertainties[i]]
    correlation = [value["value"] for value in _values(tables["Correlations"], "Correlation")]
    assert correlation == [fit.correlation[i, j] for i in known for j in known]

    channel = results["yields"].channels[1]
    region = tables["Yields in signal_region"]
    assert _values(region, "Bin")[3] == {"low": 300.0, "high": 500.0}
    assert [value["value"] for value in _values(region, "Data")] == channel["data"].tolist()
    other = channel["postfit"]["groups"]["other"]
    pairs = zip(other["yields"].tolist(), other["uncertainties"].tolist())
    wanted = [{"value": value, "errors": [{"symerror": error, "label": "total"}]} for value, error in pairs]
    assert _values(region, "other, post-fit") == wanted

    [expected] = _values(tables["Upper limits"], "Expected")
    limits = results["limit"].expected
    assert expected["value"] == limits[2]
    assert expected["errors"][1] == {"asymerror": {"minus": limits[0] - limits[2], "plus": limits[4] - limits[2]}, "label": "2 s.d."}
    [observed] = _values(tables["CLs (toys)"], "Observed")
    assert observed == {"value": results["toys"].CLs_obs, "errors": [{"symerror": results["toys"].CLs_obs_error, "label": "Monte Carlo"}]}
    statistics = [value["value"] for value in _values(tables["Goodness of fit"], "Statistic")]
    assert statistics[-1] == results["goodness"].statistic
    points = [point["values"][1] for point in results["contours"].contours[0]["points"]]
    assert [value["value"] for value in _values(tables["Contours"], "lumi")] == points
    masses = [value["value"] for value in _values(tables["CLs (grid)"], "m_gluino")]
    assert masses == [found["values"]["m_gluino"] for found in results["grid"].patches]
    assert [value["value"] for value in _values(tables["CLs (grid)"], "Observed")] == [found["result"].CLs_obs for found in results["grid"].patches]
    vertices = results["contour"].expected[2]["contours"][0]["vertices"]
    assert [value["value"] for value in _values(tables["Expected exclusion contour"], "m_lsp")] == vertices[:, 1].tolist()
    scan = [value["value"] for value in _values(tables["Profile likelihood (scan)"], "-2 ln(profile likelihood ratio)")]
    assert scan == results["scan"].twice_delta_nll.tolist()


def test_the_workspace_is_a_resource_with_its_digest(record, root):
    _, made = record
    head, _, _ = _load(made.folder)
    [resource] = head["additional_resources"]
    assert resource["type"] == "HistFactory"
    assert resource["description"].endswith(nextstat.digest(root / "examples/shapes.json"))
    assert json.loads((made.folder / resource["location"]).read_bytes()) == json.loads((root / "examples/shapes.json").read_bytes())


def test_archives_have_the_files_and_the_same_bytes_every_time(shapes, tmp_path):
    limits = nextstat.upper_limit(shapes)
    for name in ("a.tar.gz", "b.tar.gz", "a.zip", "b.zip"):
        made = nextstat.hepdata.submission([limits], tmp_path / "record", archive=tmp_path / name)
    wanted = {path.name: path.read_bytes() for path in made.folder.iterdir()}
    for suffix in ("tar.gz", "zip"):
        first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
        assert first == second
    with tarfile.open(tmp_path / "a.tar.gz") as packed:
        assert {name: packed.extractfile(name).read() for name in packed.getnames()} == wanted
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        assert {name: packed.read(name) for name in packed.namelist()} == wanted


def test_hidden_data_are_not_submitted(shapes, tmp_path):
    made = nextstat.hepdata.submission(nextstat.yields(shapes, blind="signal_region[2:]"), tmp_path / "record")
    _, index, tables = _load(made.folder)
    data = [value["value"] for value in _values(tables["Yields in signal_region"], "Data")]
    assert data == [76.0, 55.0, "-", "-"]
    assert "blinded" in index[0]["description"]
    _require_valid(made.folder)


def test_asimov_data_are_not_called_observed(shapes, tmp_path):
    asimov = nextstat.command(["limit", str(_example("shapes")), "--asimov=0"]).json()
    made = nextstat.hepdata.submission([asimov], tmp_path / "record")
    _, index, tables = _load(made.folder)
    names = [variable["header"]["name"] for variable in tables["Upper limits"]["dependent_variables"]]
    assert names == ["Asimov data", "Expected"] and "asimov" in index[0]["description"]


def _example(name):
    return os.path.join(os.path.dirname(__file__), f"../../../examples/{name}.json")


def test_hostile_names_are_data(tmp_path):
    """Names are never YAML, never paths, and never longer than HEPData takes."""
    name = "../x\n--- !!python/object:os.system\t" + "é" * 80
    sample = {"name": "- {a: b}", "data": [10.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
    workspace = {
        "version": "1.0.0", "channels": [{"name": name, "samples": [sample]}, {"name": name + "2", "samples": [sample]}],
        "observations": [{"name": name, "data": [12.0]}, {"name": name + "2", "data": [11.0]}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
    }  # fmt: skip
    made = nextstat.hepdata.submission([nextstat.yields(nextstat.model_of(workspace))], tmp_path / "record", workspace=workspace)
    assert len(made.tables) == 2 and all(len(table) <= 64 for table in made.tables)
    assert all(path.parent == made.folder for path in made.folder.rglob("*"))
    _, _, tables = _load(made.folder)
    assert "- {a: b}, post-fit" in [variable["header"]["name"] for variable in tables[made.tables[0]]["dependent_variables"]]
    _require_valid(made.folder)


def test_names_that_look_like_ranges_are_accepted(tmp_path):
    """A patch is often called after its masses."""
    names = ["600-100", "6e2 - 1.5", "-5-3"]
    result = {"poi": {"name": "mu"}, "level": 0.05, "observed": 1.0, "expected": [0.5, 0.7, 1.0, 1.4, 1.9], "tested": [], "converged": True}
    patches = [{"patch": name, "values": {"mass": name}, "result": result} for name in names] + [{"patch": "x", "values": {"mass": 3}, "error": "no"}]
    grid = {"$schema": "urn:nextstat:schema:every-patch:1", "patches": patches, "converged": False}
    made = nextstat.hepdata.submission([grid], tmp_path / "record")
    _, _, tables = _load(made.folder)
    assert [value["value"] for value in _values(tables["Upper limits"], "patch")] == ["600–100", "6e2 – 1.5", "-5–3", "x"]
    assert _values(tables["Upper limits"], "Observed")[3] == {"value": "-"}
    _require_valid(made.folder)


def test_mistakes_are_errors_and_write_nothing(shapes, tmp_path):
    limits = nextstat.upper_limit(shapes)
    failed = {**nextstat.fit(shapes).to_dict(), "converged": False}
    cases = [
        (([failed],), {}, "did not converge"),
        (([nextstat.check(shapes)],), {}, "has no tables"),
        (([nextstat.fit_toys(shapes, n_toys=2)],), {}, "a result of `toys` has no record"),
        (([{"a": 1}],), {}, "is not a result of nextstat"),
        (([],), {}, "there is no result"),
        (([limits],), {"archive": tmp_path / "a.rar"}, "is not an archive that HEPData reads"),
        (([limits],), {"keywords": {"energy": [13]}}, "no keyword `energy`"),
        (([limits],), {"edges": {"SR": [0, 1]}}, "which no result has"),
        (([nextstat.yields(shapes)],), {"edges": {"signal_region": [0, 1]}}, "must be 5 ascending numbers"),
    ]
    for arguments, options, message in cases:
        with pytest.raises(nextstat.NextstatError, match=message):
            nextstat.hepdata.submission(*arguments, tmp_path / "record", **options)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(nextstat.ParameterError, match="has other files"):
        nextstat.hepdata.submission([limits], tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "notes.txt"]


def test_a_submission_with_other_tables_is_replaced_only_with_force(shapes, tmp_path):
    limits, record = nextstat.upper_limit(shapes), tmp_path / "record"
    nextstat.hepdata.submission([limits, nextstat.significance(shapes)], record)
    before = {path.name: path.read_bytes() for path in record.iterdir()}
    with pytest.raises(nextstat.ParameterError, match=r"another submission, with the file `significance\.yaml`") as caught:
        nextstat.hepdata.submission([limits], record, archive=tmp_path / "record.zip")
    assert "--force" in caught.value.hint
    assert {path.name: path.read_bytes() for path in record.iterdir()} == before
    assert not (tmp_path / "record.zip").exists()

    (tmp_path / "limits.json").write_text(limits.to_json(), encoding="utf-8")
    line = [sys.executable, "-m", "nextstat", "hepdata", tmp_path / "limits.json", "-o", record]
    refused = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
    assert refused.returncode == 2 and "another submission" in refused.stderr
    # The second time the tables are the same.
    for options in (["--force"], []):
        subprocess.run([*line, *options], check=True)
        assert sorted(path.name for path in record.iterdir()) == ["submission.yaml", "upper_limits.yaml"]


def test_a_submission_of_another_workspace_is_replaced_only_with_force(shapes, tmp_path):
    record, others = tmp_path / "record", nextstat.upper_limit(nextstat.example("simple"))
    nextstat.hepdata.submission([nextstat.upper_limit(shapes)], record)
    before = {path.name: path.read_bytes() for path in record.iterdir()}
    with pytest.raises(nextstat.ParameterError, match="has another submission, of other workspaces") as caught:
        nextstat.hepdata.submission([others], record)
    assert "--force" in caught.value.hint
    assert {path.name: path.read_bytes() for path in record.iterdir()} == before
    nextstat.hepdata.submission([others], record, force=True)
    # Other numbers of the same workspace are the same submission.
    nextstat.hepdata.submission([nextstat.upper_limit(nextstat.example("simple"), level=0.1)], record)
    _require_valid(record)


def test_force_replaces_no_folder_with_other_files(shapes, tmp_path):
    made = nextstat.hepdata.submission([nextstat.upper_limit(shapes)], tmp_path / "record")
    (made.folder / "notes.txt").write_text("mine")
    with pytest.raises(nextstat.ParameterError, match="has other files"):
        nextstat.hepdata.submission([nextstat.upper_limit(shapes)], made.folder, force=True)
    assert (made.folder / "notes.txt").exists()


def test_two_results_of_one_kind_have_different_tables(shapes, tmp_path):
    results = {"observed": nextstat.upper_limit(shapes), "90 %": nextstat.upper_limit(shapes, cl=0.9)}
    made = nextstat.hepdata.submission(results, tmp_path / "record")
    assert made.tables == ("Upper limits (observed)", "Upper limits (90 %)")
    _require_valid(made.folder)


def test_the_verb_writes_what_the_function_writes(shapes, examples_folder, search_path):
    """In the shell, from the files that other verbs write."""
    (examples_folder / "limits.json").write_text(nextstat.upper_limit(shapes).to_json())
    line = "nextstat hepdata limits.json --workspace examples/shapes.json -o by_verb --keyword cmenergies=13000 --comment 'A search.'"
    done = subprocess.run(["sh", "-c", line], env={**os.environ, "PATH": search_path}, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "1 table in by_verb\n"), done.stderr
    made = nextstat.hepdata.submission(
        ["limits.json"], "by_function", workspace="examples/shapes.json", keywords={"cmenergies": ["13000"]}, comment="A search."
    )
    ours = {path.name: path.read_bytes() for path in made.folder.iterdir()}
    assert {path.name: path.read_bytes() for path in (examples_folder / "by_verb").iterdir()} == ours
    done = subprocess.run([sys.executable, "-m", "nextstat", "hepdata", "nowhere.json", "-o", "x"], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 2 and "nowhere.json" in done.stderr and not os.path.exists("x")


def test_the_page_makes_a_submission(examples_folder, root):
    """What its blocks of Python write, the one by the command included."""
    page = (root / "docs/how-to/hepdata.md").read_text("utf-8")
    names = {}
    for block in re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(block, names)
    for made in ("record", "record.tar.gz", "by_python"):
        _require_valid(examples_folder / made)
    _, index, _ = _load(examples_folder / "record")
    assert "Yields in signal_region" in [entry["name"] for entry in index]
