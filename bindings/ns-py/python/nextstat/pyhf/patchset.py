"""Patch sets: patches of one workspace for many signals, found by name or by value."""

from __future__ import annotations

import json
import logging
from typing import Any

from .._internal import escape
from . import exceptions, schema, utils
from ._patch import apply_patch
from .workspace import Workspace

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = ["Patch", "PatchSet"]


def __dir__():
    return __all__


class Patch:
    """A JSON patch with a name and values.

    Attributes
    ----------
    patch : list of dict
        Its operations.
    metadata : dict
    """

    def __init__(self, spec) -> None:
        self.patch = list(spec["patch"])
        self._metadata = spec["metadata"]

    @property
    def metadata(self) -> Any:
        """Name and values as the patch set has them."""
        return self._metadata

    @property
    def name(self) -> Any:
        """Its name."""
        return self.metadata["name"]

    @property
    def values(self) -> Any:
        """Its values, one for each label of the patch set."""
        return tuple(self.metadata["values"])

    def apply(self, obj, in_place=False, atomic=False) -> Any:
        """Returns a copy of `obj` with the patch applied, or `obj` itself if `in_place`; all of it
        or, if it fails, nothing of it.
        """
        changed = apply_patch(obj, self.patch)
        if not in_place:
            return changed
        obj.clear()
        (obj.extend if isinstance(obj, list) else obj.update)(changed)
        return obj

    def to_string(self, dumps=None) -> Any:
        """Returns the operations as JSON text."""
        return (dumps or json.dumps)(self.patch)

    def __iter__(self):
        return iter(self.patch)

    def __bool__(self):
        return bool(self.patch)

    def __eq__(self, other):
        return isinstance(other, Patch) and self.patch == other.patch and self.metadata == other.metadata

    def __hash__(self):
        return hash(json.dumps([self.patch, self.metadata], sort_keys=True))

    def __str__(self):
        return self.to_string()

    def __repr__(self):
        return escape(f"<{type(self).__module__}.{type(self).__qualname__} object '{self.name}{self.values}' at {hex(id(self))}>")


class PatchSet:
    """The patches of a document as ``patchset.json`` has it.

    Patches are found by ``patchset["name"]``, by ``patchset[1300, 100]`` or ``patchset[[1300,
    100]]``, and iterated over.
    """

    def __init__(self, spec, **config_kwargs) -> None:
        self.schema = config_kwargs.pop("schema", "patchset.json")
        self._version = config_kwargs.pop("version", spec.get("version"))
        log.info(f"Validating spec against schema: {self.schema}")
        schema.validate(spec, self.schema, version=self._version)
        self._metadata = spec["metadata"]
        self._patches = [Patch(patch) for patch in spec["patches"]]
        self._by_key = {}
        for patch in self._patches:
            self._register(patch)

    def _register(self, patch):
        if len(patch.values) != len(self.labels):
            raise exceptions.InvalidPatchSet(f"Incompatible number of values ({len(patch.values)}) for {patch!r} in patchset. Expected {len(self.labels)}.")
        for what, key in (("name", patch.name), ("values", patch.values)):
            if key in self._by_key:
                raise exceptions.InvalidPatchSet(f"Multiple patches were defined by {what} for {patch!r}.")
            self._by_key[key] = patch

    @property
    def version(self) -> Any:
        """The version of the document."""
        return self._version

    @property
    def metadata(self) -> Any:
        """References, description, digests and labels."""
        return self._metadata

    @property
    def references(self) -> Any:
        """Where the patch set comes from."""
        return self.metadata["references"]

    @property
    def description(self) -> Any:
        """What the patches are."""
        return self.metadata["description"]

    @property
    def digests(self) -> Any:
        """Digests of the workspace that it was made for, by algorithm."""
        return self.metadata["digests"]

    @property
    def labels(self) -> Any:
        """What the values of patches mean."""
        return self.metadata["labels"]

    @property
    def patches(self) -> Any:
        """All patches."""
        return self._patches

    def __getitem__(self, key):
        key = tuple(key) if isinstance(key, list) else key
        try:
            return self._by_key[key]
        except KeyError:
            raise exceptions.InvalidPatchLookup(f'No patch associated with "{key}" is defined in patchset.') from None

    def __iter__(self):
        return iter(self._patches)

    def __len__(self):
        return len(self._patches)

    def __repr__(self):
        n = len(self._patches)
        return f"<{type(self).__module__}.{type(self).__qualname__} object with {n} patch{'es' if n != 1 else ''} at {hex(id(self))}>"

    def verify(self, spec) -> Any:
        """Raises `PatchSetVerificationError` if `spec` is not the workspace that the patch set was
        made for.
        """
        for algorithm, digest in self.digests.items():
            found = utils.digest(spec, algorithm=algorithm)
            if found != digest:
                raise exceptions.PatchSetVerificationError(f"The digest verification failed for hash algorithm '{algorithm}'. Expected: {digest}. Got: {found}")

    def apply(self, spec, key) -> Any:
        """Returns the workspace `spec`, verified, with the patch called `key` applied."""
        self.verify(spec)
        return Workspace(self[key].apply(spec))
