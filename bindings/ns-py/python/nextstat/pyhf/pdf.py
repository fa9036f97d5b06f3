"""Models: pyhf's configuration and densities over a compiled model of the engine."""

from __future__ import annotations

import copy
import logging
from typing import Any

import numpy as np

from .. import _internal
from . import _compile, exceptions, probability, schema
from .mixins import _ChannelSummaryMixin
from .modifiers import histfactory_set
from .tensor.common import _tensorviewer_from_sizes, _TensorViewer
from ._current import get_backend

log = logging.getLogger(__name__.removeprefix("nextstat."))

__all__ = ["Model", "_ModelConfig"]


def __dir__():
    return __all__


def _rounded(values):
    """Returns what the engine computed, in double precision, in the precision of the backend."""
    tensorlib = get_backend()[0]
    return values.astype(tensorlib.dtypemap["float"]) if tensorlib.precision == "32b" else values


def _custom_modifiers(modifier_set):
    """Returns the types of modifiers beyond HistFactory's, by name.

    Raises
    ------
    Unsupported
        One that is Python code, and not a formula of `experimental.modifiers`.
    """
    custom = {}
    for name, kind in (modifier_set or {}).items():
        if kind == histfactory_set.get(name):
            continue
        # Few models have any: the module is not imported for the others.
        from .experimental.modifiers import CustomModifier

        if not isinstance(kind, CustomModifier):
            hint = "`nextstat.pyhf.experimental.modifiers.add_custom_modifier` makes those that are formulas"
            raise exceptions.Unsupported(f"the modifier `{name}` is Python code, which the engine cannot run; {hint}")
        custom[name] = kind
    return custom


class _ModelConfig(_ChannelSummaryMixin):
    """What a model says of its parameters, channels and data.

    It is made by `Model`, and read as ``model.config``.

    Attributes
    ----------
    par_map : dict
        The slice and the parameter set of every name, in the order of the parameters.
    auxdata_order : list of str
        Names of the constrained sets, in the order of the auxiliary data.
    npars : int
    parameters : list of str
        Names of the parameter sets, sorted.
    modifier_settings : dict
    """

    def __init__(self, spec, **config_kwargs) -> None:
        super().__init__(channels=spec["channels"])
        self.modifier_settings = config_kwargs.pop("modifier_settings", {"normsys": {"interpcode": "code4"}, "histosys": {"interpcode": "code4p"}})
        if config_kwargs:
            raise exceptions.Unsupported(f"Unsupported options were passed in: {list(config_kwargs)}.")
        self._poi_name = self._poi_index = None
        self._nmaindata = sum(self.channel_nbins.values())

    def _read(self, engine, written):
        """Takes the parameters from the compiled model."""
        self.par_map = _compile.parameter_map(engine, written)
        constrained = [(name, entry["paramset"]) for name, entry in self.par_map.items() if entry["paramset"].constrained]
        self._auxdata = sum((paramset.auxdata for _, paramset in constrained), [])
        self.auxdata_order = [name for name, _ in constrained]
        self._par_order = list(self.par_map)
        self.npars = engine.n_params
        self.parameters = sorted(self.par_map)

    @property
    def par_order(self) -> list[str]:
        """Names of the parameter sets, in order."""
        return self._par_order

    @property
    def par_names(self) -> list[str]:
        """Names of the parameters (P): of a vector, each element's, such as ``gamma[0]``."""
        names = []
        for name in self.par_order:
            paramset = self.param_set(name)
            names += [name] if paramset.is_scalar else [f"{name}[{i}]" for i in range(paramset.n_parameters)]
        return names

    @property
    def poi_name(self) -> str | None:
        """Name of the parameter of interest, or None."""
        return self._poi_name

    @property
    def poi_index(self) -> int | None:
        """Position of the parameter of interest, or None."""
        return self._poi_index

    @property
    def auxdata(self) -> list[float]:
        """Auxiliary data."""
        return self._auxdata

    @property
    def nmaindata(self) -> int:
        """Number of bins."""
        return self._nmaindata

    @property
    def nauxdata(self) -> int:
        """Number of auxiliary data."""
        return len(self._auxdata)

    def param_set(self, name) -> Any:
        """Returns the parameter set called `name`."""
        return self.par_map[name]["paramset"]

    def par_slice(self, name) -> Any:
        """Returns the slice of the parameter set `name` in the parameter vector."""
        return self.par_map[name]["slice"]

    def _all(self, attribute):
        return [value for name in self.par_order for value in getattr(self.param_set(name), attribute)]

    def suggested_init(self) -> list[float]:
        """Returns starting values (P)."""
        return self._all("suggested_init")

    def suggested_bounds(self) -> list[tuple[float, float]]:
        """Returns ranges (P), as pairs."""
        return self._all("suggested_bounds")

    def suggested_fixed(self) -> list[bool]:
        """Returns whether fits leave a parameter where it starts (P)."""
        return self._all("suggested_fixed")

    def set_poi(self, name) -> None:
        """Makes `name` the parameter of interest; None for none.

        Raises
        ------
        InvalidModel
            A name that the model does not have, or a vector.
        """
        if name is None:
            self._poi_name = self._poi_index = None
            return
        if name not in self.par_map:
            raise exceptions.InvalidModel(f"The parameter of interest '{name}' cannot be fit as it is not declared in the model specification.")
        if self.param_set(name).n_parameters > 1:
            raise exceptions.InvalidModel(f"The parameter '{name}' contains multiple components and is not currently supported as parameter of interest.")
        self._poi_name = name
        self._poi_index = self.par_slice(name).start


