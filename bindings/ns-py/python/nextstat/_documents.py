"""Documents: what is in a workspace, what is wrong with it, digests, patches, and sets of patches.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

from . import _nextstat
from ._arguments import card_options, count, require_model, settings, text
from ._errors import NextstatWarning, shown, warn
from ._keywords import hinted
from ._models import choice_of
from ._nextstat import Model, NextstatError, RawPatchSet, escape
from ._progress import first_done, progress_of
from ._results import CheckResult, GridResult, InspectResult
from ._results.documents import is_bad
from ._sources import document_bytes, file_of, json_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ._arguments import Interpolation, Poi
    from ._progress import Progress
    from ._sources import Document

__all__ = ["PatchSet", "apply_patch", "check", "convert", "digest", "every_patch", "inspect", "json_schema", "write_xml"]


@hinted
def inspect(workspace: Model | Document, *, measurement: str | None = None) -> InspectResult:
    """Returns what a workspace contains: counts, channels, samples, parameters, measurements.

    `workspace` is a model, a path, JSON text or a dictionary.

    Examples
    --------
    >>> import nextstat
    >>> found = nextstat.inspect("examples/simple.json")
    >>> found.channels, found.summary["parameters"]
    ((('singlechannel', 2),), 2)
    """
    if isinstance(workspace, Model):
        return InspectResult(workspace._inspect())
    wanted = None if measurement is None else text("measurement", measurement)
    return InspectResult(_nextstat.inspect_workspace(document_bytes(workspace), wanted))


def check(
    model: Model,
    *,
    blind: str | Sequence[str] = (),
    blind_above: float | None = None,
    blind_by: str | None = None,
) -> CheckResult:
    """Returns what makes a model wrong, before a fit does: one-sided and kinked systematics, empty
    bins, unused settings, degenerate parameters.

    Findings have the counts of channels whose data are far from what is expected; `blind`,
    `blind_above` and `blind_by` hide data as in `yields`.

    Examples
    --------
    >>> import json, nextstat
    >>> with open("examples/simple.json") as file:
    ...     workspace = json.load(file)
    >>> workspace["channels"][0]["samples"][0]["data"][1] = -1.0
    >>> found = nextstat.check(nextstat.model_of(workspace))
    >>> found.n_errors, [finding["code"] for finding in found.findings]
    (0, ['negative_yield'])
    """
    require_model(model)
    # Everything may be hidden: nothing is fitted.
    given = settings(model, "cpu", blind=blind, blind_above=blind_above, blind_by=blind_by, fit_blinded=True)
    return CheckResult(_nextstat.check_model(model, given))


def digest(document: Document, algorithm: str = "sha256") -> str:
    """Returns the digest of a document, as patch sets carry it and pyhf computes it.

    `document` is a path, JSON text or a dictionary; `algorithm` is ``"sha256"`` or ``"md5"``.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.digest({"b": 1, "a": 2})[:16]
    '21501dbaf73f5223'
    """
    return _nextstat.digest_of(document_bytes(document), text("algorithm", algorithm))


@hinted
def convert(
    document: Document,
    to: str,
    *,
    measurement: str | None = None,
    mass: float | None = None,
    physics_model: str | None = None,
    model_options: str | Sequence[str] = (),
    keywords: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Returns a workspace in another format.

    `document` is a path of pyhf JSON, HS3, HistFactory XML or a data card of Combine, JSON text or
    a dictionary. `to` is ``"pyhf"`` for what pyhf reads, ``"extended"`` for pyhf JSON that may have
    further keys, or ``"hs3"``; `write_xml` writes HistFactory XML, which is several files, and data
    cards are only read. `measurement` is the analysis of an HS3
    document whose data are read, and `mass`, `physics_model`, `model_options` and `keywords` say
    how a data card is read, as in `load_workspace`.

    Raises
    ------
    ParameterError
        A model that the format cannot hold; the message names what it lacks.

    Examples
    --------
    >>> import nextstat
    >>> document = nextstat.convert("examples/simple.json", "hs3")
    >>> document["likelihoods"][0]["distributions"]
    ['model_singlechannel']
    >>> back = nextstat.convert(document, "pyhf")
    >>> nextstat.digest(back) == nextstat.digest("examples/simple.json")
    True
    """
    path = file_of(document)
    given = None if path is not None else json_bytes(document)
    wanted = None if measurement is None else text("measurement", measurement)
    card = card_options(mass, physics_model, model_options, keywords)
    made, warnings = _nextstat.convert_document(path, given, text("to", to), wanted, card)
    for warning in warnings:
        warn(warning)
    return cast("dict[str, Any]", json.loads(made))


