"""Archives are fetched from approved hosts, unpacked into their folder, and nowhere else."""

import functools
import http.server
import io
import tarfile
import threading
import zipfile

import pytest
from nextstat.pyhf.contrib.utils import download
from nextstat.pyhf.exceptions import InvalidArchive, InvalidArchiveHost


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


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


ARCHIVES = {
    "flat.tar.gz": tar("BkgOnly.json", "more/patchset.json"),
    "flat.zip": zipped("BkgOnly.json", "more/patchset.json"),
    "folder.zip": zipped("likelihoods/BkgOnly.json", "likelihoods/more/patchset.json", "__MACOSX/x"),
    "outside.tar.gz": tar("good.json", "../bad.json"),
    "outside.zip": zipped("good.json", "../bad.json"),
    "page": b"<html>",
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


@pytest.mark.parametrize(("name", "message"), [("outside.tar.gz", "outside"), ("outside.zip", "outside"), ("page", "not a tarfile"), ("nowhere", "404")])
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
