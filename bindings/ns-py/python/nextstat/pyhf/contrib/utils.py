"""Archives of published likelihoods, such as those on HEPData: fetched and unpacked by Python's
standard library.
"""

import functools
import http.client
import logging
import lzma
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from .. import exceptions

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = ["download"]

_HOSTS = ("www.hepdata.net", "doi.org")
#: Seconds without an answer.
_PATIENCE = 60.0
#: Bytes of an archive, and of all that is in it, its files, and the bytes of a name that file
#: systems have room for.
LARGEST_ARCHIVE = 1 << 30
LARGEST_CONTENT = 4 << 30
MOST_FILES = 100_000
LONGEST_NAME = 255
_NOT_AN_ARCHIVE = (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error, lzma.LZMAError)


def __dir__():
    return __all__


def download(archive_url, output_directory, force=False, compress=False):
    """Fetches an archive (tar or zip) and unpacks it into a folder; files that are there already
    are kept, but for those of the same names.

    Parameters
    ----------
    archive_url : str
    output_directory : path
        The folder, or with `compress` the file.
    force : bool
        From any host, rather than from HEPData and doi.org only.
    compress : bool
        Keep the archive as it is.

    Raises
    ------
    InvalidArchiveHost
        Another host, without `force`; redirects count.
    InvalidArchive
        An address that cannot be read, or does not answer with an archive; an archive with paths
        that lead out of the folder, without files, encrypted, of more than 1 GiB, or of more than 4
        GiB when unpacked.

    Examples
    --------
    >>> from nextstat.pyhf.contrib.utils import download
    >>> download(
    ...     "https://doi.org/10.17182/hepdata.90607.v3/r3", "1Lbb-likelihoods"
    ... )  # doctest: +SKIP
    """
    target = Path(output_directory)
    # Beside the target, and nothing of it is left if the archive cannot be used.
    with tempfile.TemporaryDirectory(dir=_existing(target.parent)) as scratch:
        archive = Path(scratch) / "archive"
        with archive.open("wb") as file:
            _fetch(archive_url, force, file)
        files = {target: archive} if compress else _unpacked(archive, Path(scratch), target, archive_url)
        _move(files)


def _existing(folder):
    """Returns the folder, or the nearest one above it that exists."""
    folder = folder.absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.is_dir())


def _check_address(url, force):
    try:
        address = urlsplit(url)
    except ValueError as error:
        raise exceptions.InvalidArchive(f"{url} is not an address: {error}") from None
    if address.netloc not in _HOSTS and not force:
        raise exceptions.InvalidArchiveHost(
            f"{address.netloc or url} is not an approved archive host: {', '.join(_HOSTS)}\n"
            "To download an archive from this host use the --force option."
        )
    if address.scheme not in ("http", "https"):
        raise exceptions.InvalidArchive(f"{url} is not an address that starts with `https://` or `http://`")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to hosts that may be asked, and to no other protocols."""

    def __init__(self, force):
        self._force = force

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        _check_address(newurl, self._force)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetch(url, force, file):
    """Writes what is at `url` to `file`."""
    _check_address(url, force)
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "nextstat"})
        with urllib.request.build_opener(_Redirects(force)).open(request, timeout=_PATIENCE) as answer:
            announced, n_bytes = answer.length, _copy(answer, file, LARGEST_ARCHIVE, url)
    except urllib.error.HTTPError as error:
        raise exceptions.InvalidArchive(f"{url} gives a response code of {error.code}: the address may be wrong, or its host out of order") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise exceptions.InvalidArchive(f"{url} cannot be read: {reason}") from error
    if announced is not None and n_bytes < announced:
        raise exceptions.InvalidArchive(f"{url} cannot be read: the connection ended after {n_bytes} of {announced} bytes")


def _copy(source, file, limit, url):
    """Copies at most `limit` bytes, and returns how many there were."""
    n_bytes = 0
    while block := source.read(1 << 20):
        n_bytes += len(block)
        if n_bytes > limit:
            raise exceptions.InvalidArchive(f"the archive from {url} is too large: at most {limit >> 20} MiB are read")
        file.write(block)
    return n_bytes


def _unpacked(archive, scratch, target, url):
    """Returns the files of an archive, unpacked to `scratch`, by where they go; a folder that holds
    everything in a zip file is left out.
    """
    for members, unwraps in ((_of_tar, False), (_of_zip, True)):
        try:
            found = _extracted(members(archive), scratch, url)
        except _NOT_AN_ARCHIVE:
            continue
        is_wrapped = unwraps and len({path.parts[0] for path in found}) == 1 and all(len(path.parts) > 1 for path in found)
        files = {PurePosixPath(*path.parts[1:]) if is_wrapped else path: part for path, part in found.items()}
        _check_paths(files, target, url)
        return {target / path: part for path, part in files.items()}
    raise exceptions.InvalidArchive(f"The archive downloaded from {url} is not a tarfile or a zipfile and so can not be opened as one.")


def _extracted(members, scratch, url):
    """Returns paths and unpacked files; of files of one name the last one counts."""
    found, left = {}, LARGEST_CONTENT
    for i, (name, opened) in enumerate(members):
        path = _inside(name, url)
        if i == MOST_FILES:
            raise exceptions.InvalidArchive(f"the archive from {url} has more than {MOST_FILES} files")
        if path.parts[0] == "__MACOSX":
            continue
        part = scratch / str(i)
        try:
            with opened() as source, part.open("wb") as file:
                left -= _copy(source, file, left, url)
        except (RuntimeError, NotImplementedError, zlib.error, lzma.LZMAError) as error:
            raise exceptions.InvalidArchive(f"`{name}` in the archive from {url} cannot be unpacked: {error}") from None
        found[path] = part
    if not found:
        raise exceptions.InvalidArchive(f"the archive from {url} has no files")
    return found


def _of_tar(archive):
    with tarfile.open(archive) as opened:
        for member in opened:
            # Links are left out: where they lead is not asked.
            if member.isfile():
                yield member.name, functools.partial(opened.extractfile, member)


def _of_zip(archive):
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if not member.is_dir():
                yield member.filename, functools.partial(opened.open, member)


def _inside(name, url):
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts or ":" in path.parts[0]:
        raise exceptions.InvalidArchive(f"the archive from {url} has a file `{name}`, which lies outside of the archive's folder")
    if "\0" in name or any(len(os.fsencode(part)) > LONGEST_NAME for part in path.parts):
        raise exceptions.InvalidArchive(f"the archive from {url} has a file `{name[:60]}…`, whose name no folder can have")
    return path


def _check_paths(files, target, url):
    """Refuses files that are folders, too, of the archive or already there: nothing has been moved
    yet.
    """
    for path in files:
        above = [parent for parent in path.parents if parent.parts]
        if any(parent in files for parent in above) or any((target / parent).is_file() for parent in above) or (target / path).is_dir():
            raise exceptions.InvalidArchive(f"`{path}` in the archive from {url} is a file in one place and a folder in another")


def _move(files):
    """Moves files to their places once all of them have been written."""
    for part in files.values():
        with part.open("rb+") as file:
            os.fsync(file.fileno())
    for path, part in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(part, path)
        log.debug(path)
