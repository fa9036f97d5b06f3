"""Configurations as they are written: values with their places, and errors that name those.

A place is a JSON pointer such as `/Samples/1/Name`, and a line where the configuration is a file.
What the values mean is the business of `config`.
"""

from __future__ import annotations

import difflib
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .._errors import install_command, listed, shown, with_hint
from .._nextstat import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Place = tuple[str | int, ...]


class Document:
    """A configuration, with the lines of its values.

    Attributes
    ----------
    name : str
        What errors call it: its path, or nothing.
    """

    def __init__(self, name: str, value: Any, lines: dict[Place, int]) -> None:
        self.name = name
        self._value, self._lines = value, lines

    @property
    def root(self) -> Node:
        """The whole configuration."""
        return Node(self, (), self._value)

    def where(self, place: Place) -> str:
        """Returns what errors begin with."""
        line = next((self._lines[place[:n]] for n in range(len(place), -1, -1) if place[:n] in self._lines), None)
        pointer = "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in place)
        found = [self.name, None if line is None else f"line {line}", pointer]
        return ", ".join(part for part in found if part)


class Node:
    """A value of a configuration at its place."""

    __slots__ = ("document", "place", "value")

    def __init__(self, document: Document, place: Place, value: Any) -> None:
        self.document, self.place, self.value = document, place, value

    def __repr__(self) -> str:
        return f"<{self.document.where(self.place)}: {shown(self.value)}>"

    def where(self) -> str:
        """Returns what messages begin with."""
        return self.document.where(self.place)

    def error(self, message: str, hint: str | None = None) -> WorkspaceError:
        """Returns an error with this place."""
        where = self.where()
        error = WorkspaceError(f"{where}: {message}" if where else message)
        return error if hint is None else with_hint(error, hint)

    @contextmanager
    def place_of_errors(self) -> Iterator[None]:
        """Gives errors of workspaces this place."""
        try:
            yield
        except WorkspaceError as error:
            raise self.error(str(error), error.hint) from None

    def get(self, key: str) -> Node | None:
        """Returns the value of a key of a mapping; None where there is no such key."""
        return Node(self.document, (*self.place, key), self.value[key]) if key in self.value else None

    def __getitem__(self, key: str) -> Node:
        return Node(self.document, (*self.place, key), self.value[key])

    def has_keys(self, known: Sequence[str], required: Sequence[str] = ()) -> Node:
        """Returns this node, if it is a mapping with known keys, and with all required ones."""
        if not isinstance(self.value, dict):
            raise self.error(f"expected keys with values, not {described(self.value)}", f"its keys are {listed(known)}")
        for key in self.value:
            if key not in known:
                raise self[key].error(f"unknown key `{key}`", did_you_mean(key, known) or f"there are {listed(known)}")
        for key in required:
            if key not in self.value:
                close = did_you_mean(key, list(self.value))
                raise self.error(f"the key `{key}` is missing", close or f"required are {listed(required)}")
        return self

    def items(self, at_least: int = 1) -> list[Node]:
        """Returns the values of a list."""
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, not {described(self.value)}", "start each entry with `- `")
        if len(self.value) < at_least:
            raise self.error("the list is empty")
        nodes = [Node(self.document, (*self.place, i), value) for i, value in enumerate(self.value)]
        for i, node in enumerate(nodes):
            if self.value.index(node.value) != i:
                raise node.error("the list has this entry twice")
        return nodes

    def items_or_one(self) -> list[Node]:
        """Returns the values of a list, or a value that is not a list by itself."""
        return self.items() if isinstance(self.value, list) else [self]

    def text(self) -> str:
        """Returns the value, if it is text."""
        if isinstance(self.value, str):
            return self.value
        hint = f'quote it: "{self.value}"' if isinstance(self.value, (int, float)) else None
        raise self.error(f"expected text, not {described(self.value)}", hint)

    def number(self) -> int | float:
        """Returns the value, if it is a finite number."""
        if isinstance(self.value, (int, float)) and not isinstance(self.value, bool):
            if math.isfinite(self.value):
                return self.value
            raise self.error(f"{self.value} is not a finite number")
        raise self.error(f"expected a number, not {described(self.value)}", _number_hint(self.value))

    def flag(self) -> bool:
        """Returns the value, if it is True or False."""
        if isinstance(self.value, bool):
            return self.value
        raise self.error(f"expected True or False, not {described(self.value)}")

    def one_of(self, known: Sequence[str]) -> str:
        """Returns the value, if it is one of `known`."""
        found = self.text()
        if found not in known:
            raise self.error(f"unknown value `{found}`", did_you_mean(found, known) or f"there are {listed(known)}")
        return found

    def names(self) -> tuple[str, ...]:
        """Returns a list of one text or several."""
        return tuple(node.text() for node in self.items_or_one())


