"""What is raised, by pyhf's names."""

import sys
import warnings

from .._internal import Escaped

__all__ = [
    "FailedMinimization",
    "ImportBackendError",
    "InvalidArchiveHost",
    "InvalidBackend",
    "InvalidInterpCode",
    "InvalidMeasurement",
    "InvalidModel",
    "InvalidModifier",
    "InvalidNameReuse",
    "InvalidOptimizer",
    "InvalidPatchLookup",
    "InvalidPatchSet",
    "InvalidPdfData",
    "InvalidPdfParameters",
    "InvalidSpecification",
    "InvalidTestStatistic",
    "InvalidWorkspaceOperation",
    "PatchSetVerificationError",
    "UnspecifiedPOI",
    "Unsupported",
]


def __dir__():
    return __all__


class Unsupported(Escaped, Exception):
    """Something that this configuration does not do."""


class InvalidMeasurement(Escaped, Exception):
    """A measurement that the workspace does not have."""


class InvalidNameReuse(Escaped, Exception):
    """One parameter name for things that cannot share a parameter."""


class SchemaNotFound(Escaped, FileNotFoundError):
    """A schema that does not exist."""


class InvalidSpecification(Escaped, Exception):
    """A document that is not as its schema has it.

    `path` is the place in the document, such as ``channels[0].samples[1].data``; `instance` what
    is there; `schema` the schema's name; `parent` the validator's own error.
    """

    def __init__(self, ValidationError, schema=None):
        self.exc_info = sys.exc_info()
        self.parent = ValidationError
        self.schema = schema
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in ValidationError.path)
        self.path = "".join(steps).lstrip(".")
        self.instance = ValidationError.instance
        super().__init__(f"{ValidationError.message}.\n\tPath: {self.path}\n\tInstance: {self.instance} Schema: {self.schema}")


class InvalidArchiveHost(Escaped, Exception):
    """An archive at an address that is not an approved host."""


class InvalidArchive(Escaped, Exception):
    """An address that does not answer with an archive."""


class InvalidPatchSet(Escaped, Exception):
    """A patch set whose patches contradict each other or its labels."""


class InvalidPatchLookup(Escaped, Exception):
    """A patch that the patch set does not have."""


class PatchSetVerificationError(Escaped, Exception):
    """A workspace that is not the one that the patch set was made for."""


class InvalidWorkspaceOperation(Escaped, Exception):
    """Workspaces that cannot be combined, pruned or renamed in this way."""


class UnspecifiedPOI(Escaped, Exception):
    """A model without parameter of interest, where one is needed."""


class InvalidModel(Escaped, Exception):
    """A specification that follows the schema but makes no model."""


class InvalidModifier(Escaped, Exception):
    """A modifier that does not exist, or does not fit its sample."""


class InvalidInterpCode(Escaped, Exception):
    """An interpolation code that does not exist."""


class InvalidTestStatistic(Escaped, Exception):
    """A test statistic that does not exist."""


class ImportBackendError(Escaped, Exception):
    """A backend whose libraries are not installed, or that this engine does not have."""


class InvalidBackend(Escaped, Exception):
    """A backend that does not exist."""


class InvalidOptimizer(Escaped, Exception):
    """An optimizer that does not exist."""


class InvalidPdfParameters(Escaped, Exception):
    """Parameter values that are not those of the model."""


class InvalidPdfData(Escaped, Exception):
    """Data that are not those of the model."""


class FailedMinimization(Escaped, Exception):
    """A fit that did not converge; `result` is where it stopped."""

    def __init__(self, result):
        self.result = result
        super().__init__(getattr(result, "message", "the fit failed, and its result does not say why"))


def _deprecated_api_warning(deprecated_api, new_api, deprecated_release, remove_release):
    warnings.warn(
        f"{deprecated_api} is deprecated in favor of {new_api} as of pyhf v{deprecated_release} and will be removed in pyhf v{remove_release}.",
        DeprecationWarning,
        stacklevel=3,
    )
