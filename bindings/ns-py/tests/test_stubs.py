"""The stub of the extension module names what the module has, with the arguments that it takes."""

import ast
import inspect
from pathlib import Path

import nextstat
from nextstat import _nextstat

STUB = Path(nextstat.__file__).with_name("_nextstat.pyi")


def _members(body):
    found = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = node
    return found


def _is_ours(name):
    return not name.startswith("__") or name == "__version__"


def _arguments(function):
    arguments = function.args
    return [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if argument.arg not in ("self", "cls")]


def test_the_stub_names_what_the_module_has():
    written = {name for name in _members(ast.parse(STUB.read_text(encoding="utf-8")).body) if not name.startswith("_") or name == "__version__"}
    there = {name for name in vars(_nextstat) if _is_ours(name)}
    assert written == there


def test_the_stub_names_the_arguments_of_functions():
    for name, node in _members(ast.parse(STUB.read_text(encoding="utf-8")).body).items():
        if isinstance(node, ast.FunctionDef):
            assert _arguments(node) == list(inspect.signature(getattr(_nextstat, name)).parameters), name


def test_the_stub_names_the_members_of_classes():
    for name, node in _members(ast.parse(STUB.read_text(encoding="utf-8")).body).items():
        if not isinstance(node, ast.ClassDef) or issubclass(getattr(_nextstat, name), Exception):
            continue
        there = {member for member in vars(getattr(_nextstat, name)) if not member.startswith("__")}
        assert {member for member in _members(node.body) if not member.startswith("__")} == there, name
        for member, function in _members(node.body).items():
            found = getattr(getattr(_nextstat, name), member)
            if callable(found) and not member.startswith("__"):
                assert _arguments(function) == [argument for argument in inspect.signature(found).parameters if argument != "self"], f"{name}.{member}"


def test_the_guide_names_the_calls_that_take_threads(root):
    text = (root / "docs/reference/python/index.md").read_text("utf-8")
    sentence = next(part for part in text.replace("\n", " ").split(". ") if "on one thread" in part)
    functions = {name: inspect.signature(getattr(nextstat, name)).parameters for name in nextstat.__all__ if inspect.isfunction(getattr(nextstat, name))}
    computing = {name for name, arguments in functions.items() if "data" in arguments}
    threaded = {name for name, arguments in functions.items() if "threads" in arguments}
    assert computing - threaded == {name for name in functions if f"`{name}`" in sentence}


def test_everything_public_is_typed():
    for name in nextstat.__all__:
        member = getattr(nextstat, name)
        if inspect.isfunction(member):
            signature = inspect.signature(member)
            untyped = [argument.name for argument in signature.parameters.values() if argument.annotation is inspect.Parameter.empty]
            assert not untyped and signature.return_annotation is not inspect.Signature.empty, (name, untyped)
    assert Path(nextstat.__file__).with_name("py.typed").is_file()
