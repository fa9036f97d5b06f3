"""Models of one channel, a signal and a background."""

from __future__ import annotations

from .pdf import Model

__all__ = ["correlated_background", "uncorrelated_background"]


def __dir__():
    return __all__


def _model(channel, signal, background, modifier, batch_size, validate):
    signal = {"name": "signal", "data": signal, "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
    background = {"name": "background", "data": background, "modifiers": [modifier]}
    return Model({"channels": [{"name": channel, "samples": [signal, background]}]}, batch_size=batch_size, validate=validate)


def correlated_background(signal, bkg, bkg_up, bkg_down, batch_size=None, validate=True) -> Model:
    """Returns a background that one parameter moves in all bins, to `bkg_up` at +1 and `bkg_down`
    at -1.

    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.correlated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_up=[45.0, 57.0], bkg_down=[55.0, 47.0]
    ... )
    >>> model.expected_data(model.config.suggested_init())
    array([62., 63.,  0.])
    """
    modifier = {"name": "correlated_bkg_uncertainty", "type": "histosys", "data": {"hi_data": bkg_up, "lo_data": bkg_down}}
    return _model("single_channel", signal, bkg, modifier, batch_size, validate)


def uncorrelated_background(signal, bkg, bkg_uncertainty, batch_size=None, validate=True) -> Model:
    """Returns a background whose bins have independent uncertainties.

    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> model.config.parameters
    ['mu', 'uncorr_bkguncrt']
    """
    modifier = {"name": "uncorr_bkguncrt", "type": "shapesys", "data": bkg_uncertainty}
    return _model("singlechannel", signal, bkg, modifier, batch_size, validate)


def hepdata_like(signal_data, bkg_data, bkg_uncerts, batch_size=None) -> Model:
    """Calls `uncorrelated_background` by its old name."""
    from .exceptions import _deprecated_api_warning

    _deprecated_api_warning("pyhf.simplemodels.hepdata_like", "pyhf.simplemodels.uncorrelated_background", "0.6.2", "0.8.0")
    return uncorrelated_background(signal_data, bkg_data, bkg_uncerts, batch_size)
