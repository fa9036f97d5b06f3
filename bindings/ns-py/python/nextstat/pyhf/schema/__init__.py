"""JSON schemas of workspaces, models, patches and patch sets, and their check.

``with pyhf.schema(path):`` reads the schemas of another folder for a while.
"""

import sys
from types import ModuleType

from . import variables
from ._tables import VERSION, Store
from ._validator import Violation, check

__all__ = ["load_schema", "validate", "path", "version"]

_store = Store(variables)


def __dir__():
    return __all__


def load_schema(schema_id):
    """Returns the schema `schema_id`, such as ``"1.0.0/workspace.json"``, as a dictionary.

    Raises
    ------
    SchemaNotFound
    """
    return _store.load(schema_id)


def validate(spec, schema_name, *, version=None, allow_tensors=True):
    """Checks `spec` against the schema `schema_name`, such as ``"workspace.json"``.

    Raises
    ------
    InvalidSpecification
        With the place in the document and the value there.
    SchemaNotFound
    """
    from ..exceptions import InvalidSpecification

    version = version or VERSION
    try:
        check(spec, _store.load(f"{version}/{schema_name}"), lambda name: _store.load(f"{version}/{name}"), allow_tensors)
    except Violation as violation:
        raise InvalidSpecification(violation, schema_name) from violation


class _Schema(ModuleType):
    def __call__(self, new_path):
        _store.push(new_path)
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        _store.pop()

    @property
    def path(self):
        """The folder that schemas are read from; the package's own are tables in it."""
        return _store.path

    @property
    def version(self):
        """The version of the schemas."""
        return VERSION


sys.modules[__name__].__class__ = _Schema