@hinted
def write_xml(
    document: Document,
    file: str | os.PathLike[str],
    *,
    measurement: str | None = None,
    mass: float | None = None,
    physics_model: str | None = None,
    model_options: str | Sequence[str] = (),
    keywords: Mapping[str, str] | None = None,
) -> None:
    """Writes a workspace as HistFactory XML, which ROOT's `hist2workspace` reads.

    `document` and the other arguments are as in `convert`. `file` is the combination; beside it go
    the files of its channels, a ROOT file with all histograms and the definition of the document
    type, whose names begin with that of `file`. All files are written, or none.

    Raises
    ------
    ParameterError
        A model that XML cannot hold; the message names what it lacks.

    Examples
    --------
    >>> import nextstat, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nextstat.write_xml("examples/simple.json", f"{folder}/model.xml")
    ...     sorted(path.name for path in pathlib.Path(folder).iterdir())
    ...     nextstat.digest(f"{folder}/model.xml") == nextstat.digest("examples/simple.json")
    ['HistFactorySchema.dtd', 'model.root', 'model.xml', 'model_singlechannel.xml']
    True
    """
    path = file_of(document)
    given = None if path is not None else json_bytes(document)
    wanted = None if measurement is None else text("measurement", measurement)
    card = card_options(mass, physics_model, model_options, keywords)
    for warning in _nextstat.write_xml(path, given, os.fspath(file), wanted, card):
        warn(warning)


def json_schema(name: str) -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12) of a document: `to_dict()` of a result is valid by
    the one that its ``$schema`` names.

    `name` is that of a verb of the command, ``"contours"``, ``"every-patch"``,
    ``"patchset-inspect"`` or ``"patchset-verify"``; `nextstat schema` lists them. The version at
    the end of ``$schema`` rises when a key is removed or changes its meaning; new keys do not raise
    it.

    Examples
    --------
    >>> import nextstat
    >>> schema = nextstat.json_schema("fit")
    >>> schema["$id"], schema["$defs"]["fit_fields"]["properties"]["edm"]["description"]
    ('urn:nextstat:schema:fit:1', 'estimated distance to the minimum, in −ln L')
    """
    return json.loads(_nextstat.json_schema(text("name", name)))


def apply_patch(document: Document, patch: Document | Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns a document with a JSON patch (RFC 6902) applied.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.apply_patch({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}])
    {'a': 2}
    """
    operations = json_bytes(patch) if isinstance(patch, (list, tuple)) else document_bytes(cast("Document", patch))
    return json.loads(_nextstat.apply_patch(document_bytes(document), operations))


