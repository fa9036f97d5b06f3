"""A set of parameters that came from modifiers of one name: how many, where they start, what
constrains them.
"""

import math

__all__ = ["constrained_by_normal", "constrained_by_poisson", "constrained_paramset", "paramset", "unconstrained"]


def __dir__():
    return __all__


class paramset:
    """A set of parameters.

    Attributes
    ----------
    name : str
    n_parameters : int
    is_scalar : bool
        Whether it is one number rather than one number per bin.
    suggested_init : list of float
    suggested_bounds : list of tuple
    """

    def __init__(self, **kwargs):
        self.name = kwargs.pop("name")
        self.n_parameters = kwargs.pop("n_parameters")
        self.suggested_init = kwargs.pop("inits")
        self.suggested_bounds = kwargs.pop("bounds")
        self._suggested_fixed = kwargs.pop("fixed")
        self.is_scalar = kwargs.pop("is_scalar")
        if self.is_scalar and self.n_parameters != 1:
            raise ValueError(f"misconfigured parameter set {self.name}. Scalar but N>1 parameters.")

    @property
    def suggested_fixed(self):
        """Whether each is fixed; may be set to one flag for all."""
        if isinstance(self._suggested_fixed, bool):
            return [self._suggested_fixed] * self.n_parameters
        return self._suggested_fixed

    @suggested_fixed.setter
    def suggested_fixed(self, value):
        if not isinstance(value, bool) and len(value) != self.n_parameters:
            raise AssertionError(f"{len(value)} flags for the {self.n_parameters} parameters of {self.name}")
        self._suggested_fixed = value

    @property
    def suggested_fixed_as_bool(self):
        """The flag that all share; `RuntimeError` if they differ."""
        flags = self.suggested_fixed
        if any(flag != flags[0] for flag in flags):
            raise RuntimeError(f"{flags} is neither all-True nor all-False, so not compressible")
        return flags[0]


class unconstrained(paramset):
    """Parameters that only the main measurement determines."""

    constrained = False


class constrained_paramset(paramset):
    """Parameters with an auxiliary measurement each."""

    constrained = True

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.auxdata = kwargs.pop("auxdata")


class constrained_by_normal(constrained_paramset):
    """Parameters whose auxiliary measurements are normally distributed round them, with widths
    `sigmas` (1 if there are none).
    """

    pdf_type = "normal"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        sigmas = kwargs.pop("sigmas", None)
        if sigmas:
            self.sigmas = sigmas

    def width(self):
        """Returns standard deviations before a fit."""
        return getattr(self, "sigmas", None) or [1.0] * self.n_parameters


class constrained_by_poisson(constrained_paramset):
    """Parameters whose auxiliary measurements are counts, expected to be `factors` times the
    parameter.
    """

    pdf_type = "poisson"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.factors = kwargs.pop("factors")

    def width(self):
        """Returns relative standard deviations of the counts."""
        if not self.factors:
            raise RuntimeError(f"{self.name} has no factors, and so no width")
        return [1.0 / math.sqrt(factor) for factor in self.factors]