def _number_hint(value):
    """Returns what to write instead of a text that looks like a number."""
    if not isinstance(value, str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    # YAML 1.1 wants a point in a number with an exponent.
    return f"write `{number!r}`: without a decimal point YAML reads `{value}` as text" if "e" in value.lower() else "leave out the quotes"


def described(value: object) -> str:
    """Returns what messages call a value of a wrong type.

    >>> described({"a": 1}), described(None), described(0.5)
    ('a mapping', 'nothing', '`0.5`')
    """
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return "nothing" if value is None else f"`{shown(value)}`"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Returns a hint with the closest of the names that there are.

    >>> did_you_mean("Symetrize", ["Symmetrize", "Samples"])
    'did you mean `Symmetrize`?'
    """
    by_lower = {str(one).lower(): one for one in known}
    close = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1, cutoff=0.6)
    return f"did you mean `{by_lower[close[0]]}`?" if close else None


def parse_yaml(text: str, name: str) -> Document:
    """Returns a configuration from YAML.

    Raises
    ------
    WorkspaceError
        What YAML cannot be, with line and column; keys that occur twice.
    ImportError
        Without PyYAML.
    """
    try:
        import yaml
    except ImportError as reason:
        raise ImportError(f"a configuration needs PyYAML: {install_command('build')} ({reason})") from None

    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        lines: dict[Place, int] = {}
        value = None if node is None else _constructed(loader, node, (), lines, name)
    except yaml.YAMLError as error:
        raise _yaml_error(error, name) from None
    finally:
        loader.dispose()
    return Document(name, value, lines)


def _yaml_error(error, name):
    mark = getattr(error, "problem_mark", None)
    place = name if mark is None else f"{name}, line {mark.line + 1}, column {mark.column + 1}"
    problem = " ".join(part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
    found = WorkspaceError(f"{place}: this is not valid YAML: {problem or error}")
    if "\\t" in problem:
        return with_hint(found, "indent with spaces, not with tabs")
    return found


def _constructed(loader, node, place, lines, name):
    """Returns the value of a node of YAML, with the lines of it and of all values in it."""
    import yaml

    if len(place) > 50:
        raise WorkspaceError(f"{name}, line {node.start_mark.line + 1}: the configuration is nested too deeply")
    lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_constructed(loader, item, (*place, i), lines, name) for i, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _mapping(loader, node, place, lines, name)
    return loader.construct_object(node)


def _mapping(loader, node, place, lines, name):
    _require_single_keys(node, name)
    # Replaces `<<` by the keys of the mappings that it names; keys written here come last and win.
    loader.flatten_mapping(node)
    found = {}
    for key_node, value_node in node.value:
        key = str(loader.construct_object(key_node, deep=True))
        found[key] = _constructed(loader, value_node, (*place, key), lines, name)
        lines[(*place, key)] = key_node.start_mark.line + 1
    return found


def _require_single_keys(node, name):
    seen: dict[str, int] = {}
    for key_node, _ in node.value:
        line, key = key_node.start_mark.line + 1, key_node.value
        if isinstance(key, str) and key in seen and key != "<<":
            raise WorkspaceError(f"{name}, line {line}: the key `{key}` is there twice, first in line {seen[key]}")
        if isinstance(key, str):
            seen[key] = line


def walk(nodes: Node | None) -> Iterator[Node]:
    """Returns the nodes of a list; none where there is no list."""
    if nodes is not None:
        yield from nodes.items(at_least=0)
