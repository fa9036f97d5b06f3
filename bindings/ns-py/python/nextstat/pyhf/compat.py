"""Names of parameters as ROOT has them."""

import re

__all__ = ["interpret_rootname", "paramset_to_rootnames"]


def __dir__():
    return __all__


def paramset_to_rootnames(paramset):
    """Returns ROOT's name of a scalar parameter, or its names of the elements of a vector.

    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> pyhf.compat.paramset_to_rootnames(model.config.param_set("uncorr_bkguncrt"))
    ['gamma_uncorr_bkguncrt_0', 'gamma_uncorr_bkguncrt_1']
    """
    if paramset.name == "lumi":
        return "Lumi"
    if not paramset.is_scalar:
        return [f"gamma_{paramset.name}_{i}" for i in range(paramset.n_parameters)]
    return f"alpha_{paramset.name}" if paramset.constrained else paramset.name


def interpret_rootname(rootname):
    """Returns what a name says of its parameter: `constrained`, `is_scalar`, `name` and `element`,
    or ``"n/a"`` for what it does not say.

    >>> import nextstat.pyhf as pyhf
    >>> pyhf.compat.interpret_rootname("gamma_foo_0")
    {'constrained': 'n/a', 'is_scalar': False, 'name': 'foo', 'element': 0}
    """
    meaning = {"constrained": "n/a", "is_scalar": "n/a", "name": "n/a", "element": "n/a"}
    if rootname.startswith("gamma_"):
        match = re.fullmatch(r"gamma_(.+)_(\d+)", rootname)
        if not match:
            raise ValueError(f"confusing rootname {rootname}: a gamma parameter ends with its bin, as in `gamma_name_0`")
        return {**meaning, "is_scalar": False, "name": match[1], "element": int(match[2])}
    if rootname.startswith("alpha_"):
        if rootname == "alpha_":
            raise ValueError(f"confusing rootname {rootname}: nothing follows `alpha_`")
        return {**meaning, "constrained": True, "is_scalar": True, "name": rootname.removeprefix("alpha_")}
    return {**meaning, "constrained": False, "is_scalar": True, "name": "lumi" if rootname == "Lumi" else rootname}
