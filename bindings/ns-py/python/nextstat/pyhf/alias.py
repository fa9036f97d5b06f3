"""Replaces pyhf's modules by these, for programs that import pyhf themselves.

>>> import nextstat.pyhf.alias
>>> nextstat.pyhf.alias.install()
>>> import pyhf.infer
>>> pyhf.infer.__name__
'nextstat.pyhf.infer'
>>> nextstat.pyhf.alias.uninstall()
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `pyhf` and its submodules in `nextstat.pyhf`; a module that is not there is not found
    at all.
    """

    def __init__(self):
        self._specs = {}

    def find_spec(self, name, path=None, target=None):
        if name != "pyhf" and not name.startswith("pyhf."):
            return None
        try:
            found = importlib.util.find_spec(f"nextstat.{name}")
        except ModuleNotFoundError:
            found = None
        return found and importlib.machinery.ModuleSpec(name, self, is_package=found.submodule_search_locations is not None)

    def create_module(self, spec):
        module = importlib.import_module(f"nextstat.{spec.name}")
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module):
        # The import system has just written the alias into it.
        module.__spec__ = self._specs[module.__spec__.name]


def install():
    """Makes ``import pyhf`` mean ``import nextstat.pyhf``, in every module.

    Raises
    ------
    RuntimeError
        If pyhf has been imported already.
    """
    if any(isinstance(finder, _Alias) for finder in sys.meta_path):
        return
    if any(name == "pyhf" or name.startswith("pyhf.") for name in sys.modules):
        raise RuntimeError("pyhf has been imported already: install the alias before anything imports it")
    sys.meta_path.insert(0, _Alias())


def uninstall():
    """Undoes `install` for what is imported from now on."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Alias)]
    for name in [name for name in sys.modules if name == "pyhf" or name.startswith("pyhf.")]:
        del sys.modules[name]
