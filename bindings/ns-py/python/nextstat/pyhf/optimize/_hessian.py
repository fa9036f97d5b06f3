"""The inverse of a Hessian, for uncertainties."""

import numpy as np

#: A direction along which curvatures cancel to this fraction is not determined by the data.
_FLAT = 1e-8


def inverse(hessian):
    """Returns the inverse, found in units of the diagonal's widths.

    None if the Hessian is not positive definite.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        width = 1.0 / np.sqrt(np.diag(hessian))
    scaled = hessian * np.outer(width, width)
    if not np.isfinite(scaled).all() or np.linalg.eigvalsh(scaled).min(initial=1.0) < _FLAT:
        return None
    return np.linalg.inv(scaled) * np.outer(width, width)
