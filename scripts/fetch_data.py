#!/usr/bin/env python3
"""Fetches published likelihoods by DOI or URL and checks each against a pinned SHA-256.

    fetch_data.py FOLDER [--only NAME ...] [--base-url URL] [--manifest scripts/published.json] [--list]

Files that are there with the right bytes are left alone. A download that breaks off is resumed, in
this run or the next; a file appears under its name only when it is whole and its checksum is right.
Sources are tried in the manifest's order; `--base-url` replaces them by a mirror with the layout of
FOLDER. Exit code 1: a file could not be fetched. Standard library only.
"""

import argparse
import dataclasses
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
MANIFEST = ROOT / "scripts/published.json"
# Requests for one download; each resumes where the last broke off.
ATTEMPTS = 3
TIMEOUT = 60.0
CHUNK = 1 << 16
# More than any archive of likelihoods has; a server that sends without end is cut off.
MOST_BYTES = 1 << 30


class FetchError(Exception):
    """A source that did not give the file; the message says why."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A place that has a file: as it is, compressed with gzip, or as a member of an archive."""

    url: str
    member: str | None = None
    gzip: bool = False
    accept: str | None = None


@dataclasses.dataclass(frozen=True)
class Published:
    """A file of the manifest."""

    path: str
    bytes: int
    sha256: str
    sources: tuple[Source, ...]

    @property
    def name(self):
        return pathlib.PurePosixPath(self.path).name.removesuffix(".json")


def read_manifest(path):
    """Returns the files of a manifest; refuses paths that lead out of the folder."""
    files = []
    for entry in json.loads(path.read_text("utf-8"))["files"]:
        parts = pathlib.PurePosixPath(entry["path"])
        if parts.is_absolute() or ".." in parts.parts:
            raise FetchError(f"`{entry['path']}` in `{path}` leads out of the folder")
        sources = tuple(Source(**source) for source in entry["sources"])
        files.append(Published(entry["path"], entry["bytes"], entry["sha256"], sources))
    return files


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(CHUNK):
            digest.update(block)
    return digest.hexdigest()


