"""What the calls made to pyhf and to `nextstat.pyhf` share: models and documents of both, and how
their answers are compared.

Evaluations agree to 1e-10; of fits ours is not above theirs, and what follows from fits agrees to
what SLSQP leaves open.
"""

import copy
import logging

import numpy as np
import pyhf
import pytest
from specifications import SPECS, workspace

import nextstat.pyhf as ours

logging.disable(logging.CRITICAL)

#: SLSQP stops within this of the minimum in -2 ln L; parameters, p-values and limits follow.
FITTED = {"rtol": 2e-3, "atol": 2e-4}

names = pytest.mark.parametrize("name", SPECS)


def models(name, **settings):
    return tuple(package.Model(copy.deepcopy(SPECS[name]), **settings) for package in (pyhf, ours))


def close(a, b, rtol=1e-10, atol=1e-12):
    np.testing.assert_allclose(np.asarray(b, dtype=float), np.asarray(a, dtype=float), rtol=rtol, atol=atol)


def same_shape(a, b):
    """The same nesting of tuples and lists, the same types and shapes of arrays."""
    assert isinstance(b, type(a)) or np.isscalar(a) and np.isscalar(b), (type(a), type(b))
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for left, right in zip(a, b):
            same_shape(left, right)
    elif isinstance(a, np.ndarray):
        assert a.shape == b.shape and a.dtype == b.dtype


def flat(value):
    return [number for item in value for number in flat(item)] if isinstance(value, (tuple, list)) else [float(value)]


def workspaces(name, **changes):
    return tuple(package.Workspace({**workspace(name), **changes}) for package in (pyhf, ours))


def box_of(model):
    return model.config.suggested_init(), model.config.suggested_bounds(), model.config.suggested_fixed()
