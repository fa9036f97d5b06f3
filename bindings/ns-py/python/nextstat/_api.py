"""The functions of the package: arguments as a person gives them, one call of the library, one result."""

import json
import os
import warnings as _warnings

from . import _nextstat
from ._nextstat import Model, NextstatError
from ._results import (
    ContourResult,
    FitResult,
    GoodnessOfFit,
    HypotestResult,
    LimitResult,
    RankingResult,
    ScanResult,
    SignificanceResult,
    ToyHypotestResult,
    ToysResult,
    YieldsResult,
)


class NextstatWarning(UserWarning):
    """A result that a reader should not use without reading its warnings."""


class DeviceError(NextstatError):
    """A device that this build or this machine does not have."""


def _interpolation(defaults, rules):
    return defaults, list((rules or {}).items())


def _pois(poi):
    if poi is None or poi == ():
        return None
    if isinstance(poi, str):
        return [] if poi == "none" else [poi]
    return list(poi)


def _json_bytes(document):
    if isinstance(document, (bytes, bytearray)):
        return bytes(document)
    if isinstance(document, str):
        return document.encode()
    return json.dumps(document, default=_of_numpy).encode()


def _of_numpy(value):
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"`{type(value).__name__}` is not part of a JSON document")


def load_workspace(path, *, measurement=None, patches=(), patchset=None, patch_name=None, poi=None, interp_defaults="smooth", interpolation=None):
    """The model of a pyhf workspace file (`.json`, `.json.gz` or `.json.zst`).

    Parameters
    ----------
    path : path
    measurement : str, optional
        The measurement; the first one if not given.
    patches : sequence of paths
        JSON patches, applied in order after the patch of the set.
    patchset, patch_name : path and str, optional
        A patch set made for the workspace, and the patch of it that is applied.
    poi : str or sequence of str, optional
        Parameters of interest instead of the measurement's; ``"none"`` for none.
    interp_defaults : ``"smooth"`` or ``"pyhf"``
        normsys code4 and histosys code4p, or code1 and code0.
    interpolation : dict, optional
        The rule of one kind of modifier, such as ``{"normsys": "code1"}``.

    Raises
    ------
    WorkspaceError
        With the place in the document, and a hint where there is one.
    ModelError
        A workspace that makes no model.

    Examples
    --------
    >>> import nextstat
    >>> nextstat.load_workspace("examples/simple.json")
    <nextstat.Model `Measurement`: 1 channels, 2 bins, 3 parameters, parameter of interest `mu`>
    """
    if (patchset is None) != (patch_name is None):
        raise TypeError("`patchset` and `patch_name` go together")
    of_set = None if patchset is None else (os.fspath(patchset), patch_name)
    choice = (measurement, _pois(poi), _interpolation(interp_defaults, interpolation))
    if isinstance(patches, (str, os.PathLike)):
        patches = (patches,)
    return Model.load(os.fspath(path), [os.fspath(patch) for patch in patches], of_set, choice)


def model_of(workspace, *, measurement=None, poi=None, interp_defaults="smooth", interpolation=None):
    """The model of a pyhf workspace that is here already: a dictionary, or JSON as text or bytes.

    The arguments are those of `load_workspace`.
    """
    return Model(_json_bytes(workspace), measurement, _pois(poi), _interpolation(interp_defaults, interpolation))


def _settings(model, device="auto", **given):
    if not isinstance(model, Model):
        raise TypeError(f"a Model is needed, not `{type(model).__name__}`: see `load_workspace` and `model_of`")
    if device not in ("auto", "cpu"):
        _refuse(device)
    return given


def _refuse(device):
    if device in ("cuda", "metal"):
        raise DeviceError(f"this build has no {device} backend")
    raise DeviceError(f"`{device}` is no device; there are `auto`, `cpu`, `cuda` and `metal`")


