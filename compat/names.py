"""The names of pyhf's public modules, with their signatures: `nextstat.pyhf` has them, or
`exclusions.toml` says why not.
"""

import importlib
import inspect
import operator
import pkgutil

import exclusions
import pyhf
import pytest


def modules():
    """pyhf and its modules that can be imported here."""
    names = ["pyhf", *(module.name for module in pkgutil.walk_packages(pyhf.__path__, "pyhf.", onerror=lambda name: None))]
    for name in names:
        try:
            yield name, importlib.import_module(name)
        except ImportError:
            continue


def own(module):
    """Names that a module offers: those that it lists, or else those that it defines."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if hasattr(module, name)]
    return [name for name, value in vars(module).items() if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__]


def offered():
    """Every name, as `module:name` or `module:Class.member`; modules without the package's own
    name.
    """
    for module_name, module in modules():
        place = module_name.removeprefix("pyhf").lstrip(".")
        for name in own(module):
            yield f"{place}:{name}"
            if inspect.isclass(getattr(module, name)):
                yield from (f"{place}:{name}.{member}" for member in dir(getattr(module, name)) if not member.startswith("_"))


def found(package, path):
    """What is called `path` in `package`."""
    module, _, name = path.partition(":")
    return operator.attrgetter(name)(importlib.import_module(".".join(filter(None, (package, module)))))


def parameters(function):
    """Names and defaults of the parameters of a function; None for what is none."""
    if not (inspect.isfunction(function) or inspect.isclass(function)):
        return None
    try:
        return [(parameter.name, repr(parameter.default)) for parameter in inspect.signature(function).parameters.values()]
    except ValueError:
        return None


@pytest.mark.parametrize("path", sorted(set(offered())))
def test_names_are_offered_with_their_signatures(path):
    reason = exclusions.of_name(path)
    if reason:
        pytest.skip(reason)
    theirs, ours = parameters(found("pyhf", path)), parameters(found("nextstat.pyhf", path))
    if theirs is not None:
        # More may be taken.
        assert ours is not None and ours[: len(theirs)] == theirs
