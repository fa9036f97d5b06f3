"""The modules of the package form layers: imports point down, never up, and never in a circle."""

import ast
import re
from pathlib import Path

import nextstat
import pytest

PACKAGE = Path(nextstat.__file__).parent

#: The native package, lowest layer first: a module imports from its own layer and from those below.
#: A package stands for all modules in it.
LAYERS = [
    ["_nextstat", "_files", "_installed"],
    ["_errors"],
    ["_arguments", "_asimov", "_checksums", "_keywords", "_progress", "_root_files", "_sources"],
    ["_tables", "_data_set_files", "_toy_files", "_views"],
    ["_results"],
    [
        "_adaptive_toys", "_combination", "_command", "_curves", "_data_sets", "_devices", "_documents", "_exclusion",
        "_fits", "_models", "_pois", "_quantities", "_root_output", "_scanner", "_search", "_simplify", "_tests", "_toys",
    ],
    ["_legacy", "build", "differentiable", "distributed", "hepdata", "histograms", "jax", "plot", "_plot_command", "torch"],
    ["_internal"],
]

#: What offers the native package and the pyhf shim together.
ROOTS = {"nextstat", "nextstat.__main__", "nextstat.spey"}


def _modules():
    """All modules by name, with their files."""
    found = {"nextstat._nextstat": PACKAGE / "_nextstat.pyi"}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(("nextstat", *(part for part in parts if part != "__init__")))] = path
    return found


def _imports(name, path, modules):
    """The modules that `name` imports: anywhere in its text, in functions and for types too."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                if f"{source}.{alias.name}" in modules:
                    yield f"{source}.{alias.name}"
                elif source in modules:
                    yield source


@pytest.fixture(scope="module")
def graph():
    modules = _modules()
    return {name: set(_imports(name, path, modules)) - {name} for name, path in modules.items()}


def _is_shim(name):
    return f"{name}.".startswith("nextstat.pyhf.")


def _layer(name):
    """The layer of a module of the native package."""
    first = name.split(".")[1]
    return next((k for k, layer in enumerate(LAYERS) if first in layer), None)


def _circle(graph):
    """The modules of a circle of imports; none if there is no circle."""
    left = dict(graph)
    while left:
        free = {name for name, wanted in left.items() if not wanted & left.keys()}
        if not free:
            return sorted(left)
        left = {name: wanted for name, wanted in left.items() if name not in free}
    return []


def _paths(graph, start):
    """A circle through `start`, for the message."""
    waiting, seen = [[start]], set()
    while waiting:
        path = waiting.pop(0)
        for name in graph[path[-1]]:
            if name == start:
                return " -> ".join([*path, start])
            if name not in seen:
                seen.add(name)
                waiting.append([*path, name])
    return None


def test_no_modules_import_each_other_in_a_circle(graph):
    circles = [path for name in _circle(graph) if (path := _paths(graph, name))]
    assert not circles, "\n".join(circles)


def test_every_module_of_the_native_package_has_a_layer(graph):
    native = {name for name in graph if name not in ROOTS and not _is_shim(name)}
    assert {name for name in native if _layer(name) is None} == set()
    known = {name.split(".")[1] for name in native}
    assert {name for layer in LAYERS for name in layer} == known


def test_imports_point_to_the_same_layer_or_a_lower_one(graph):
    native = [name for name in graph if name not in ROOTS and not _is_shim(name)]
    upwards = [
        f"{name} -> {other}"
        for name in native
        for other in graph[name]
        if other in ROOTS or (not _is_shim(other) and _layer(other) > _layer(name))
    ]
    assert not upwards, "\n".join(upwards)


def test_the_native_package_imports_nothing_from_the_pyhf_shim(graph):
    native = [name for name in graph if name not in ROOTS and not _is_shim(name)]
    assert [name for name in native if any(map(_is_shim, graph[name]))] == []


def test_the_pyhf_shim_imports_one_module_of_the_native_package(graph):
    used = {other for name in graph if _is_shim(name) for other in graph[name] if not _is_shim(other)}
    assert used == {"nextstat._internal"}


def test_no_rust_modules_use_each_other_in_a_circle(root):
    files = {path.stem: path for path in (root / "bindings/ns-py/src").glob("*.rs")}
    uses = {name: re.findall(r"\bcrate::(\w+)", path.read_text("utf-8")) for name, path in files.items()}
    assert _circle({name: {*found} & files.keys() - {name} for name, found in uses.items()}) == []


def test_a_circle_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}
    assert _circle(graph) == ["a", "b", "c"]
    assert _paths(graph, "b") == "b -> c -> b"