class _MainModel:
    """The bins: Poisson counts."""

    def __init__(self, model) -> None:
        self._model = model

    @property
    def config(self) -> _ModelConfig:
        return self._model.config

    @property
    def nominal_rates(self) -> Any:
        return self._model.nominal_rates

    def has_pdf(self) -> bool:
        """Returns whether there are bins."""
        return True

    def expected_data(self, pars, return_by_sample=False) -> Any:
        """Returns expected counts (B), or of every sample (S × B); one more axis in front for a
        batch."""
        model = self._model
        points = model._points(pars)
        if return_by_sample:
            yields = model._by_sample(points)
        else:
            yields = model._engine.expected_data(points, aux=False)
        return _rounded(yields if model.batch_size is not None else yields[0])

    def make_pdf(self, pars) -> Any:
        """Returns the counts as independent Poisson distributions."""
        return probability.Independent(probability.Poisson(self.expected_data(pars)), self._model.batch_size)

    def logpdf(self, maindata, pars) -> Any:
        """Returns ln of the counts' density."""
        return self._model.mainlogpdf(maindata, pars)


class _Constraints:
    """The auxiliary measurements of one kind: `normal_data` and `sigmas`, or `poisson_data` and
    `batched_factors` (batch × K).

    Without any the attributes are missing, as in pyhf.
    """

    def __init__(self, kind, positions, scales, batch_size) -> None:
        self._kind, self._positions, self._batch_size = kind, positions, batch_size
        if not len(positions):
            return
        if kind == "normal":
            self.normal_data = positions
            self.sigmas = scales if batch_size is None else np.tile(scales, (batch_size, 1))
        else:
            self.poisson_data = positions
            self.batched_factors = np.tile(scales, (batch_size or 1, 1))

    def has_pdf(self) -> bool:
        """Returns whether there are any auxiliary data."""
        return len(self._positions) > 0


class _ConstraintModel:
    """The auxiliary measurements: a normal or Poisson distribution each."""

    def __init__(self, model) -> None:
        self._model = model
        names = {"normal": [], "poisson": []}
        positions = {"normal": [], "poisson": []}
        scales = {"normal": [], "poisson": []}
        first = 0
        for name in model.config.auxdata_order:
            paramset = model.config.param_set(name)
            kind, n = paramset.pdf_type, paramset.n_parameters
            names[kind].append(name)
            positions[kind] += range(first, first + n)
            scales[kind] += paramset.width() if kind == "normal" else paramset.factors
            first += n
        self.constraints_gaussian, self.constraints_poisson = (
            _Constraints(kind, np.array(positions[kind], dtype=int), np.array(scales[kind]), model.batch_size) for kind in ("normal", "poisson")
        )
        self._kinds = [kind for kind in ("normal", "poisson") if positions[kind]]
        self._positions = {kind: np.array(found, dtype=int) for kind, found in positions.items()}
        self._scales = {kind: np.array(found) for kind, found in scales.items()}
        self.constraints_tv = _TensorViewer([positions[kind] for kind in self._kinds], model.batch_size) if self._kinds else None

    def has_pdf(self) -> bool:
        """Returns whether any parameter is constrained."""
        return bool(self._kinds)

    def make_pdf(self, pars) -> Any:
        """Returns the auxiliary measurements' distributions; None if there are none."""
        if not self._kinds:
            return None
        # What is expected of an auxiliary measurement is the mean of its distribution.
        mean = self._model.expected_auxdata(pars)
        batch_size = self._model.batch_size
        made = []
        for kind in self._kinds:
            of_kind = mean[..., self._positions[kind]]
            pdf = probability.Poisson(of_kind) if kind == "poisson" else probability.Normal(of_kind, np.broadcast_to(self._scales[kind], of_kind.shape))
            made.append(probability.Independent(pdf, batch_size))
        return probability.Simultaneous(made, self.constraints_tv, batch_size)

    def logpdf(self, auxdata, pars) -> Any:
        """Returns ln of the auxiliary measurements' density."""
        return self._model.constraint_logpdf(auxdata, pars)