def _checked(result, stacklevel=3):
    """`result`, with a warning if it is not to be trusted."""
    if result._fields.get("converged", True) is False:
        reasons = "; ".join(result._fields.get("warnings", [])) or "a fit did not converge"
        _warnings.warn(reasons, NextstatWarning, stacklevel=stacklevel)
    return result


def _progress(progress, unit):
    """A callable (done, total), or None; True makes a `tqdm` bar."""
    if progress is None or progress is False:
        return None
    if callable(progress):
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("progress=True needs tqdm: pip install nextstat[progress]") from None
    bar = tqdm(unit=unit)

    def update(done, total):
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return update


def fit(model, *, data=None, init=None, fixed=None, bounds=None, covariance=True, minos=(), multi_start=None, seed=0, device="auto"):
    """Fit a model to data.

    Minimises -ln L by a bounded second-order iteration with exact Hessians. Uncertainties are square roots of the diagonal of the inverse Hessian.

    Parameters
    ----------
    model : Model
    data : array, optional
        Event counts (B), or event counts and auxiliary data (B + K), instead of the observed ones.
    init : array or dict, optional
        Starting values: all (P), or of some parameters by name.
    fixed : dict, optional
        Parameters held at a value, by name; the name of a vector holds every element.
    bounds : dict, optional
        Ranges (lower, upper) instead of the model's, by name.
    covariance : bool
        Whether to compute the covariance and correlation matrices beside the standard deviations.
    minos : str or sequence of str
        Parameters whose asymmetric intervals are wanted.
    multi_start : int, optional
        Further random starting points; the lowest minimum is kept.
    seed : int
        Seed of the starting points.

    Returns
    -------
    FitResult

    Warns
    -----
    NextstatWarning
        If the fit did not converge; the result says why.

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.fit(nextstat.load_workspace("examples/simple.json"))
    >>> round(result.value("mu"), 4), round(result.uncertainty("mu"), 4)
    (0.7236, 0.561)
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed)
    names = [minos] if isinstance(minos, str) else list(minos)
    return _checked(FitResult(_nextstat.fit_model(model, settings, "covariance" if covariance else "hessian", names)))


def hypotest(model, mu=1.0, *, test_stat="qtilde", data=None, init=None, fixed=None, bounds=None, multi_start=None, seed=0, device="auto"):
    """Test a value of the parameter of interest by asymptotic formulas (arXiv:1007.1727).

    Parameters
    ----------
    mu : float
        The tested value; `q0` always tests 0.
    test_stat : ``"qtilde"``, ``"q"``, ``"q0"``, ``"t"`` or ``"ttilde"``

    Returns
    -------
    HypotestResult

    Examples
    --------
    >>> import nextstat
    >>> result = nextstat.hypotest(nextstat.load_workspace("examples/simple.json"), 1.0)
    >>> round(result.CLs_obs, 5), [round(cls, 5) for cls in result.CLs_exp]
    (0.5963, [0.01187, 0.0473, 0.17053, 0.46845, 0.84015])
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed)
    return _checked(HypotestResult(_nextstat.hypotest_model(model, settings, mu, test_stat)))


def significance(model, *, mu=1.0, data=None, init=None, fixed=None, bounds=None, multi_start=None, seed=0, device="auto"):
    """The significance of a discovery, observed and expected for a signal of strength `mu`.

    Returns
    -------
    SignificanceResult
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed)
    return _checked(SignificanceResult(_nextstat.significance_model(model, settings, mu)))


def upper_limit(model, *, level=0.05, test_stat="qtilde", grid=None, data=None, init=None, fixed=None, bounds=None, multi_start=None, seed=0, device="auto"):
    """Upper limits on the parameter of interest where CLs is `level`, observed and expected.

    Parameters
    ----------
    level : float
        0.05 for limits at 95% confidence level.
    grid : array, optional
        Interpolate the limits from CLs at these values, as pyhf does, instead of finding them.

    Returns
    -------
    LimitResult

    Examples
    --------
    >>> import nextstat
    >>> limits = nextstat.upper_limit(nextstat.load_workspace("examples/simple.json"))
    >>> round(limits.observed, 4), round(limits.expected[2], 4)
    (1.9455, 1.333)
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed)
    return _checked(LimitResult(_nextstat.limit_model(model, settings, level, test_stat, grid)))


