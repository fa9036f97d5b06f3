"""A pytest plugin under which `import pyhf` means `import nextstat.pyhf`, for the code under test and for what it imports."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `pyhf` and its submodules in `nextstat.pyhf`; a module that is not there is not found at all."""

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
        self.own = {**getattr(self, "own", {}), spec.name: module.__spec__}
        return module

    def exec_module(self, module):
        # The import system has just written the alias into it.
        module.__spec__ = self.own[module.__spec__.name]


def install():
    """Makes the alias; `pyhf` must not have been imported."""
    if any(name == "pyhf" or name.startswith("pyhf.") for name in sys.modules):
        raise RuntimeError("pyhf has been imported already")
    sys.meta_path.insert(0, Alias())


install()
