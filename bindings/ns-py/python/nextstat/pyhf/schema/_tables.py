"""The schemas, version 1.0.0, as JSON Schema has them (draft 6), and where they are looked for."""

import json
import os

from ..exceptions import SchemaNotFound

VERSION = "1.0.0"
BASE = "https://scikit-hep.org/pyhf/schemas/"


def _record(required, optional=()):
    """Returns an object with these keys and no others."""
    return {"type": "object", "properties": {**required, **dict(optional)}, "required": list(required), "additionalProperties": False}


def _many(items, at_least=1):
    return {"type": "array", "items": items, **({"minItems": at_least} if at_least else {})}


def _of(name):
    return {"$ref": f"#/definitions/{name}"}


def _matching(pattern):
    return {"type": "string", "pattern": pattern}


_TEXT = {"type": "string"}
_NAME = _matching("^[a-zA-Z0-9_]+$")
_NUMBER = {"type": "number"}
_NUMBERS = _many(_NUMBER)
_NOTHING = {"type": "null"}
_VERSION = {"const": VERSION}

#: What the data of each type of modifier are.
_MODIFIER_DATA = {
    "histosys": _record({"lo_data": _NUMBERS, "hi_data": _NUMBERS}),
    "lumi": _NOTHING,
    "normfactor": _NOTHING,
    "normsys": _record({"lo": _NUMBER, "hi": _NUMBER}),
    "shapefactor": _NOTHING,
    "shapesys": _NUMBERS,
    "staterror": _NUMBERS,
}


def _modifier(kind):
    return _record({"name": {"const": "lumi"} if kind == "lumi" else _TEXT, "type": {"const": kind}, "data": _MODIFIER_DATA[kind]})


_OPERATION = {
    "type": "object",
    "required": ["op", "path"],
    "properties": {"path": _TEXT},
    "oneOf": [
        {"required": ["value"], "properties": {"op": {"enum": ["add", "replace", "test"]}}},
        {"properties": {"op": {"enum": ["remove"]}}},
        {"required": ["from"], "properties": {"op": {"enum": ["move", "copy"]}, "from": _TEXT}},
    ],
}

_DEFINITIONS = {
    "workspace": _record({"channels": _many(_of("channel")), "measurements": _many(_of("measurement")), "observations": _many(_of("observation")), "version": _VERSION}),
    "model": _record({"channels": _many(_of("channel"))}, {"parameters": _many(_of("parameter"), 0)}),
    "channel": _record({"name": _TEXT, "samples": _many(_of("sample"))}),
    "sample": _record({"name": _TEXT, "data": _NUMBERS, "modifiers": _many({"anyOf": [_of(f"modifier/{kind}") for kind in _MODIFIER_DATA]}, 0)}),
    "modifier": {kind: _modifier(kind) for kind in _MODIFIER_DATA},
    "observation": _record({"name": _TEXT, "data": _NUMBERS}),
    "measurement": _record({"name": _TEXT, "config": _of("config")}),
    "config": _record({"poi": _TEXT, "parameters": _many(_of("parameter"), 0)}),
    "parameter": _record(
        {"name": _TEXT},
        {
            "inits": _NUMBERS,
            "bounds": _many({**_many(_NUMBER, 2), "maxItems": 2}),
            "auxdata": _NUMBERS,
            "factors": _NUMBERS,
            "sigmas": _NUMBERS,
            "fixed": {"type": "boolean"},
        },
    ),
    "jsonpatch": {"type": "array", "items": _OPERATION},
    "patchset": _record({"patches": _many(_of("patch")), "metadata": _of("patchset_metadata"), "version": _VERSION}),
    "patchset_metadata": {
        "type": "object",
        "properties": {
            "references": {**_record({}, {"hepdata": _matching("^ins[0-9]{7}$")}), "minProperties": 1},
            "digests": {**_record({}, {"md5": _matching("^[a-f0-9]{32}$"), "sha256": _matching("^[a-fA-F0-9]{64}$")}), "minProperties": 1},
            "labels": _many(_NAME),
            "description": _TEXT,
        },
        "required": ["references", "digests", "labels", "description"],
    },
    "patch": _record(
        {
            "metadata": {
                "type": "object",
                "properties": {"name": _NAME, "values": _many({"type": ["number", "string"]}, 0)},
                "required": ["name", "values"],
            },
            "patch": _of("jsonpatch"),
        }
    ),
}


def _document(name, body):
    return {"$schema": "http://json-schema.org/draft-06/schema#", "$id": f"{BASE}{VERSION}/{name}", **body}


_OWN = {"defs.json": _document("defs.json", {"definitions": _DEFINITIONS})} | {
    f"{name}.json": _document(f"{name}.json", {"$ref": f"defs.json#/definitions/{name}"})
    for name in ("workspace", "model", "measurement", "patchset", "jsonpatch")
}


#: Where the package's own schemas are said to be; they are the tables above.
OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "schemas")


class Store:
    """Schemas by name: this package's, or those of the folder `variables.schemas`."""

    def __init__(self, variables):
        self._variables = variables
        self._before = []
        self._cached = OWN

    @property
    def _folder(self):
        return os.fspath(vars(self._variables).get("schemas", OWN))

    @property
    def path(self):
        # Takes longer to import than the rest of this package, and few ask for it.
        from pathlib import Path

        return Path(self._folder)

    def push(self, folder):
        from pathlib import Path

        self._before.append(self.path)
        self._variables.schemas = Path(folder)

    def pop(self):
        self._variables.schemas = self._before.pop()

    def _cache(self, folder):
        """Returns documents of `folder` by their ``$id``; those of another folder are forgotten."""
        cache = self._variables.SCHEMA_CACHE
        if folder != self._cached:
            cache.clear()
            self._cached = folder
        return cache

    def load(self, schema_id):
        """Returns the schema called `schema_id`."""
        version, _, name = str(schema_id).partition("/")
        folder, key = self._folder, f"{BASE}{schema_id}"
        cache = self._cache(folder)
        if key in cache:
            return cache[key]
        if folder == OWN and version == VERSION and name in _OWN:
            return _OWN[name]
        place = self.path / schema_id
        if not place.is_file():
            raise SchemaNotFound(f"The schema {schema_id} was not found. Do you have the right version or the right path? {place}")
        document = cache[key] = json.loads(place.read_text(encoding="utf-8"))
        return document