class PatchSet:
    """A set of patches: many signals for one background-only workspace.

    `source` is a path, JSON text or a dictionary.

    Examples
    --------
    >>> import nextstat
    >>> patches = nextstat.PatchSet("examples/signals.json")
    >>> patches.names[:2], patches.labels
    (['signal_300', 'signal_500'], ['mass'])
    >>> patches.verify("examples/background.json")["verified"]
    True
    >>> patches.model("examples/background.json", patches.names[0]).poi
    'mu'
    """

    __module__ = "nextstat"

    def __init__(self, source: Document) -> None:
        self._text = document_bytes(source)
        self._file = file_of(source)
        self._raw = RawPatchSet(self._text)
        self._inspected: dict[str, Any] = self._raw.inspect()

    @property
    def description(self) -> str:
        """What the set says of itself."""
        return self._inspected["description"]

    @property
    def digests(self) -> dict[str, str]:
        """Digests of the workspace that the set was made for, by algorithm."""
        return dict(self._inspected["digests"])

    @property
    def labels(self) -> list[str]:
        """What the values of patches are."""
        return list(self._inspected["labels"])

    @property
    def references(self) -> dict[str, str]:
        """Where the set comes from."""
        return dict(self._inspected["references"])

    @property
    def names(self) -> list[str]:
        """Names of the patches, in order."""
        return [patch["name"] for patch in self._inspected["patches"]]

    def values(self, name: str) -> dict[str, Any]:
        """Returns the values of the patch `name`, by label."""
        for patch in self._inspected["patches"]:
            if patch["name"] == text("name", name):
                return dict(zip(self.labels, patch["values"]))
        self._raw.patch(name)
        raise KeyError(name)

    def patch(self, name: str) -> list[dict[str, Any]]:
        """Returns the operations of the patch `name`."""
        return json.loads(self._raw.patch(text("name", name)))

    def require(self, workspace: Document) -> None:
        """Raises a `WorkspaceError` if the set was not made for `workspace`."""
        self._raw.require(document_bytes(workspace))

    def verify(self, workspace: Document) -> dict[str, Any]:
        """Returns whether the set was made for `workspace`: ``verified``, and every digest with
        what was found.
        """
        return self._raw.verify(document_bytes(workspace))

    def apply(self, workspace: Document, name: str) -> dict[str, Any]:
        """Returns `workspace`, which the set must be made for, with the patch `name`."""
        return json.loads(self._raw.apply(document_bytes(workspace), text("name", name)))

    def model(
        self,
        workspace: Document,
        name: str,
        *,
        measurement: str | None = None,
        poi: Poi = None,
        interp_defaults: str = "smooth",
        interpolation: Interpolation | None = None,
    ) -> Model:
        """Returns the model of `workspace` with the patch `name`; the other arguments are those of
        `load_workspace`.
        """
        choice = choice_of(measurement, poi, interp_defaults, interpolation)
        return self._raw.grid(document_bytes(workspace)).model(text("name", name), choice)

    def __len__(self) -> int:
        return len(self._inspected["patches"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __reduce__(self) -> tuple[type[PatchSet], tuple[bytes]]:
        return PatchSet, (self._text,)

    def __repr__(self) -> str:
        return escape(f"<nextstat.PatchSet of {len(self)} patches: {', '.join(self.labels)}>")


@hinted
def every_patch(
    workspace: Document,
    patchset: PatchSet | Document,
    question: Callable[[Model], Any],
    *,
    measurement: str | None = None,
    poi: Poi = None,
    interp_defaults: str = "smooth",
    interpolation: Interpolation | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> GridResult:
    """Asks the same question of a background with each patch of a set: the background is read once,
    the patches share the threads.

    Parameters
    ----------
    question : callable
        From a model to a result, such as ``nextstat.upper_limit`` or ``lambda model:
        nextstat.hypotest(model, 1.0)``. Ctrl-C stops what it computes with this package; what else
        it does is waited for.
    threads : int, optional
        As many as the machine has if not given.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    GridResult
        A patch without a result has its error. An error that is the same for every patch is raised.

    Examples
    --------
    >>> import nextstat
    >>> grid = nextstat.every_patch(
    ...     "examples/background.json", "examples/signals.json", nextstat.hypotest
    ... )
    >>> [(patch["patch"], round(patch["result"].CLs_obs, 4)) for patch in grid.patches]
    [('signal_300', 0.1031), ('signal_500', 0.5622), ('signal_800', 0.834)]
    """
    import warnings

    if not callable(question):
        raise TypeError(f"`question` is a function of a model, such as `nextstat.upper_limit`, not `{shown(question)}`")
    n_threads = (os.cpu_count() or 1) if threads is None else count("threads", threads, 1)
    patches = patchset if isinstance(patchset, PatchSet) else PatchSet(patchset)
    raw = patches._raw.grid(document_bytes(workspace), [file_of(workspace), patches._file])
    choice = choice_of(measurement, poi, interp_defaults, interpolation)

    errors: dict[str, NextstatError] = {}

    def answer(name: str) -> dict[str, Any]:
        head = raw.head(name)
        try:
            return {**head, "result": question(raw.model(name, choice))}
        except NextstatError as error:
            errors[name] = error
            return {**head, "error": str(error.args[0] if error.args else "")}

    tell, names = progress_of(progress, "patch"), patches.names
    with warnings.catch_warnings():
        # Said once for all of them below.
        warnings.simplefilter("ignore", NextstatWarning)
        answers = _answers(answer, names, n_threads, tell)
    _raise_common(errors, len(names))
    sources = (getattr(found.get("result"), "_provenance", None) for found in answers)
    of_patch = next((source for source in sources if isinstance(source, _nextstat.RawProvenance)), None)
    message = _nextstat.failed_patches(sum(map(is_bad, answers)), len(names))
    measurements = (getattr(found.get("result"), "_fields", {}).get("measurement") for found in answers)
    fields = {
        "complete": True,
        "measurement": next((name for name in measurements if name is not None), None),
        "n_patches": len(names),
        "patches": answers,
        "provenance": raw.provenance(of_patch),
        "warnings": [] if message is None else [message],
    }
    if message is not None:
        warn(message)
    return GridResult(fields)


def _raise_common(errors: Mapping[str, NextstatError], n_patches: int) -> None:
    """Raises the error of the question, if it is the same for every patch."""
    found = list(errors.values())
    if len(found) == n_patches and len({error.args for error in found}) == 1:
        raise found[0]


def _answers(answer: Callable[[str], dict[str, Any]], names: Sequence[str], n_threads: int, tell: Callable[[int, int], object] | None) -> list[dict[str, Any]]:
    """Returns the answers for all names, in order; what ends the wait for them ends them too."""
    from concurrent.futures import ThreadPoolExecutor

    stopper = _nextstat.Stopper()
    with ThreadPoolExecutor(min(n_threads, max(len(names), 1))) as pool:
        try:
            futures = [pool.submit(stopper.call, answer, name) for name in names]
            waiting = set(futures)
            while waiting:
                for future in first_done(waiting):
                    future.result()
                    waiting.remove(future)
                    if tell is not None:
                        tell(len(names) - len(waiting), len(names))
        except BaseException:
            stopper.stop()
            pool.shutdown(cancel_futures=True)
            raise
    return [future.result() for future in futures]