def profile_scan(
    model, mu_values=None, *, parameter=None, points=21, data=None, init=None, fixed=None, bounds=None,
    multi_start=None, seed=0, threads=None, progress=None, device="auto",
):
    """Scan the profile likelihood of one parameter, or of two.

    Parameters
    ----------
    mu_values : array or pair of arrays, optional
        Values of the parameter; if not given, `points` values up to a rise of 2NLL of about 9.
    parameter : str or pair of str, optional
        The parameter of interest if not given.
    progress : callable or True, optional
        Called with (done, total); True shows a bar.

    Returns
    -------
    ScanResult
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    if parameter is None or isinstance(parameter, str):
        axes = [(parameter, mu_values, points)]
    else:
        values = (None, None) if mu_values is None else mu_values
        axes = [(name, axis, points) for name, axis in zip(parameter, values, strict=True)]
        if len(axes) != 2:
            raise TypeError("one parameter is scanned, or two")
    return _checked(ScanResult(_nextstat.scan_model(model, settings, axes, _progress(progress, "point"))))


def contours(
    model, parameters, levels=(0.68, 0.95), *, points=40, data=None, init=None, fixed=None, bounds=None,
    multi_start=None, seed=0, threads=None, progress=None, device="auto",
):
    """Contours of two parameters at confidence levels.

    Returns
    -------
    ContourResult
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    found = _nextstat.contours_model(model, settings, tuple(parameters), list(levels), points, _progress(progress, "point"))
    return _checked(ContourResult(found))


def ranking(
    model, *, methods=("classic", "global", "covariance"), groups=None, minos=False, data=None, init=None, fixed=None, bounds=None,
    multi_start=None, seed=0, threads=None, progress=None, device="auto",
):
    """Impacts of nuisance parameters on the parameter of interest.

    Parameters
    ----------
    methods : sequence of str
        ``"classic"``: conditional fits at the ends of each parameter's interval, before and after the fit. ``"global"``: fits to shifted auxiliary data.
        ``"covariance"``: the formula.
    groups : dict, optional
        Name patterns by group: the common impact of the parameters that match.
    minos : bool
        Post-fit impacts at the ends of MINOS intervals.

    Returns
    -------
    RankingResult
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    methods = [methods] if isinstance(methods, str) else list(methods)
    patterns = [(name, [found] if isinstance(found, str) else list(found)) for name, found in (groups or {}).items()]
    found = _nextstat.ranking_model(model, settings, methods, patterns, minos, _progress(progress, "parameter"))
    found["ranking"] = found.pop("entries")
    return _checked(RankingResult(found))


def throw_toys(model, params, *, n_toys=1000, first=0, seed=0, aux="fluctuated", data=None):
    """Data of toys thrown at `params` (n_toys, B + K): main bins Poisson, auxiliary data as their constraint terms have it.

    Toy number i of a seed is the same however many are thrown.
    """
    return _nextstat.throw_toys(model, _settings(model, data=data, seed=seed), params, (first, first + n_toys), _is_fixed(aux))


def _is_fixed(aux):
    if aux not in ("fluctuated", "fixed"):
        raise ValueError(f"`aux` is `fluctuated` or `fixed`, not `{aux}`")
    if aux == "fixed":
        _warnings.warn("auxiliary data held as observed: such toys fluctuate too little, and p-values made of them are wrong", NextstatWarning, stacklevel=3)
    return aux == "fixed"


def fit_toys(
    model, params=None, *, n_toys=1000, first=0, seed=0, aux="fluctuated", poi_uncertainty=False, data=None, init=None, fixed=None, bounds=None,
    multi_start=None, threads=None, progress=None, device="auto",
):
    """Throw toys at `params`, the best fit to the data if not given, and fit each.

    Parameters
    ----------
    params : array, optional
        Where to throw them (P).
    n_toys, first : int
        How many, and the number of the first: results of consecutive ranges are those of one long run.
    aux : ``"fluctuated"`` or ``"fixed"``
        What happens to auxiliary data; fixed for comparisons only.
    poi_uncertainty : bool
        The standard deviation of the parameter of interest of every toy too.

    Returns
    -------
    ToysResult
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    is_fixed = _is_fixed(aux)
    if params is None:
        best = _nextstat.fit_model(model, settings, "none", [])
        if not best["converged"]:
            raise _nextstat.ToyError(f"the fit that toys would be thrown at did not converge: {'; '.join(best['warnings'])}")
        params = best["bestfit"]
    wanted = {"first": first, "end": first + n_toys, "is_aux_fixed": is_fixed, "wants_uncertainty": poi_uncertainty}
    return ToysResult(_nextstat.fit_toys_model(model, settings, params, wanted, _progress(progress, "toy")))


