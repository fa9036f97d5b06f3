"""Checks stored documents by their schemas, with the place of what is wrong.

This reads as much of JSON Schema as the schemas of `json_schema` are written in.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from .._documents import json_schema
from .._errors import shown
from .._nextstat import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


@cache
def _schema(kind: str) -> dict[str, Any]:
    return json_schema(kind)


def require_valid(document: Any, kind: str) -> None:
    """Refuses a document that is not valid by the schema of its kind.

    Raises
    ------
    WorkspaceError
        With the JSON pointer of the first value that is wrong, and what is expected there.
    """
    schema = _schema(kind)
    for place, problem in _problems(document, schema, "", schema):
        raise WorkspaceError(f"the document is damaged at `{place or '/'}`: {problem}")


def _problems(value: Any, schema: Mapping[str, Any], place: str, root: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields the places where `value` is not valid by `schema`, each with what is wrong."""
    if "$ref" in schema:
        yield from _problems(value, root["$defs"][schema["$ref"].rpartition("/")[2]], place, root)
    for part in schema.get("allOf", ()):
        yield from _problems(value, part, place, root)
    for key in ("anyOf", "oneOf"):
        if key in schema and all(any(_problems(value, part, place, root)) for part in schema[key]):
            # Of a value that may be absent, what is wrong with the one that is there.
            others = [part for part in schema[key] if part.get("type") != "null"]
            yield from _problems(value, others[0], place, root) if len(others) == 1 else iter([(place, f"{_brief(value)} has none of the forms it may have")])
    yield from _own(value, schema, place)
    if isinstance(value, dict):
        yield from _of_members(value, schema, place, root)
    elif isinstance(value, list):
        yield from _of_items(value, schema, place, root)


def _brief(value: Any) -> str:
    return f"a list of {len(value)}" if isinstance(value, list) else "an object" if isinstance(value, dict) else f"`{shown(value)}`"


def _has_type(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and not (isinstance(value, bool) and kind in ("number", "integer"))


def _own(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    """Yields what is wrong with the value itself."""
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_has_type(value, kind) for kind in kinds):
        yield place, f"expected {' or '.join(kinds)}, found {_brief(value)}"
        return
    if "const" in schema and value != schema["const"]:
        yield place, f"expected `{schema['const']}`, found {_brief(value)}"
    if "enum" in schema and value not in schema["enum"]:
        yield place, f"expected {' or '.join(map(str, schema['enum']))}, found {_brief(value)}"
    if "minimum" in schema and _has_type(value, "number") and value < schema["minimum"]:
        yield place, f"expected at least {schema['minimum']}, found {_brief(value)}"


def _of_members(value: Mapping[str, Any], schema: Mapping[str, Any], place: str, root: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            yield place, f"`{key}` is missing"
    others = schema.get("additionalProperties")
    for key, member in value.items():
        inside = properties.get(key, others if isinstance(others, dict) else None)
        if inside is not None:
            yield from _problems(member, inside, f"{place}/{key.replace('~', '~0').replace('/', '~1')}", root)


def _are_plain(value: list[Any], inside: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Returns whether all items are of types that need no further look: matrices are large."""
    while set(inside) <= {"$ref", "description"} and "$ref" in inside:
        inside = root["$defs"][inside["$ref"].rpartition("/")[2]]
    if not set(inside) <= {"type", "description"}:
        return False
    kinds = inside.get("type", [])
    allowed = {kind for name in ([kinds] if isinstance(kinds, str) else kinds) for kind in _TYPES[name]}
    return not allowed & {dict, list} and allowed.issuperset(map(type, value))


def _of_items(value: list[Any], schema: Mapping[str, Any], place: str, root: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if len(value) < schema.get("minItems", 0) or len(value) > schema.get("maxItems", len(value)):
        yield place, f"expected a list of {schema.get('minItems', schema.get('maxItems'))}, found {_brief(value)}"
    first, inside = schema.get("prefixItems", ()), schema.get("items")
    if isinstance(inside, dict) and _are_plain(value, inside, root):
        return
    for i, item in enumerate(value):
        found = first[i] if i < len(first) else inside
        if isinstance(found, dict):
            yield from _problems(item, found, f"{place}/{i}", root)