def download(source, partial):
    """Downloads `source` to `partial`, from where an earlier download broke off."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return request(source, partial)
        except urllib.error.HTTPError as error:
            if error.code == 416 and partial.exists():
                # There is nothing beyond what we have, or the file is another one now.
                partial.unlink()
            elif error.code < 500 or attempt == ATTEMPTS:
                raise FetchError(f"{source.url}: {error.code} {error.reason}") from error
        except (OSError, http.client.HTTPException) as error:
            if attempt == ATTEMPTS:
                raise FetchError(f"{source.url}: {getattr(error, 'reason', None) or error}") from error
    raise FetchError(f"{source.url}: the server refuses to resume")


def request(source, partial):
    """Makes one request and appends what it gives; raises an error of the connection where that is
    not all."""
    have = partial.stat().st_size if partial.exists() else 0
    headers = {"User-Agent": "nextstat-fetch-data", "Accept": source.accept or "*/*"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with urllib.request.urlopen(urllib.request.Request(source.url, headers=headers), timeout=TIMEOUT) as answer:
        # A server that does not resume sends everything again.
        resumed = answer.status == 206
        length = answer.headers.get("Content-Length")
        size = have if resumed else 0
        whole = None if length is None else size + int(length)
        with open(partial, "ab" if resumed else "wb") as file:
            while block := answer.read(CHUNK):
                size += file.write(block)
                if size > MOST_BYTES:
                    raise FetchError(f"{source.url}: more than {MOST_BYTES} bytes")
    if whole is not None and size < whole:
        raise ConnectionError(f"the transfer broke off after {size} of {whole} bytes")


def content(source, downloaded, limit):
    """Returns up to `limit` bytes of the file that `source` means."""
    if source.member is not None:
        return archive_member(downloaded, source.member, limit)
    if source.gzip:
        with gzip.open(downloaded) as file:
            return file.read(limit)
    with open(downloaded, "rb") as file:
        return file.read(limit)


def archive_member(path, member, limit):
    """Returns up to `limit` bytes of a member; archives may put everything into a folder of their
    own."""

    def is_wanted(name):
        return name == member or name.endswith(f"/{member}")

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in filter(is_wanted, archive.namelist()):
                with archive.open(name) as file:
                    return file.read(limit)
    else:
        with tarfile.open(path) as archive:
            for entry in archive:
                if entry.isfile() and is_wanted(entry.name):
                    return archive.extractfile(entry).read(limit)
    raise FetchError(f"the archive has no member `{member}`")


def fetch_from(source, wanted, target, partials):
    """Writes `wanted` to `target` from one source."""
    partial = partials / hashlib.sha256(source.url.encode()).hexdigest()
    if not partial.with_suffix(".whole").exists():
        download(source, partial)
        partial.rename(partial.with_suffix(".whole"))
    whole = partial.with_suffix(".whole")
    try:
        found = content(source, whole, wanted.bytes + 1)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError) as error:
        whole.unlink()
        raise FetchError(f"{source.url}: cannot be unpacked: {error}") from error
    except FetchError as error:
        raise FetchError(f"{source.url}: {error}") from error
    digest = hashlib.sha256(found).hexdigest()
    if len(found) != wanted.bytes or digest != wanted.sha256:
        whole.unlink()
        size = f"more than {wanted.bytes}" if len(found) > wanted.bytes else len(found)
        raise FetchError(f"{source.url}: other bytes than the manifest's: {size} of {wanted.bytes} bytes, SHA-256 {digest}")
    write_whole(target, found)


def write_whole(target, found):
    """Writes a file that is whole or not there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".fetching-", delete=False) as file:
        try:
            file.write(found)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def fetch(wanted, folder, base_url):
    """Brings one file into `folder`; returns what was done."""
    target = folder / wanted.path
    if target.is_file() and sha256(target) == wanted.sha256:
        return "is there"
    if target.with_name(f"{target.name}.zst").is_file():
        return "is there, compressed; not checked"
    sources = wanted.sources
    if base_url is not None:
        sources = (Source(f"{base_url.rstrip('/')}/{wanted.path}"),)
    partials = folder / ".partial"
    partials.mkdir(parents=True, exist_ok=True)
    reasons = []
    for source in sources:
        try:
            fetch_from(source, wanted, target, partials)
            return f"fetched from {source.url}"
        except FetchError as error:
            reasons.append(str(error))
    raise FetchError("; ".join(reasons) or "no source is known")


def clean(folder):
    """Removes downloads that served their purpose; what broke off stays, to be resumed."""
    partials = folder / ".partial"
    if partials.is_dir():
        for whole in partials.glob("*.whole"):
            whole.unlink()
        if not any(partials.iterdir()):
            partials.rmdir()


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="where the files are written")
    parser.add_argument("--only", action="append", metavar="NAME", help="fetch this file (`atlas_1lbb`); repeatable")
    parser.add_argument("--base-url", help="a mirror that has the files as the folder will have them")
    parser.add_argument("--manifest", type=pathlib.Path, default=MANIFEST, help="the list of files")
    parser.add_argument("--list", action="store_true", help="list the files and fetch nothing")
    arguments = parser.parse_args(words)
    files = read_manifest(arguments.manifest)
    if unknown := set(arguments.only or ()) - {file.name for file in files}:
        parser.error(f"unknown file `{sorted(unknown)[0]}`; --list shows the names")
    failed = 0
    for wanted in files:
        if arguments.only and wanted.name not in arguments.only:
            continue
        if arguments.list:
            print(f"{wanted.name}\t{wanted.bytes}\t{wanted.sources[0].url if wanted.sources else 'no source is known'}")
            continue
        try:
            print(f"{wanted.path}: {fetch(wanted, arguments.folder, arguments.base_url)}", flush=True)
        except (FetchError, OSError) as error:
            print(f"error: {wanted.path}: {error}", file=sys.stderr)
            failed += 1
    if not arguments.list:
        clean(arguments.folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
