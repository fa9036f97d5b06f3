"""pyhf's names over the nextstat engine: `import nextstat.pyhf as pyhf` runs code that was written
for pyhf 0.7.

Specifications, models, data, results and exceptions are pyhf's; likelihoods and fits are computed
by the engine. What differs, and why, is listed in `docs/compatibility.md`.

>>> import nextstat.pyhf as pyhf
>>> model = pyhf.simplemodels.uncorrelated_background(
...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
... )
>>> data = [51, 48] + model.config.auxdata
>>> round(float(pyhf.infer.hypotest(1.0, data, model)), 5)
0.05252
"""

from . import exceptions, events, tensor
from .tensor.manager import get_backend, set_backend
from . import optimize
from . import schema, parameters, probability, interpolators, modifiers, pdf, workspace, utils, compat, patchset, simplemodels, infer
from .patchset import PatchSet
from .pdf import Model
from .workspace import Workspace

#: The release of pyhf whose interface this is.
__version__ = "0.7.6"

__all__ = [
    "Model",
    "PatchSet",
    "Workspace",
    "__version__",
    "compat",
    "default_backend",
    "exceptions",
    "get_backend",
    "infer",
    "interpolators",
    "modifiers",
    "optimizer",
    "parameters",
    "patchset",
    "pdf",
    "probability",
    "schema",
    "set_backend",
    "simplemodels",
    "tensor",
    "tensorlib",
    "utils",
    "workspace",
]


def __dir__():
    return __all__


def __getattr__(name):
    if name == "tensorlib":
        return get_backend()[0]
    if name == "optimizer":
        return get_backend()[1]
    if name == "default_backend":
        return get_backend(default=True)[0]
    if name in ("readxml", "writexml", "contrib", "experimental"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
