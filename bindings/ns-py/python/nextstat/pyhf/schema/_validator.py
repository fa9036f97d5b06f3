"""A check of documents against JSON schemas: the keywords that the schemas of this package use, and
no others.
"""

import numbers
import re

import numpy as np


class Violation(Exception):
    """A problem, the `path` to it, and the `instance` there."""

    def __init__(self, message, path, instance):
        super().__init__(message)
        self.message, self.path, self.instance = message, list(path), instance


def _is_number(value, allow_tensors):
    kinds = (numbers.Number, np.number) if allow_tensors else (int, float)
    return isinstance(value, kinds) and not isinstance(value, bool)


def _is(value, kind, allow_tensors):
    if kind == "array":
        return isinstance(value, (list, np.ndarray) if allow_tensors else list)
    if kind == "number":
        return _is_number(value, allow_tensors)
    return isinstance(value, {"object": dict, "string": str, "boolean": bool, "null": type(None)}[kind])


def check(document, schema, load, allow_tensors=True):
    """Raises a `Violation` if `document` is not as `schema` has it; `load` finds the schemas that
    it refers to.
    """
    _Check(schema, load, allow_tensors).value(document, schema, [])


class _Check:
    def __init__(self, root, load, allow_tensors):
        self.root, self.load, self.allow_tensors = root, load, allow_tensors

    def value(self, value, schema, path):
        if "$ref" in schema:
            root, target = self._resolve(schema["$ref"])
            return _Check(root, self.load, self.allow_tensors).value(value, target, path)
        self._type(value, schema, path)
        if "const" in schema and value != schema["const"]:
            raise Violation(f"{schema['const']!r} was expected", path, value)
        if "enum" in schema and value not in schema["enum"]:
            raise Violation(f"{value!r} is not one of {schema['enum']!r}", path, value)
        if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
            raise Violation(f"{value!r} does not match {schema['pattern']!r}", path, value)
        if isinstance(value, dict):
            self._object(value, schema, path)
        elif _is(value, "array", self.allow_tensors):
            self._array(value, schema, path)
        self._choices(value, schema, path)

    def _resolve(self, reference):
        name, _, pointer = reference.partition("#")
        root = self.load(name) if name else self.root
        target = root
        for step in filter(None, pointer.split("/")):
            target = target[step]
        return root, target

    def _type(self, value, schema, path):
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(_is(value, kind, self.allow_tensors) for kind in kinds):
            raise Violation(f"{value!r} is not of type {', '.join(map(repr, kinds))}", path, value)

    def _object(self, value, schema, path):
        properties = schema.get("properties", {})
        for key in schema.get("required", []):
            if key not in value:
                raise Violation(f"{key!r} is a required property", path, value)
        others = schema.get("additionalProperties", True)
        unknown = [key for key in value if key not in properties]
        if others is False and unknown:
            raise Violation(f"Additional properties are not allowed ({', '.join(map(repr, unknown))} unexpected)", path, value)
        if len(value) < schema.get("minProperties", 0):
            raise Violation(f"{value!r} does not have enough properties", path, value)
        for key, item in value.items():
            of_key = properties.get(key, others)
            if isinstance(of_key, dict):
                self.value(item, of_key, [*path, key])

    def _array(self, value, schema, path):
        if len(value) < schema.get("minItems", 0):
            raise Violation(f"{value!r} is too short", path, value)
        if len(value) > schema.get("maxItems", len(value)):
            raise Violation(f"{value!r} is too long", path, value)
        items = schema.get("items")
        if items == {"type": "number"} and isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf":
            return
        if items:
            for i, item in enumerate(value):
                self.value(item, items, [*path, i])

    def _choices(self, value, schema, path):
        for keyword in ("anyOf", "oneOf"):
            failures = []
            for choice in schema.get(keyword, []):
                try:
                    self.value(value, choice, path)
                    break
                except Violation as violation:
                    failures.append(violation)
            else:
                if failures:
                    # The choice that was meant is the one that fails deepest.
                    deepest = max(failures, key=lambda violation: len(violation.path))
                    if len(deepest.path) > len(path) + 1 or len(failures) == 1:
                        raise deepest
                    raise Violation(f"{value!r} is not valid under any of the given schemas", path, value)
