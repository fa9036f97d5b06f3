"""Archives of published likelihoods, such as those on HEPData: fetched and unpacked by Python's standard library."""

import io
import logging
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from .. import exceptions

log = logging.getLogger(__name__)

__all__ = ["download"]

_HOSTS = ("www.hepdata.net", "doi.org")
#: Seconds without an answer.
_PATIENCE = 60.0


def __dir__():
    return __all__


def download(archive_url, output_directory, force=False, compress=False):
    """Fetches an archive (tar or zip) and unpacks it into a folder; files that are there already are kept, but for those of the same names.

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
        Another host, without `force`.
    InvalidArchive
        An address that cannot be read, or does not answer with an archive, or an archive with paths that lead out of the folder.

    Examples
    --------
    >>> from nextstat.pyhf.contrib.utils import download
    >>> download("https://doi.org/10.17182/hepdata.90607.v3/r3", "1Lbb-likelihoods")  # doctest: +SKIP
    """
    address = urlsplit(archive_url)
    if address.netloc not in _HOSTS and not force:
        raise exceptions.InvalidArchiveHost(
            f"{address.netloc or archive_url} is not an approved archive host: {', '.join(_HOSTS)}\n"
            "To download an archive from this host use the --force option."
        )
    if address.scheme not in ("http", "https"):
        raise exceptions.InvalidArchive(f"{archive_url} is not an address that starts with `https://` or `http://`")
    content, target = _fetched(archive_url), Path(output_directory)
    files = {target: content} if compress else {target / path: data for path, data in _unpacked(content, archive_url)}
    _write(files, target.parent)


def _fetched(url):
    request = urllib.request.Request(url, headers={"User-Agent": "nextstat"})
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        raise exceptions.InvalidArchive(f"{url} gives a response code of {error.code}: the address may be wrong, or its host out of order") from None
    except OSError as error:
        raise exceptions.InvalidArchive(f"{url} cannot be read: {getattr(error, 'reason', error)}") from error


def _unpacked(content, url):
    """Paths in the folder and contents of the files of an archive; a folder that holds everything in a zip file is left out."""
    for members, unwraps in ((_of_tar, False), (_of_zip, True)):
        try:
            found = [(_inside(name, url), data) for name, data in members(content)]
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError):
            continue
        found = [(path, data) for path, data in found if path.parts[0] != "__MACOSX"]
        is_wrapped = unwraps and len({path.parts[0] for path, _ in found}) == 1 and all(len(path.parts) > 1 for path, _ in found)
        return [(PurePosixPath(*path.parts[1:]), data) for path, data in found] if is_wrapped else found
    raise exceptions.InvalidArchive(f"The archive downloaded from {url} is not a tarfile or a zipfile and so can not be opened as one.")


def _of_tar(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            # Links are left out: where they lead is not asked.
            if member.isfile():
                yield member.name, archive.extractfile(member).read()


def _of_zip(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                yield member.filename, archive.read(member)


def _inside(name, url):
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or not path.parts or ":" in path.parts[0]:
        raise exceptions.InvalidArchive(f"the archive from {url} has a file `{name}`, which lies outside of the archive's folder")
    return path


def _write(files, folder):
    """Writes files from bytes, once all of them have been written elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for i, data in enumerate(files.values()):
            (Path(scratch) / str(i)).write_bytes(data)
        for i, path in enumerate(files):
            path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(Path(scratch) / str(i), path)
            log.debug(path)
