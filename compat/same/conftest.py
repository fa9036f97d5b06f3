"""Every test begins with the backends that the packages begin with."""

import pyhf
import pytest

import nextstat.pyhf as ours


@pytest.fixture(autouse=True)
def defaults():
    pyhf.set_backend("numpy")
    ours.set_backend("numpy")
