"""Files are written whole or not at all, and damaged files of toys are refused with their place."""

import copy
import json
import os
import random
import stat
import subprocess
import sys

import nextstat
import pytest
from nextstat._files import write_whole

POSIX = pytest.mark.skipif(os.name != "posix", reason="limits and permissions of files are POSIX's")


@pytest.fixture(scope="module")
def toys(root):
    return nextstat.fit_toys(nextstat.load_workspace(root / "examples/shapes.json"), n_toys=40, poi_uncertainty=True)


@POSIX
def test_toys_on_a_full_disk_leave_the_old_file(toys, tmp_path):
    toys.save(tmp_path / "a.npy")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    script = """
import pickle, resource, signal, sys
toys = pickle.load(sys.stdin.buffer)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    toys.save(sys.argv[1])
except OSError:
    sys.exit(7)
"""
    import pickle

    done = subprocess.run([sys.executable, "-c", script, tmp_path / "a.npy"], input=pickle.dumps(toys), capture_output=True, check=False)
    assert done.returncode == 7, done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert nextstat.load_toys(tmp_path / "a.npy") == toys


def test_an_error_changes_no_file(tmp_path):
    def fails(path):
        path.write_bytes(b"half")
        raise RuntimeError("no more")

    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_whole({tmp_path / "a": b"new", tmp_path / "b": fails})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}
    with pytest.raises(FileNotFoundError) as caught:
        write_whole({tmp_path / "absent" / "a": b"new"})
    assert caught.value.filename.endswith("a")


@POSIX
def test_permissions_and_links_stay(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_whole({tmp_path / "link": b"new"})
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640
    write_whole({tmp_path / "fresh": b"new"})
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o666 & ~umask
    (tmp_path / "real").chmod(0o400)
    if os.geteuid() != 0:
        with pytest.raises(PermissionError):
            write_whole({tmp_path / "real": b"newer"})


def test_the_document_beside_toys_is_json_as_everywhere(toys, tmp_path):
    toys.save(tmp_path / "a.npy")
    text = (tmp_path / "a.npy.json").read_text()
    assert text == json.dumps(json.loads(text), indent=4, sort_keys=True) + "\n"


def damages(document):
    """Copies of a document with one value replaced or left out, and the place of that."""

    def places(value, path=()):
        yield path
        if isinstance(value, dict):
            for key in value:
                yield from places(value[key], (*path, key))
        elif isinstance(value, list) and value:
            yield from places(value[0], (*path, 0))

    for path in places(document):
        for wrong in (None, 3, -1, 2**70, "x", ["x"], {}, [], [[]], True, 1e309, 0.5):
            if not path:
                yield path, wrong
                continue
            damaged = copy.deepcopy(document)
            inside = damaged
            for step in path[:-1]:
                inside = inside[step]
            inside[path[-1]] = wrong
            yield path, damaged
        if path and isinstance(path[-1], str):
            damaged = copy.deepcopy(document)
            inside = damaged
            for step in path[:-1]:
                inside = inside[step]
            del inside[path[-1]]
            yield path, damaged


def test_damaged_documents_of_toys_are_refused(toys, tmp_path):
    path, beside = tmp_path / "a.npy", tmp_path / "a.npy.json"
    toys.save(path)
    document = json.loads(beside.read_text())
    n_refused = 0
    for place, damaged in damages(document):
        beside.write_text(json.dumps(damaged))
        try:
            nextstat.load_toys(path)
        except nextstat.ToyError as error:
            n_refused += 1
            assert "a.npy" in str(error), place
    assert n_refused > 100
    for place, expected in (("settings", "`/settings/parameters` is to be a list of names"), ("n_records", "`/n_records` is to be a count, not `None`")):
        beside.write_text(json.dumps({key: value for key, value in document.items() if key != place}))
        with pytest.raises(nextstat.ToyError, match=expected):
            nextstat.load_toys(path)
    beside.write_text(json.dumps({**document, "settings": {**document["settings"], "parameters": ["x"]}}))
    with pytest.raises(nextstat.ToyError, match="is not the file that"):
        nextstat.load_toys(path)
    for text in ("[" * 100_000, "", "\ud800".encode("utf-8", "surrogatepass"), "{}", "nonsense"):
        beside.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(nextstat.ToyError, match="is not of"):
            nextstat.load_toys(path)


def test_damaged_records_of_toys_are_refused(toys, tmp_path):
    path = tmp_path / "a.npy"
    toys.save(path)
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    random.seed(4)
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[random.randrange(header)] = random.randrange(256)
        path.write_bytes(damaged)
        try:
            found = nextstat.load_toys(path)
        except nextstat.ToyError as error:
            assert "a.npy" in str(error)
        else:
            assert found == toys
    record = (len(whole) - header) // len(toys.toys)
    path.write_bytes(whole[: header + 10 * record + 5])
    with pytest.raises(nextstat.ToyError, match=r"a\.npy` ends after 10 of 40 toys"):
        nextstat.load_toys(path)
    damaged = bytearray(whole)
    damaged[header + 7 * record + 8] = 200
    path.write_bytes(damaged)
    with pytest.raises(nextstat.ToyError, match="record 7 has the status 200"):
        nextstat.load_toys(path)
    for length in (0, 5, 9, 40, header - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(nextstat.ToyError, match="is no file of toys"):
            nextstat.load_toys(path)
