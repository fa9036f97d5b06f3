"""Hypothesis tests: CLs of one value of the parameter of interest."""

from __future__ import annotations

from typing import Any

from .. import exceptions
from .._current import get_backend
from . import mle, utils


def hypotest(
    poi_test,
    data,
    pdf,
    init_pars=None,
    par_bounds=None,
    fixed_params=None,
    calctype="asymptotics",
    return_tail_probs=False,
    return_expected=False,
    return_expected_set=False,
    return_calculator=False,
    **kwargs,
) -> Any:
    """Tests the value `poi_test` of the parameter of interest.

    Parameters
    ----------
    calctype : ``"asymptotics"`` or ``"toybased"``
    return_tail_probs, return_expected, return_expected_set, return_calculator : bool
        What to return beside the observed CLs, always in this order.
    **kwargs
        Options of the calculator, such as ``test_stat="q"``.

    Returns
    -------
    CLs, or a tuple: CLs; [CLsb, CLb]; the median expected CLs; the expected CLs at -2 … +2 standard
    deviations; the calculator. With ``test_stat="q0"`` the p-value of the background, and [CLb] for
    the tail probabilities.

    Examples
    --------
    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> observed, band = pyhf.infer.hypotest(
    ...     1.0, [51, 48] + model.config.auxdata, model, return_expected_set=True
    ... )
    >>> round(float(observed), 6), [round(float(expected), 6) for expected in band]
    (0.052516, [0.002606, 0.013821, 0.064455, 0.235261, 0.573042])
    """
    init_pars, par_bounds, fixed_params = mle._given(pdf, init_pars, par_bounds, fixed_params)
    if pdf.config.poi_index is None:
        raise exceptions.UnspecifiedPOI("No POI is defined. A POI is required to run a hypothesis test.")
    if not utils.all_pois_floating(pdf, fixed_params):
        raise exceptions.InvalidModel(
            f"POI at index [{pdf.config.poi_index}] is set as fixed, which makes profile likelihood ratio based inference impossible. Please unfix the POI to continue."
        )
    calculator = utils.create_calculator(calctype, data, pdf, init_pars, par_bounds, fixed_params, **kwargs)
    statistic = calculator.teststatistic(poi_test)
    distributions = calculator.distributions(poi_test)
    tensorlib, _ = get_backend()
    clsb, clb, cls = (tensorlib.astensor(value) for value in calculator.pvalues(statistic, *distributions))
    expected_clsb, _, expected_cls = calculator.expected_pvalues(*distributions)
    is_discovery = kwargs.get("test_stat", "qtilde") == "q0"
    band = [tensorlib.astensor(value) for value in (expected_clsb if is_discovery else expected_cls)]
    wanted = [clsb if is_discovery else cls]
    if return_tail_probs:
        wanted.append([clb] if is_discovery else [clsb, clb])
    if return_expected:
        wanted.append(band[2])
    if return_expected_set:
        wanted.append(band)
    if return_calculator:
        wanted.append(calculator)
    return tuple(wanted) if len(wanted) > 1 else wanted[0]