def hypotest_toys(
    model, mu=1.0, *, n_toys=1000, n_toys_b=None, test_stat="qtilde", seed=0, aux="fluctuated", stop_at_error=None,
    data=None, init=None, fixed=None, bounds=None, multi_start=None, threads=None, progress=None, device="auto",
):
    """Test a value of the parameter of interest by toys.

    Parameters
    ----------
    mu : float
        The tested value.
    n_toys, n_toys_b : int
        Toys of the tested and of the other hypothesis; as many if not given.
    test_stat : ``"qtilde"``, ``"q"`` or ``"q0"``
    stop_at_error : float, optional
        Stop as soon as the Monte-Carlo error of CLs is below this.

    Returns
    -------
    ToyHypotestResult
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    wanted = {
        "mu": mu,
        "test_stat": test_stat,
        "n_toys": [n_toys, n_toys if n_toys_b is None else n_toys_b],
        "is_aux_fixed": _is_fixed(aux),
        "stop_at_error": stop_at_error,
        "range": None,
    }
    return ToyHypotestResult(_nextstat.hypotest_toys_model(model, settings, wanted, _progress(progress, "toy")))


def goodness_of_fit(
    model, *, toys=0, aux="fluctuated", data=None, init=None, fixed=None, bounds=None, multi_start=None, seed=0, threads=None, progress=None, device="auto",
):
    """The distance of the best fit to the saturated model, with its p-value by χ² and, if asked for, by toys.

    Returns
    -------
    GoodnessOfFit
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    return _checked(GoodnessOfFit(_nextstat.goodness_model(model, settings, toys, _is_fixed(aux), _progress(progress, "toy"))))


def yields(model, *, data=None, init=None, fixed=None, bounds=None, multi_start=None, seed=0, threads=None, device="auto"):
    """Expected yields of every channel, sample and bin before the fit and after it, with uncertainties from the full covariance.

    Returns
    -------
    YieldsResult
    """
    settings = _settings(model, device, data=data, init=init, fixed=fixed, bounds=bounds, multi_start=multi_start, seed=seed, threads=threads)
    return _checked(YieldsResult(_nextstat.yields_model(model, settings)))


def asimov_data(model, params=None):
    """What the model expects at `params` (P): main bins, then auxiliary data (B + K); at its starting values if not given."""
    params = model.init if params is None else params
    return model.expected([params], True)[0]


def has_cuda():
    """Whether this build and this machine can compute on an NVIDIA GPU."""
    return False


def has_metal():
    """Whether this build and this machine can compute on an Apple GPU."""
    return False


def devices():
    """What can compute here."""
    return ["cpu"]
