"""Published likelihoods are fetched whole, checked and resumed: against a server on the loopback
interface."""

import gzip
import hashlib
import http.server
import io
import json
import os
import sys
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import fetch_data

BODY = bytes(range(256)) * 1000


class Server(http.server.ThreadingHTTPServer):
    """Serves `files` (path to bytes), resumes, and breaks the first transfers of the paths in
    `truncated` off."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.truncated, self.asked = {}, {}, []
        self.resumes = True

    def url(self, path):
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        served = self.server
        served.asked.append((self.path, self.headers.get("Range"), self.headers.get("Accept")))
        if self.path not in served.files:
            self.send_error(404)
            return
        body = served.files[self.path]
        start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if self.headers["Range"] and served.resumes else 0
        if start >= len(body) and start:
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        left = served.truncated.get(self.path, 0)
        served.truncated[self.path] = left - 1
        self.wfile.write(body[start : start + 1000] if left > 0 else body[start:])

    def log_message(self, *words):
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def run(tmp_path, server, capsys):
    """Fetches files, given as (path, body, sources), into a folder; returns the exit code and what
    was written."""

    def fetch(files, *options):
        entries = [
            {"path": path, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), "sources": sources} for path, body, sources in files
        ]
        manifest = tmp_path / "manifest.json"
        manifest.write_text(json.dumps({"files": entries}))
        code = fetch_data.main([str(tmp_path / "data"), "--manifest", str(manifest), *options])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    fetch.folder = tmp_path / "data"
    return fetch


def left_over(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file()) if folder.exists() else []


def test_a_file_is_fetched(run, server):
    server.files["/a.json"] = BODY
    code, out, err = run([("workspaces/a.json", BODY, [{"url": server.url("/a.json")}])])
    assert (code, err) == (0, "") and "fetched from" in out
    assert (run.folder / "workspaces/a.json").read_bytes() == BODY
    assert left_over(run.folder) == ["a.json"]


def test_a_file_that_is_there_is_not_fetched_again(run, server):
    server.files["/a.json"] = BODY
    wanted = [("a.json", BODY, [{"url": server.url("/a.json")}])]
    run(wanted)
    code, out, _ = run(wanted)
    assert code == 0 and "is there" in out and len(server.asked) == 1


def test_a_damaged_file_is_replaced(run, server):
    server.files["/a.json"] = BODY
    run.folder.mkdir()
    (run.folder / "a.json").write_bytes(BODY[:-1])
    code, _, _ = run([("a.json", BODY, [{"url": server.url("/a.json")}])])
    assert code == 0 and (run.folder / "a.json").read_bytes() == BODY


def test_a_compressed_file_is_left_alone(run, server):
    run.folder.mkdir()
    (run.folder / "a.json.zst").write_bytes(b"compressed")
    code, out, _ = run([("a.json", BODY, [])])
    assert code == 0 and "not checked" in out and not (run.folder / "a.json").exists()


@pytest.mark.parametrize("served", [BODY[:-1] + b"x", BODY[:-1], BODY + b"x"], ids=["other", "shorter", "longer"])
def test_wrong_bytes_are_refused(run, server, served):
    server.files["/a.json"] = served
    code, _, err = run([("a.json", BODY, [{"url": server.url("/a.json")}])])
    assert code == 1 and "other bytes than the manifest's" in err
    assert left_over(run.folder) == []


def test_a_missing_file_is_an_error_and_the_others_are_fetched(run, server):
    server.files["/b.json"] = BODY
    code, out, err = run([("a.json", BODY, [{"url": server.url("/a.json")}]), ("b.json", BODY, [{"url": server.url("/b.json")}])])
    assert code == 1 and "a.json" in err and "404" in err and "b.json: fetched" in out
    assert left_over(run.folder) == ["b.json"]


def test_the_next_source_is_tried(run, server):
    server.files |= {"/wrong.json": b"{}", "/right.json": BODY}
    sources = [{"url": server.url(path)} for path in ("/absent.json", "/wrong.json", "/right.json")]
    code, out, _ = run([("a.json", BODY, sources)])
    assert code == 0 and "/right.json" in out


def test_a_transfer_that_breaks_off_is_resumed(run, server):
    server.files["/a.json"], server.truncated["/a.json"] = BODY, 2
    code, _, _ = run([("a.json", BODY, [{"url": server.url("/a.json")}])])
    assert code == 0 and (run.folder / "a.json").read_bytes() == BODY
    assert [range_ for _, range_, _ in server.asked] == [None, "bytes=1000-", "bytes=2000-"]


def test_a_transfer_is_resumed_by_the_next_run(run, server):
    server.files["/a.json"], server.truncated["/a.json"] = BODY, fetch_data.ATTEMPTS
    wanted = [("a.json", BODY, [{"url": server.url("/a.json")}])]
    code, _, err = run(wanted)
    assert code == 1 and "broke off" in err and not (run.folder / "a.json").exists()
    code, _, _ = run(wanted)
    assert code == 0 and server.asked[-1][1] == "bytes=3000-"
    assert left_over(run.folder) == ["a.json"]


def test_a_server_that_does_not_resume_sends_everything(run, server):
    server.files["/a.json"], server.truncated["/a.json"], server.resumes = BODY, 1, False
    code, _, _ = run([("a.json", BODY, [{"url": server.url("/a.json")}])])
    assert code == 0 and (run.folder / "a.json").read_bytes() == BODY


def test_a_partial_file_that_is_too_long_is_dropped(run, server):
    server.files["/a.json"] = BODY
    url = server.url("/a.json")
    partial = run.folder / ".partial" / hashlib.sha256(url.encode()).hexdigest()
    partial.parent.mkdir(parents=True)
    partial.write_bytes(BODY * 2)
    code, _, _ = run([("a.json", BODY, [{"url": url}])])
    assert code == 0 and (run.folder / "a.json").read_bytes() == BODY


def tar_of(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, body in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def zip_of(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return packed.getvalue()


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_members_of_an_archive_are_fetched_with_one_request(run, server, pack):
    server.files["/r3"] = pack({"./likelihoods/README.md": b"read", "./likelihoods/BkgOnly.json": BODY, "./likelihoods/patchset.json": b"[]"})
    source = {"url": server.url("/r3"), "accept": "application/x-tar"}
    wanted = [("w/a.json", BODY, [{**source, "member": "BkgOnly.json"}]), ("w/a.patchset.json", b"[]", [{**source, "member": "patchset.json"}])]
    code, _, err = run(wanted)
    assert (code, err) == (0, "")
    assert left_over(run.folder) == ["a.json", "a.patchset.json"]
    assert server.asked == [("/r3", None, "application/x-tar")]


def test_a_member_that_is_absent_is_named(run, server):
    server.files["/r3"] = tar_of({"other.json": BODY})
    code, _, err = run([("a.json", BODY, [{"url": server.url("/r3"), "member": "BkgOnly.json"}])])
    assert code == 1 and "no member `BkgOnly.json`" in err


def test_a_page_in_place_of_an_archive_is_an_error(run, server):
    server.files["/r3"] = b"<html>please log in</html>"
    code, _, err = run([("a.json", BODY, [{"url": server.url("/r3"), "member": "BkgOnly.json"}])])
    assert code == 1 and "cannot be unpacked" in err and left_over(run.folder) == []


def test_a_link_in_an_archive_is_not_followed(run, server):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("BkgOnly.json")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(entry)
    server.files["/r3"] = packed.getvalue()
    code, _, err = run([("a.json", BODY, [{"url": server.url("/r3"), "member": "BkgOnly.json"}])])
    assert code == 1 and "no member" in err


def test_a_compressed_source_is_unpacked(run, server):
    server.files["/a.json.gz"] = gzip.compress(BODY)
    code, _, _ = run([("a.json", BODY, [{"url": server.url("/a.json.gz"), "gzip": True}])])
    assert code == 0 and (run.folder / "a.json").read_bytes() == BODY


def test_a_mirror_replaces_the_sources(run, server):
    server.files["/mirror/workspaces/a.json"] = BODY
    code, _, _ = run([("workspaces/a.json", BODY, [{"url": "https://invalid.example/a"}])], "--base-url", server.url("/mirror/"))
    assert code == 0 and [path for path, _, _ in server.asked] == ["/mirror/workspaces/a.json"]


def test_an_unknown_name_is_refused(run, capsys):
    with pytest.raises(SystemExit) as stopped:
        run([("a.json", BODY, [])], "--only", "b")
    assert stopped.value.code == 2 and "unknown file `b`" in capsys.readouterr().err


def test_a_path_that_leads_out_of_the_folder_is_refused(run):
    with pytest.raises(fetch_data.FetchError, match="leads out"):
        run([("../a.json", BODY, [])])


def test_the_manifest_is_complete():
    files = fetch_data.read_manifest(fetch_data.MANIFEST)
    assert len(files) == len({file.path for file in files}) == 19
    for file in files:
        assert len(file.sha256) == 64 and file.bytes > 0 and file.sources
        assert all(source.url.startswith("https://") for source in file.sources)


def test_the_published_files_here_have_the_manifests_checksums():
    folder = Path(os.environ.get("NEXTSTAT_DATA", fetch_data.ROOT / "../shared/data"))
    here = [file for file in fetch_data.read_manifest(fetch_data.MANIFEST) if (folder / file.path).is_file()]
    if not here:
        pytest.skip("no published workspaces")
    assert [file.path for file in here if fetch_data.sha256(folder / file.path) != file.sha256] == []
