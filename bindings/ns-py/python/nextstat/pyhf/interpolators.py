"""How a template or a factor moves with a parameter: the engine's interpolation rules on arrays of
histograms.

Every class takes histogram sets (S × H × 3 × B: down, nominal, up) and, when called, parameters (S
× A); it returns S × H × A × B: differences to the nominal template for codes 0, 2 and 4p, factors
for codes 1 and 4.
"""

import numpy as np

from .. import _internal
from . import exceptions

__all__ = ["code0", "code1", "code2", "code4", "code4p"]


def __dir__():
    return __all__


class _Interpolator:
    """One rule, `_code`."""

    _code = None
    _is_factor = False

    def __init__(self, histogramssets, subscribe=True):
        self._sets = np.asarray(histogramssets, dtype=float)

    def __call__(self, alphasets):
        alpha = np.asarray(alphasets, dtype=float)[:, None, :, None]
        down, nominal, up = (self._sets[:, :, None, side] for side in range(3))
        if self._is_factor:
            down, up = down / nominal, up / nominal
        else:
            down, up = down - nominal, up - nominal
        shape = np.broadcast_shapes(alpha.shape, up.shape)
        flat = (np.broadcast_to(values, shape).ravel() for values in (down, up, alpha))
        return _internal.interpolate(self._code, *flat).reshape(shape)


class code0(_Interpolator):
    """Piecewise linear."""

    _code = "code0"


class code1(_Interpolator):
    """Piecewise exponential."""

    _code, _is_factor = "code1", True


class code2(_Interpolator):
    """Quadratic inside ±1, linear outside."""

    _code = "code2"


class code4(_Interpolator):
    """A polynomial of sixth order inside ±1, exponential outside."""

    _code, _is_factor = "code4", True

    def __init__(self, histogramssets, subscribe=True, alpha0=1):
        if alpha0 != 1:
            raise exceptions.Unsupported("code4 changes its form at ±1")
        super().__init__(histogramssets)


class code4p(_Interpolator):
    """A polynomial of sixth order inside ±1, linear outside."""

    _code = "code4p"


_CODES = {0: code0, 1: code1, 2: code2, 4: code4, "4p": code4p}


def get(interpcode, do_tensorized_calc=True):
    """Returns the class of the code 0, 1, 2, 4 or ``"4p"``."""
    try:
        return _CODES[interpcode]
    except KeyError:
        raise exceptions.InvalidInterpCode(f"there is no interpolation code `{interpcode}`") from None
