"""Files are written whole or not at all, and damaged files of toys are refused with their place."""

import copy
import json
import os
import random
import stat
import subprocess
import sys

import nextstat
import numpy as np
import pytest
from nextstat import _checksums
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
    for place, expected in (("settings", "`/settings/parameters` must be a list of names"), ("n_records", "`/n_records` must be a count, not `None`")):
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
    with pytest.raises(nextstat.ToyError, match=r"a\.npy` is damaged: toys 1 to 40 of it do not match their checksum"):
        nextstat.load_toys(path)
    # Files of earlier versions have no checksums.
    beside = tmp_path / "a.npy.json"
    document = json.loads(beside.read_text())
    del document["checksums"]
    beside.write_text(json.dumps(document))
    with pytest.raises(nextstat.ToyError, match="record 7 has the unknown status 200"):
        nextstat.load_toys(path)
    path.write_bytes(whole)
    assert nextstat.load_toys(path) == toys
    toys.save(path)
    for length in (0, 5, 9, 40, header - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(nextstat.ToyError, match="is not a file of toys"):
            nextstat.load_toys(path)


@pytest.mark.parametrize("by_command", [True, False])
def test_a_flipped_bit_in_toys_is_noticed(root, tmp_path, by_command):
    workspace, path = root / "examples/shapes.json", tmp_path / "a.npy"
    if by_command:
        nextstat.command(["toys", workspace, "--n-toys", "300", "--seed", "5", "--output-file", path])
    else:
        nextstat.fit_toys(nextstat.load_workspace(workspace), n_toys=300, seed=5).save(path)
    assert len(nextstat.load_toys(path).toys) == 300
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1
    record = (len(whole) - header) // 300
    for at, expected in ((255, "1 to 256"), (256, "257 to 300"), (299, "257 to 300")):
        damaged = bytearray(whole)
        damaged[header + at * record + 12] ^= 4
        path.write_bytes(damaged)
        with pytest.raises(nextstat.ToyError, match=rf"a\.npy` is damaged: toys {expected} of it do not match their checksum"):
            nextstat.load_toys(path)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 256 * 4096, 256 * 4096 + 1, 3 * 256 * 4096])
def test_checksums_cover_all_records_in_few_blocks(n):
    records = np.zeros(n, dtype="|u1")
    checksums = _checksums.of(records)
    assert checksums["records_each"] == (256 if n <= 256 * 4096 else 512 if n <= 512 * 4096 else 1024)
    assert len(checksums["values"]) == -(-n // checksums["records_each"]) <= 4096
    _checksums.require_sound("a.npy", records, checksums)
