"""Archives are fetched from approved hosts, unpacked into their folder, and nowhere else."""

import functools
import http.server
import io
import tarfile
import threading
import zipfile

import pytest
from nextstat.pyhf.contrib import utils
from nextstat.pyhf.contrib.utils import download
from nextstat.pyhf.exceptions import InvalidArchive, InvalidArchiveHost


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path[len("/to/") :])
            self.end_headers()
        elif self.path == "/broken":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"PK")
            self.close_connection = True
        elif self.path == "/chunks":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"10\r\nPK")
            self.close_connection = True
        elif self.path == "/noise":
            self.wfile.write(b"noise\r\n\r\n")
        else:
            super().do_GET()


def tar(*names):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 2
            archive.addfile(member, io.BytesIO(b"{}"))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return content.getvalue()


def zipped(*names):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    return content.getvalue()


def locked():
    """An archive that says that it is encrypted."""
    content = bytearray(zipped("secret.json"))
    content[content.index(b"PK\3\4") + 6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    return bytes(content)


ARCHIVES = {
    "flat.tar.gz": tar("BkgOnly.json", "more/patchset.json"),
    "flat.zip": zipped("BkgOnly.json", "more/patchset.json"),
    "folder.zip": zipped("likelihoods/BkgOnly.json", "likelihoods/more/patchset.json", "__MACOSX/x"),
    "outside.tar.gz": tar("good.json", "../bad.json"),
    "outside.zip": zipped("good.json", "../bad.json"),
    "page": b"<html>",
    "links.tar.gz": tar(),
    "empty.zip": zipped(),
    "twice.tar.gz": tar("a", "a/b"),
    "twice.zip": zipped("good.json", "a/b", "a"),
    "long.tar.gz": tar("x" * 300),
    "long.zip": zipped("x" * 300),
    "locked.zip": locked(),
    "many.zip": zipped(*(f"{i}.json" for i in range(20))),
    "cut.tar.gz": tar("good.json")[:90],
}


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    for name, content in ARCHIVES.items():
        (folder / name).write_bytes(content)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@pytest.mark.parametrize("name", ["flat.tar.gz", "flat.zip", "folder.zip"])
def test_archives_are_unpacked(name, host, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/old.txt").write_text("kept")
    download(f"{host}/{name}", tmp_path / "out", force=True)
    assert files(tmp_path / "out") == ["BkgOnly.json", "more/patchset.json", "old.txt"]


def test_archives_can_be_kept_as_they_are(host, tmp_path):
    download(f"{host}/flat.zip", tmp_path / "a.zip", force=True, compress=True)
    assert (tmp_path / "a.zip").read_bytes() == ARCHIVES["flat.zip"]


FAULTS = [
    ("broken", "ended after 2 of 1000 bytes|IncompleteRead"),
    ("chunks", "cannot be read"),
    ("noise", "cannot be read"),
    ("links.tar.gz", "has no files"),
    ("empty.zip", "has no files"),
    ("twice.tar.gz", "a file in one place and a folder in another"),
    ("twice.zip", "a file in one place and a folder in another"),
    ("long.tar.gz", "whose name no folder can have"),
    ("long.zip", "whose name no folder can have"),
    ("locked.zip", "secret.json.* cannot be unpacked: .*encrypted"),
    ("cut.tar.gz", "not a tarfile"),
    ("to/ftp://127.0.0.1/a.zip", "starts with `https://`"),
    ("to/file:///etc/passwd", "response code of 302"),
]


@pytest.mark.parametrize(("name", "message"), [("outside.tar.gz", "outside"), ("outside.zip", "outside"), ("page", "not a tarfile"), ("nowhere", "404"), *FAULTS])
def test_bad_archives_leave_nothing_behind(name, message, host, tmp_path):
    with pytest.raises(InvalidArchive, match=message):
        download(f"{host}/{name}", tmp_path / "out", force=True)
    assert list(tmp_path.iterdir()) == []


def test_other_hosts_need_force(tmp_path):
    with pytest.raises(InvalidArchiveHost, match=r"127.0.0.1:1 .*\n.*--force"):
        download("http://127.0.0.1:1/a.zip", tmp_path / "out")
    with pytest.raises(InvalidArchive, match="cannot be read"):
        download("http://127.0.0.1:1/a.zip", tmp_path / "out", force=True)
    with pytest.raises(InvalidArchive, match="https://"):
        download("file:///etc/passwd", tmp_path / "out", force=True)
    with pytest.raises(InvalidArchive, match="is not an address"):
        download("http://[::1", tmp_path / "out", force=True)
    with pytest.raises(InvalidArchive, match="cannot be read"):
        download("http://127.0.0.1:port/", tmp_path / "out", force=True)


def test_redirects_need_force_too(host, monkeypatch, tmp_path):
    approved = host.removeprefix("http://")
    monkeypatch.setattr(utils, "_HOSTS", (approved,))
    download(f"{host}/to/{host}/flat.zip", tmp_path / "out")
    assert files(tmp_path / "out") == ["BkgOnly.json", "more/patchset.json"]
    with pytest.raises(InvalidArchiveHost, match="localhost"):
        download(f"{host}/to/{host.replace('127.0.0.1', 'localhost')}/flat.zip", tmp_path / "out")


@pytest.mark.parametrize(("limit", "name", "message"), [("LARGEST_ARCHIVE", "flat.zip", "too large"), ("LARGEST_CONTENT", "many.zip", "too large"), ("MOST_FILES", "many.zip", "more than 10 files")])
def test_archives_are_limited(limit, name, message, host, monkeypatch, tmp_path):
    monkeypatch.setattr(utils, limit, 10)
    with pytest.raises(InvalidArchive, match=message):
        download(f"{host}/{name}", tmp_path / "out", force=True)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_folders_there_are_refused_before_anything_is_written(host, tmp_path):
    (tmp_path / "out/BkgOnly.json").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/more").write_text("a file")
    for folder, before in (("out", []), ("other", ["more"])):
        with pytest.raises(InvalidArchive, match="a file in one place"):
            download(f"{host}/flat.zip", tmp_path / folder, force=True)
        assert files(tmp_path / folder) == before
