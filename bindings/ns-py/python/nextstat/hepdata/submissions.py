"""A submission: its tables, its resources and its index, written whole or not at all."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import install_command, warn, with_hint
from .._files import write_whole
from .._nextstat import NextstatError, ParameterError, digest_of, require_sound_fit
from .._sources import document_bytes, file_of
from .records import Record, records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._results import Result
    from .._sources import Document

# The longest name of a table that HEPData takes.
_LONGEST = 64

# Keywords that HEPData knows.
_KEYWORDS = ("cmenergies", "observables", "reactions", "phrases")


class Submission:
    """What was written.

    Attributes
    ----------
    folder : Path
    archive : Path or None
    tables : tuple of str
        The names of the tables.
    """

    def __init__(self, folder: Path, archive: Path | None, tables: Sequence[str]) -> None:
        self.folder, self.archive, self.tables = folder, archive, tuple(tables)

    def __repr__(self) -> str:
        return f"Submission({str(self.folder)!r}, {len(self.tables)} tables)"


def submission(
    results: Mapping[str, Result | Document] | Sequence[Result | Document] | Result,
    folder: str | os.PathLike[str],
    *,
    workspace: Document | None = None,
    archive: str | os.PathLike[str] | None = None,
    comment: str = "",
    keywords: Mapping[str, Sequence[str | float]] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    force: bool = False,
) -> Submission:
    """Writes a submission to HEPData: a table for each result, and the workspace.

    Yields have a table for each region; a fit has its parameters, and correlations and covariance
    if it has them; limits and tests have their bands as errors, with a row for each patch of a
    grid; scans, rankings, significances and exclusion contours have one table each.

    Parameters
    ----------
    results : sequence or dict of results, paths, JSON texts or dictionaries
        Results, or the files that the command wrote. The keys of a dictionary tell tables of the
        same title apart.
    folder : path
        Where the files go; it must not exist, or be empty, or have the files of an earlier
        submission of the same tables of the same workspaces, which are replaced.
    workspace : path, JSON text or dict, optional
        The likelihood, which becomes an additional resource with its digest.
    archive : path, optional
        A file that ends in `.tar.gz`, `.tgz` or `.zip`, with the same contents, to upload.
    comment : str
        What applies to all tables, such as the abstract.
    keywords : dict, optional
        Of all tables: ``"cmenergies"``, ``"observables"``, ``"reactions"`` and ``"phrases"``.
    edges : dict, optional
        Edges of the bins of a region, by its name; bins without edges are numbered from 0.
    force : bool
        Replace a submission that has other tables or is of other workspaces, too.

    Returns
    -------
    Submission

    Raises
    ------
    ImportError
        If PyYAML is not installed.
    NextstatError
        If a result did not converge, has no tables or is damaged, or the folder has other files.

    Warns
    -----
    NextstatWarning
        If a result is not of this workspace.

    Examples
    --------
    >>> import nextstat, nextstat.hepdata
    >>> model = nextstat.load_workspace("examples/simple.json")
    >>> limits = nextstat.upper_limit(model)
    >>> made = nextstat.hepdata.submission([limits], "record", workspace="examples/simple.json")
    >>> made.tables, sorted(path.name for path in made.folder.iterdir())
    (('Upper limits',), ['submission.yaml', 'upper_limits.yaml', 'workspace.json'])
    """
    yaml = _yaml()
    target = Path(folder)
    _require_writable(target)
    named = _named(results)
    tables = _tables(named, dict(edges or {}))
    files: dict[str, bytes] = {}
    index: list[dict[str, Any]] = [{"comment": comment}]
    if workspace is not None:
        content = document_bytes(workspace)
        digest = digest_of(content, "sha256")
        _compare(named, digest)
        files["workspace.json"] = content
        described = f"Likelihood as a HistFactory workspace in JSON (pyhf); SHA-256 digest of its contents: {digest}"
        index[0]["additional_resources"] = [{"location": "workspace.json", "description": described, "type": "HistFactory"}]
    keys = [{"name": name, "values": list(values)} for name, values in _keywords(keywords).items()]
    for name, record in tables.items():
        file = _file_name(name, files)
        files[file] = yaml.safe_dump(record.data(), sort_keys=False, allow_unicode=True).encode()
        index.append({"name": name, "description": record.description, "keywords": keys, "data_file": file})
    files["submission.yaml"] = _origin(named) + yaml.safe_dump_all(index, sort_keys=False, allow_unicode=True).encode()
    if not force:
        _require_same_files(target, files)
    packed = None if archive is None else _packed(Path(archive), files)
    _write(target, files)
    if packed is not None:
        write_whole({Path(archive): packed})
    return Submission(target, None if archive is None else Path(archive), list(tables))


def _yaml():
    try:
        import yaml
    except ImportError as reason:
        raise ImportError(f"a submission to HEPData needs PyYAML: {install_command('hepdata')} ({reason})") from None
    return yaml


def _named(results) -> dict[str, Mapping[str, Any]]:
    """Returns the documents of results by a name that tells them apart."""
    if hasattr(results, "to_dict") or isinstance(results, (str, bytes, os.PathLike)) or (isinstance(results, Mapping) and "$schema" in results):
        results = [results]
    if isinstance(results, Mapping):
        pairs: Iterable[tuple[str, Any]] = results.items()
    else:
        pairs = [(_stem(result, number), result) for number, result in enumerate(results, 1)]
    found: dict[str, Mapping[str, Any]] = {}
    for name, result in pairs:
        if name in found:
            raise ParameterError(f"two results are called `{name}`")
        found[name] = _document(name, result)
    if not found:
        raise ParameterError("there is no result to submit")
    return found


def _stem(result, number):
    file = None if hasattr(result, "to_dict") else file_of(result) if isinstance(result, (str, os.PathLike)) else None
    return str(number) if file is None else Path(file).name.split(".")[0]


def _document(name, result):
    if hasattr(result, "to_dict"):
        return result.to_dict()
    try:
        text = document_bytes(result)
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, NextstatError):
            raise
        raise ParameterError(f"`{name}` is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ParameterError(f"`{name}` is not a result of nextstat")
    if str(found.get("$schema")).startswith("urn:nextstat:schema:fit:"):
        require_sound_fit(text)
    return found


def _tables(named: Mapping[str, Mapping[str, Any]], edges: dict[str, Any]) -> dict[str, Record]:
    """Returns all tables by their names, which are different."""
    found: list[tuple[str, Record]] = []
    for name, document in named.items():
        regions = {channel.get("channel") for channel in _channels(document)}
        of_document = {region: values for region, values in edges.items() if region in regions or not regions}
        try:
            found += [(name, record) for record in records(document, of_document if regions else {})]
        except NextstatError as error:
            attributed = type(error)(f"`{name}`: {error}")
            raise (attributed if error.hint is None else with_hint(attributed, error.hint)) from None
    every = {channel.get("channel") for document in named.values() for channel in _channels(document)}
    for region in edges:
        if region not in every:
            raise ParameterError(f"`edges` names the region `{region}`, which no result has")
    titles = [record.title for _, record in found]
    tables: dict[str, Record] = {}
    for name, record in found:
        title = record.title if titles.count(record.title) == 1 else f"{record.title} ({name})"
        title = number = _shortened(" ".join(title.split()))
        k = 1
        while number in tables:
            k += 1
            number = f"{title[: _LONGEST - 8]} ({k})"
        tables[number] = record
    return tables


def _shortened(title):
    return title if len(title) <= _LONGEST else title[: _LONGEST - 1] + "…"


def _channels(document) -> list[Mapping[str, Any]]:
    yields = document.get("yields")
    channels = document.get("channels") or (yields.get("channels") if isinstance(yields, Mapping) else None)
    return [channel for channel in channels if isinstance(channel, Mapping)] if isinstance(channels, list) else []


def _keywords(keywords) -> dict[str, Sequence[Any]]:
    found = dict(keywords or {})
    for name in found:
        if name not in _KEYWORDS:
            raise with_hint(ParameterError(f"HEPData has no keyword `{name}`"), f"there are {', '.join(_KEYWORDS)}")
    return found


def _compare(named, digest) -> None:
    """Warns of results of another workspace."""
    for name, document in named.items():
        provenance = document.get("provenance") or {}
        workspace = (provenance.get("grid") or provenance).get("workspace") or {}
        if workspace.get("digest", digest) != digest:
            warn(f"the result `{name}` is of a workspace with another digest, {workspace['digest']}")


def _file_name(title: str, taken: Mapping[str, Any]) -> str:
    """Returns a name of ASCII letters for the file of a table."""
    stem = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_") or "table"
    name, k = f"{stem}.yaml", 1
    while name in taken or name == "submission.yaml":
        k += 1
        name = f"{stem}_{k}.yaml"
    return name


def _require_writable(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"`{folder}` is a file, and a submission is a folder")
    if folder.is_dir():
        others = [path for path in folder.iterdir() if path.suffix != ".yaml" and path.name != "workspace.json"]
        is_ours = (folder / "submission.yaml").is_file() and not others
        if any(folder.iterdir()) and not is_ours:
            raise with_hint(ParameterError(f"the folder `{folder}` has other files"), "name a new folder")


def _origin(named) -> bytes:
    """Returns a comment that says of which workspaces the results are."""
    provenances = [document.get("provenance") or {} for document in named.values()]
    workspaces = [(provenance.get("grid") or provenance).get("workspace") or {} for provenance in provenances]
    digests = sorted({str(workspace["digest"]) for workspace in workspaces if workspace.get("digest")})
    return f"# results of workspaces with the SHA-256 digests: {' '.join(digests) or 'none'}\n".encode()


def _require_same_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Refuses to replace another submission: one with other files, or of other workspaces."""
    others = sorted(path.name for path in folder.iterdir() if path.name not in files) if folder.is_dir() else []
    index = folder / "submission.yaml"
    if others:
        message = f"the folder `{folder}` has another submission, with the file `{others[0]}`"
    elif index.is_file() and index.read_bytes().splitlines()[:1] != files["submission.yaml"].splitlines()[:1]:
        message = f"the folder `{folder}` has another submission, of other workspaces"
    else:
        return
    raise with_hint(ParameterError(message), "name a new folder, or replace the submission with `--force` (`force=True` in Python)")


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files into a folder of their own, which then takes the place of `folder`."""
    folder = Path(os.path.realpath(folder))
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name[:80]}."))
    try:
        part.chmod(0o755)
        for name, content in files.items():
            (part / name).write_bytes(content)
        if folder.is_dir():
            shutil.rmtree(folder)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _packed(archive: Path, files: Mapping[str, bytes]) -> bytes:
    """Returns an archive, the same bytes for the same files."""
    out = io.BytesIO()
    if archive.suffix == ".zip":
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in files.items():
                packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    elif archive.name.endswith((".tar.gz", ".tgz")):
        with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as packed:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))
    else:
        raise ParameterError(f"`{archive}` is not an archive that HEPData reads: its name ends in `.tar.gz`, `.tgz` or `.zip`")
    return out.getvalue()