class Model:
    """A HistFactory model.

    Parameters
    ----------
    spec : dict
        Channels, and settings of parameters, as ``model.json`` has them.
    modifier_set : dict, optional
        Types of modifiers: those of HistFactory, or what `experimental.modifiers` returns. The
        schema has no others, hence ``validate=False``.
    batch_size : int, optional
        How many parameter vectors every call is given at once.
    validate : bool
        Whether to check `spec` against the schema; what makes no model is refused anyway.
    clip_sample_data, clip_bin_data : float, optional
        The least yield of a sample, and of a bin.
    poi_name : str, optional
        The parameter of interest: ``"mu"`` if not given, None for none.
    modifier_settings : dict, optional
        Interpolation, such as ``{"normsys": {"interpcode": "code1"}, "histosys": {"interpcode":
        "code0"}}``.

    Examples
    --------
    >>> import nextstat.pyhf as pyhf
    >>> model = pyhf.simplemodels.uncorrelated_background(
    ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
    ... )
    >>> model.config.par_names
    ['mu', 'uncorr_bkguncrt[0]', 'uncorr_bkguncrt[1]']
    >>> model.expected_actualdata([1.0, 1.0, 1.0])
    array([62., 63.])
    """

    def __init__(self, spec, modifier_set=None, batch_size=None, validate=True, clip_sample_data=None, clip_bin_data=None, **config_kwargs) -> None:
        self._custom = _custom_modifiers(modifier_set)
        self.batch_size = batch_size
        self.spec = copy.deepcopy(spec)
        self.schema = config_kwargs.pop("schema", "model.json")
        self.version = config_kwargs.pop("version", None)
        if validate:
            log.info(f"Validating spec against schema: {self.schema}")
            schema.validate(self.spec, self.schema, version=self.version)
        poi_name = config_kwargs.pop("poi_name", "mu")
        self._config = _ModelConfig(self.spec, **config_kwargs)
        self._clip = {"samples": clip_sample_data, "bins": clip_bin_data}
        if self._clip != {"samples": None, "bins": None}:
            log.warning(f"Clipping expected data: per bin of each sample below {clip_sample_data}, per bin below {clip_bin_data}")
        self._compile()
        self._config._read(self._engine, _compile.settings(self.spec, self._custom))
        if poi_name:
            self._config.set_poi(poi_name)
        self.main_model = _MainModel(self)
        self.constraint_model = _ConstraintModel(self)
        sizes = [size for size in (self._config.nmaindata, self._config.nauxdata) if size]
        self.fullpdf_tv = _tensorviewer_from_sizes(sizes, ["main", "aux"], batch_size)

    def _compile(self):
        self._engine = _compile.compiled(self.spec, self._config, self._clip, self._custom)
        self._floating = _internal.FloatingModel(self._engine)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in ("_engine", "_floating")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._compile()

    @property
    def config(self) -> _ModelConfig:
        """What the model says of itself."""
        return self._config

    @property
    def nominal_rates(self) -> Any:
        """Nominal yields (1 × S × batch × B)."""
        rates = np.zeros((1, len(self.config.samples), 1, self.config.nmaindata))
        for channel in self.spec["channels"]:
            bins = self.config.channel_slices[channel["name"]]
            for sample in channel["samples"]:
                rates[0, self.config.samples.index(sample["name"]), 0, bins] = sample["data"]
        return np.tile(rates, (1, 1, self.batch_size or 1, 1))

    def _points(self, pars):
        """Returns parameters as (N × P)."""
        points = np.atleast_2d(np.asarray(pars, dtype=float))
        if points.shape[-1] != self.config.npars:
            raise exceptions.InvalidPdfParameters(f"eval failed as pars has len {points.shape[-1]} but {self.config.npars} was expected")
        return points

    def _data(self, data, main_only=False):
        """Returns data as (N × D)."""
        data = np.atleast_2d(np.asarray(data, dtype=float))
        wanted = self.config.nmaindata + self.config.nauxdata
        if data.shape[-1] != wanted:
            raise exceptions.InvalidPdfData(f"eval failed as data has len {data.shape[-1]} but {wanted} was expected")
        return data

    def _by_sample(self, points):
        return self._floating.by_sample(points)

    def _shaped(self, values):
        """Returns one value a point: (batch,), or a number."""
        return values if self.batch_size is not None else values[0]

    def expected_data(self, pars, include_auxdata=True) -> Any:
        """Returns expected data (B + K), or of the bins alone (B)."""
        if not include_auxdata:
            return self.expected_actualdata(pars)
        return _rounded(self._shaped(self._engine.expected_data(self._points(pars))))

    def expected_actualdata(self, pars) -> Any:
        """Returns expected counts (B)."""
        return self.main_model.expected_data(pars)

    def expected_auxdata(self, pars) -> Any:
        """Returns expected auxiliary data (K)."""
        return _rounded(self._shaped(self._engine.expected_data(self._points(pars))[:, self.config.nmaindata :]))

    def mainlogpdf(self, maindata, pars) -> Any:
        """Returns ln of the density of the counts `maindata` (B)."""
        maindata = np.atleast_2d(np.asarray(maindata, dtype=float))
        aux = np.tile(self.config.auxdata, (len(maindata), 1))
        main, _ = self._floating.log_terms(self._points(pars), self._data(np.concatenate([maindata, aux], axis=1)))
        return _rounded(self._shaped(main))

    def constraint_logpdf(self, auxdata, pars) -> Any:
        """Returns ln of the density of the auxiliary data `auxdata` (K)."""
        auxdata = np.atleast_2d(np.asarray(auxdata, dtype=float))
        main = np.zeros((len(auxdata), self.config.nmaindata))
        _, constraint = self._floating.log_terms(self._points(pars), self._data(np.concatenate([main, auxdata], axis=1)))
        return _rounded(self._shaped(constraint))

    def logpdf(self, pars, data) -> Any:
        """Returns ln L of `data` (B + K) at `pars` (P): an array of one, or of the batch. -∞ where
        a yield is negative.

        Raises
        ------
        InvalidPdfParameters, InvalidPdfData
            Numbers of values that are not the model's.

        Examples
        --------
        >>> import nextstat.pyhf as pyhf
        >>> model = pyhf.simplemodels.uncorrelated_background(
        ...     signal=[12.0, 11.0], bkg=[50.0, 52.0], bkg_uncertainty=[3.0, 7.0]
        ... )
        >>> model.logpdf([1.0, 1.0, 1.0], [51, 48] + model.config.auxdata).round(6)
        array([-15.387627])
        """
        points, data = self._points(pars), self._data(data)
        if len(points) == 1 and len(data) > 1:
            points = np.tile(points, (len(data), 1))
        return _rounded(self._floating.log_density(points, data))

    def pdf(self, pars, data) -> Any:
        """Returns L of `data` at `pars`."""
        return get_backend()[0].exp(self.logpdf(pars, data))

    def make_pdf(self, pars) -> Any:
        """Returns the distribution of the data at `pars`, to draw samples from: its parts are the
        counts' and the auxiliary measurements'.
        """
        parts = [self.main_model.make_pdf(pars)]
        if self.constraint_model.has_pdf():
            parts.append(self.constraint_model.make_pdf(pars))
        return probability.Simultaneous(parts, self.fullpdf_tv, self.batch_size)

    def _box(self, init_pars, par_bounds, fixed_vals):
        """Returns start, lower and upper ends, and which are fixed (P each), as the engine takes
        them."""
        start = np.array(init_pars, dtype=float)
        bounds = np.asarray(par_bounds, dtype=float)
        fixed = [False] * len(start)
        for index, value in fixed_vals:
            start[index], fixed[index] = value, True
        return start, bounds[:, 0], bounds[:, 1], fixed

    def _need_plain(self):
        """Raises `Unsupported` for settings that fits do not know."""
        if self.batch_size not in (None, 1):
            raise exceptions.Unsupported("a fit is of one data set; make the model without `batch_size`")

    def _fit(self, data, box, wants_errors, minos=()):
        self._need_plain()
        return self._floating.fit(self._data(data)[0], _named(box), wants_errors, list(minos))

    def _nll_and_grad(self, pars, data):
        """Returns -ln L and its gradient (P); NaN where -ln L is not finite."""
        self._need_plain()
        return self._floating.nll_and_grad(self._points(pars)[0], self._data(data)[0])

    def _hessian(self, pars, data):
        """Returns the Hessian of -ln L (P × P); NaN where -ln L is not finite."""
        self._need_plain()
        return self._floating.hessian(self._points(pars)[0], self._data(data)[0])

    def _fits_of_test(self, data, box, wanted):
        self._need_plain()
        return self._floating.fits_of_test(self._data(data)[0], _named(box), wanted)

    def _fit_each(self, data, box, progress):
        self._need_plain()
        return self._floating.fit_each(self._data(data), _named(box), progress)


def _named(box):
    """Returns a box of starts, ranges and flags as the engine takes it."""
    return dict(zip(("start", "lower", "upper", "fixed"), box))
