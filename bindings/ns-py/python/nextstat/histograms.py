"""From histograms to a workspace: channels, samples and systematics, each with the histogram that
an analyst has at hand.

A histogram is anything with `.axes`, `.values()` and `.variances()` (the UHI protocol: `hist`,
`boost-histogram`, `uproot`), a pair (values, edges) as of `numpy.histogram`, an array, or a path in
a ROOT file, `"file.root:folder/histogram"`, for which uproot is imported. None of those packages is
imported otherwise. What comes out is a pyhf workspace, and `nextstat.model_of` is what
reads it.

>>> from nextstat.histograms import WorkspaceBuilder
>>> builder = WorkspaceBuilder()
>>> region = builder.channel("signal_region", data=[57, 63])
>>> _ = region.sample("signal", [12, 11]).normfactor("mu")
>>> _ = region.sample("background", [50, 52]).shapesys("uncorrelated", [3, 7])
>>> model = builder.model(poi="mu")
>>> model
<nextstat.Model `measurement`: 1 channel, 2 bins, 3 parameters, parameter of interest `mu`>
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ._arguments import change_of_factor, leaves_nothing, real, text
from ._errors import counted
from ._models import model_of
from ._nextstat import WorkspaceError, number
from ._root_files import read_histogram, split_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._nextstat import Model

# Edges that differ by less than this fraction of a bin are the same.
_SAME_EDGE = 1e-6


def _error(place, message, hint=None):
    error = WorkspaceError(f"{place}: {message}" if place else message)
    error.hint = hint
    if hint is not None and hasattr(error, "add_note"):
        error.add_note(f"hint: {hint}")
    return error


class Binned:
    """The values of one histogram with one axis.

    Attributes
    ----------
    values : list of float
        Contents (B).
    variances : list of float or None
        Their variances (B), if the histogram has them.
    bins : list or None
        What each bin is (B): a pair (lower, upper) or the label of a category; None for arrays.
    """

    __slots__ = ("bins", "values", "variances")

    def __init__(self, values: list[float], variances: list[float] | None = None, bins: list[Any] | None = None) -> None:
        self.values, self.variances, self.bins = values, variances, bins

    @property
    def edges(self) -> list[float] | None:
        """The edges (B + 1); None without an axis, or with categories."""
        if not self.bins or isinstance(self.bins[0], str):
            return None
        return [self.bins[0][0], *(upper for _, upper in self.bins)]


def read(histogram: Any, *, flow: str = "drop", place: str = "") -> Binned:
    """Returns the values, variances and bins of a histogram.

    Parameters
    ----------
    histogram : UHI histogram, pair (values, edges), array, or path in a ROOT file
    flow : ``"drop"`` or ``"merge"``
        What happens to under- and overflow: nothing, or they join the first and the last bin.
    place : str
        What errors say the histogram is of.

    Returns
    -------
    Binned

    Examples
    --------
    >>> from nextstat.histograms import read
    >>> read(([3.0, 4.0], [0.0, 1.0, 2.0])).edges
    [0.0, 1.0, 2.0]
    """
    if isinstance(histogram, Binned):
        return histogram
    if isinstance(histogram, str):
        return _of_uhi(read_histogram(histogram, place), flow, place)
    if hasattr(histogram, "axes") and callable(getattr(histogram, "values", None)):
        return _of_uhi(histogram, flow, place)
    if isinstance(histogram, tuple) and len(histogram) == 2 and hasattr(histogram[1], "__len__"):
        values, edges = (_numbers(part, place) for part in histogram)
        if len(edges) != len(values) + 1:
            raise _error(place, f"{counted(len(values), 'bin')} with {counted(len(edges), 'edge')}")
        for lower, upper in pairwise(edges):
            if not lower < upper:
                raise _error(place, f"the edges do not ascend from {lower:g} to {upper:g}")
        return Binned(values, None, list(pairwise(edges)))
    return Binned(_numbers(histogram, place))


def _numbers(values, place):
    if hasattr(values, "tolist"):
        values = values.tolist()
    try:
        return [number(value, "") for value in values]
    except TypeError:
        hint = "a histogram has `.axes`, `.values()` and `.variances()`; arrays have one dimension"
        raise _error(place, f"`{type(values).__name__}` is neither a histogram nor an array of numbers", hint) from None


def _of_uhi(histogram, flow, place):
    if flow not in ("drop", "merge"):
        raise ValueError(f"`flow` is `drop` or `merge`, not `{flow}`")
    # An enumeration or a string, by package.
    if str(getattr(histogram, "kind", "COUNT")).rsplit(".", 1)[-1] != "COUNT":
        raise _error(place, "the histogram is a profile: it has means, not counts")
    if len(histogram.axes) != 1:
        hint = "project it, or make a channel of each slice"
        raise _error(place, f"the histogram has {len(histogram.axes)} axes", hint)
    axis = histogram.axes[0]
    bins = [_bin(axis[i]) for i in range(len(axis))]
    if flow == "drop":
        variances = histogram.variances()
        return Binned(_numbers(histogram.values(), place), None if variances is None else _numbers(variances, place), bins)
    ends = [bool(getattr(getattr(axis, "traits", None), side, False)) for side in ("underflow", "overflow")]
    variances = histogram.variances(flow=True)
    values = _merged(_numbers(histogram.values(flow=True), place), ends, len(bins))
    return Binned(values, None if variances is None else _merged(_numbers(variances, place), ends, len(bins)), bins)


def _bin(found):
    if isinstance(found, str):
        return found
    try:
        lower, upper = found
        return float(lower), float(upper)
    except TypeError:
        return str(found)


def _merged(values, ends, n_bins):
    """Returns `values` with the under- and overflow bins that `ends` says there are added to their
    neighbours.
    """
    has_under, has_over = ends
    if len(values) != n_bins + has_under + has_over:
        # uproot counts both whatever its axis says.
        has_under = has_over = len(values) == n_bins + 2
    inner = values[has_under : len(values) - has_over]
    if has_under:
        inner[0] += values[0]
    if has_over:
        inner[-1] += values[-1]
    return inner


def _same_bins(first, second):
    if isinstance(first[0], str) or isinstance(second[0], str):
        return first == second
    width = min(upper - lower for lower, upper in first)
    return all(abs(a - b) <= _SAME_EDGE * width for one, other in zip(first, second) for a, b in zip(one, other) if a != b)


class Sample:
    """A sample of a channel, to which systematics are added; every method returns the sample, so
    that calls chain.

    Made by `Channel.sample`. Modifiers of one name share one parameter, in all samples and
    channels.
    """

    def __init__(self, channel: Channel, name: str, histogram: Any) -> None:
        self._channel = channel
        self.name = name
        self.nominal = channel._read(histogram, f"sample `{name}`")
        self._modifiers = []

    def _place(self, kind=None, name=None):
        place = f"channel `{self._channel.name}`, sample `{self.name}`"
        return place if kind is None else f"{place}, {kind} `{name}`"

    def _add(self, kind, name, data=None):
        text("name", name)
        if any(modifier["name"] == name and modifier["type"] == kind for modifier in self._modifiers):
            raise _error(self._place(kind, name), "the sample has it already")
        self._modifiers.append({"name": name, "type": kind, "data": data})
        return self

    def _template(self, kind, name, side, histogram):
        return self._channel._read(histogram, f"sample `{self.name}`, {kind} `{name}`, {side}").values

    def _widths(self, kind, name, uncertainties):
        """Returns standard deviations of the bins (B): those given, or of the histogram's
        variances."""
        if uncertainties is not None:
            widths = self._channel._read(uncertainties, f"sample `{self.name}`, {kind} `{name}`, uncertainties").values
            for bin, width in enumerate(widths):
                if width < 0.0:
                    raise _error(self._place(kind, name), f"bin {bin}: an uncertainty of {width:g}")
            return widths
        if self.nominal.variances is None:
            hint = "fill the histogram with weights (`storage=hist.storage.Weight()`), or pass `uncertainties`"
            raise _error(self._place(kind, name), "the histogram has no variances", hint)
        for bin, variance in enumerate(self.nominal.variances):
            if not (math.isfinite(variance) and variance >= 0.0):
                raise _error(self._place(kind, name), f"bin {bin}: a variance of {variance}")
        return [math.sqrt(variance) for variance in self.nominal.variances]

    def normfactor(self, name: str) -> Sample:
        """Returns a free factor, such as the signal strength."""
        return self._add("normfactor", name)

    def shapefactor(self, name: str) -> Sample:
        """Returns a free factor for every bin."""
        return self._add("shapefactor", name)

    def lumi(self, name: str = "lumi") -> Sample:
        """Returns the factor of the integrated luminosity; its uncertainty is given to
        `WorkspaceBuilder.workspace`.
        """
        return self._add("lumi", name)

    def normsys(self, name: str, uncertainty: float | None = None, *, up: float | None = None, down: float | None = None) -> Sample:
        """Returns an uncertainty of the rate: relative and the same both ways (`0.05`), or the
        factors `up` and `down` (`1.09`, `0.92`).
        """
        place = self._place("normsys", name)
        if (uncertainty is None) == (up is None and down is None):
            raise _error(place, "it has a relative `uncertainty`, or `up` and `down`")
        if uncertainty is not None:
            width = real("uncertainty", uncertainty)
            if leaves_nothing(-abs(width)):
                change = change_of_factor(width)
                same = "" if change is None else f", `{change}` says the same"
                hint = f"it is relative: 0.05 for 5 %; a factor is `up=1.05, down=0.95`{same}"
                raise _error(place, f"an uncertainty of {width:g} leaves nothing of the rate one standard deviation down", hint)
            up, down = 1.0 + width, 1.0 - width
        if up is None or down is None:
            raise _error(place, "`up` and `down` go together")
        return self._add("normsys", name, {"hi": real("up", up), "lo": real("down", down)})

    def histosys(
        self,
        name: str,
        *,
        up: Any,
        down: Any = None,
        split: bool = False,
        symmetrize: str | None = None,
        smooth: str | None = None,
        threshold: float | None = None,
    ) -> Sample:
        """Returns an uncertainty of the shape by the histograms one standard deviation up and down.

        Parameters
        ----------
        up, down : histogram
            Without `down`, the change up is mirrored.
        split : bool
            Whether the change of the rate becomes a normsys of the same name, and the templates
            keep the nominal number of events. Rates are then never negative, and shape and rate
            stay one parameter.
        symmetrize : ``"average"``, optional
            Both changes become half the difference of the templates, `nextstat.build.averaged`.
        smooth : ``"353QH, twice"`` or ``"rebin"``, optional
            Smooths the ratios of the templates to the nominal one first, as
            `nextstat.build.smooth_ratio` and `nextstat.build.smooth_by_rebinning` do.
        threshold : float, optional
            The largest relative statistical error of merged bins, for ``smooth="rebin"``.
        """
        sides = {"up": up} if down is None else {"up": up, "down": down}
        read = {side: self._channel._read(one, f"sample `{self.name}`, histosys `{name}`, {side}") for side, one in sides.items()}
        nominal = self.nominal.values
        varied = [one.values for one in read.values()] if smooth is None else self._smoothed(name, read, smooth, threshold)
        up, down = (varied[0], [2.0 * n - u for n, u in zip(nominal, varied[0])]) if down is None else varied
        if symmetrize is not None:
            up, down = self._symmetrized(name, symmetrize, varied)
        if split:
            factors = [self._factor(name, side, values) for side, values in (("up", up), ("down", down))]
            up, down = ([value / factor for value in values] for values, factor in zip((up, down), factors))
            self._add("normsys", name, {"hi": factors[0], "lo": factors[1]})
        return self._add("histosys", name, {"hi_data": up, "lo_data": down})

    def _smoothed(self, name, read, smooth, threshold):
        from .build.templates import TemplatePair, smoothed, template_of

        if smooth not in ("353QH, twice", "rebin"):
            raise _error(self._place("histosys", name), f"`smooth` is `353QH, twice` or `rebin`, not `{smooth}`")
        if (smooth == "rebin") != (threshold is not None):
            hint = "`threshold=0.05` is a relative statistical error of 5 %"
            raise _error(self._place("histosys", name), '`threshold` goes with `smooth="rebin"`, and only with that', hint)
        nominal, *sides = (template_of(one) for one in (self.nominal, *read.values()))
        pair = TemplatePair(self._channel.name, self.name, name, name, nominal, sides[0], sides[1] if len(sides) > 1 else None, ())
        return [values.tolist() for values in smoothed(pair, smooth, threshold).varied]

    def _symmetrized(self, name, method, varied):
        from .build.templates import averaged

        if method != "average" or len(varied) != 2:
            hint = "without `down` the change up is mirrored"
            raise _error(self._place("histosys", name), '`symmetrize` is `"average"`, of `up` and `down`', hint)
        return [values.tolist() for values in averaged(self.nominal.values, *varied)]

    def _factor(self, name, side, values):
        nominal, varied = math.fsum(self.nominal.values), math.fsum(values)
        if not (nominal > 0.0 and varied > 0.0):
            message = f"{side}: {varied:g} events against {nominal:g} nominal ones make no factor"
            raise _error(self._place("histosys", name), message, "leave out `split`")
        return varied / nominal

    def staterror(self, uncertainties: Any = None, *, name: str | None = None) -> Sample:
        """Returns uncertainties of simulated events, one parameter per bin that all samples of the
        channel share; from the histogram's variances if not given.
        """
        name = f"staterror_{self._channel.name}" if name is None else name
        return self._add("staterror", name, self._widths("staterror", name, uncertainties))

    def shapesys(self, name: str, uncertainties: Any = None) -> Sample:
        """Returns uncertainties of each bin by itself, of this sample alone; from the histogram's
        variances if not given.
        """
        return self._add("shapesys", name, self._widths("shapesys", name, uncertainties))

    def _document(self):
        return {"name": self.name, "data": self.nominal.values, "modifiers": list(self._modifiers)}


class Channel:
    """A channel: observed data and samples in the same bins. Made by `WorkspaceBuilder.channel`."""

    def __init__(self, name: str, flow: str) -> None:
        self.name = name
        self._flow = flow
        self._data = None
        # The first histogram with an axis, and where it is from.
        self._reference = None
        self._n_bins = None
        self._samples = {}

    def sample(self, name: str, histogram: Any) -> Sample:
        """Adds a sample with its nominal histogram; returns the `Sample`."""
        if text("name", name) in self._samples:
            raise _error(f"channel `{self.name}`, sample `{name}`", "the channel has it already")
        self._samples[name] = Sample(self, name, histogram)
        return self._samples[name]

    def data(self, histogram: Any) -> Channel:
        """Sets the observed data: a histogram, or ``"asimov"`` for the sum of the nominal samples;
        returns the channel.
        """
        place = f"channel `{self.name}`, data"
        if isinstance(histogram, str) and histogram != "asimov" and split_path(histogram) is None:
            raise _error(place, f'`{histogram}` is not a histogram; there is "asimov"', "a histogram in a file is `file.root:folder/histogram`")
        found = histogram if isinstance(histogram, str) and histogram == "asimov" else self._read(histogram, "data")
        for bin, value in enumerate(found.values if isinstance(found, Binned) else ()):
            if value < 0.0:
                raise _error(place, f"bin {bin}: {value:g} is not a valid number of events")
        self._data = found
        return self

    @property
    def edges(self) -> list[float] | None:
        """The edges of the bins (B + 1), such as plots take; None if no histogram has an axis of
        numbers.
        """
        return None if self._reference is None else self._reference[0].edges

    def _read(self, histogram, what):
        place = f"channel `{self.name}`, {what}"
        binned = read(histogram, flow=self._flow, place=place)
        self._check(binned, place, what)
        return binned

    def _check(self, binned, place, what):
        """Refuses bins that are not those of every histogram before."""
        for bin, value in enumerate(binned.values):
            if not math.isfinite(value):
                raise _error(place, f"bin {bin}: {value} is not a valid number of events")
        if self._n_bins is None:
            if not binned.values:
                raise _error(place, "no bins")
            self._n_bins = (len(binned.values), what)
        n_bins, first = self._n_bins
        if len(binned.values) != n_bins:
            raise _error(place, f"{counted(len(binned.values), 'bin')}, but {n_bins} in {first}")
        if binned.bins is None:
            return
        if self._reference is None:
            self._reference = (binned, what)
        elif not _same_bins(self._reference[0].bins, binned.bins):
            self._refuse(binned, place)

    def _refuse(self, binned, place):
        reference, first = self._reference
        bin = next(i for i, (one, other) in enumerate(zip(reference.bins, binned.bins)) if not _same_bins([one], [other]))
        raise _error(place, f"bin {bin} is {_shown(binned.bins[bin])}, but {_shown(reference.bins[bin])} in {first}")

    def _observed(self):
        if self._data is None:
            hint = f'`channel.data(histogram)`, or `builder.channel("{self.name}", data="asimov")` for the sum of the samples'
            raise _error(f"channel `{self.name}`", "there are no data", hint)
        if self._data != "asimov":
            return self._data.values
        return [math.fsum(bin) for bin in zip(*(sample.nominal.values for sample in self._samples.values()))]

    def _document(self):
        if not self._samples:
            raise _error(f"channel `{self.name}`", "there are no samples")
        return {"name": self.name, "samples": [sample._document() for sample in self._samples.values()]}


def _shown(bin):
    return f"`{bin}`" if isinstance(bin, str) else f"{bin[0]:g} to {bin[1]:g}"


class WorkspaceBuilder:
    """A workspace in the making.

    Parameters
    ----------
    flow : ``"drop"`` or ``"merge"``
        What happens to under- and overflow of histograms: nothing, or they join the first and the
        last bin.

    Examples
    --------
    >>> builder = WorkspaceBuilder()
    >>> region = builder.channel("region", data=[57, 63])
    >>> _ = region.sample("signal", [12, 11]).normfactor("mu").normsys("theory", 0.05)
    >>> _ = (
    ...     region.sample("background", [50, 52])
    ...     .histosys("scale", up=[53, 56], down=[48, 49])
    ...     .staterror([2, 2])
    ... )
    >>> builder.workspace(poi="mu")["measurements"]
    [{'name': 'measurement', 'config': {'poi': 'mu', 'parameters': []}}]
    """

    def __init__(self, *, flow: str = "drop") -> None:
        if flow not in ("drop", "merge"):
            raise ValueError(f"`flow` is `drop` or `merge`, not `{flow}`")
        self._flow = flow
        self._channels = {}

    def channel(self, name: str, data: Any = None) -> Channel:
        """Adds a channel; returns the `Channel`.

        Parameters
        ----------
        data : histogram or ``"asimov"``, optional
            Observed data, or the sum of the nominal samples; `Channel.data` sets them later.
        """
        if text("name", name) in self._channels:
            raise _error(f"channel `{name}`", "the workspace has it already")
        channel = Channel(name, self._flow)
        if data is not None:
            channel.data(data)
        self._channels[name] = channel
        return channel

    @property
    def edges(self) -> dict[str, list[float]]:
        """The edges of each channel's bins by its name, such as `nextstat.plot.data_mc` takes;
        channels without an axis are left out.
        """
        return {name: channel.edges for name, channel in self._channels.items() if channel.edges is not None}

    def workspace(
        self,
        *,
        poi: str | None = None,
        measurement: str = "measurement",
        lumi: float | tuple[float, float] | None = None,
        init: Mapping[str, float] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        fixed: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:
        """Returns the workspace as a dictionary. Modifiers that change nothing (a normsys with hi =
        lo = 1, a histosys with nominal templates) are left out, as `nextstat.build.drop_no_ops`
        does.

        Parameters
        ----------
        poi : str, optional
            The parameter of interest; None, or empty, for none.
        measurement : str
            The measurement's name.
        lumi : float or pair of float, optional
            The relative uncertainty of the luminosity, or its value and its uncertainty.
        init, bounds, fixed : dict, optional
            Starting values, ranges (lower, upper), and fixed values, by the names of parameters; a
            vector's elements get the same.

        Raises
        ------
        WorkspaceError
            What is missing or does not fit, with the names of channel, sample and systematic.
        """
        if not self._channels:
            raise _error("", "a workspace needs a channel")
        channels = [channel._document() for channel in self._channels.values()]
        observations = [{"name": channel.name, "data": channel._observed()} for channel in self._channels.values()]
        config = {"poi": "" if poi is None else text("poi", poi), "parameters": self._parameters(lumi, init or {}, bounds or {}, fixed or {})}
        from .build.pruning import drop_no_ops

        whole = {"channels": channels, "observations": observations, "measurements": [{"name": measurement, "config": config}], "version": "1.0.0"}
        return drop_no_ops(whole)[0]

    def model(
        self,
        *,
        poi: str | None = None,
        measurement: str = "measurement",
        lumi: float | tuple[float, float] | None = None,
        init: Mapping[str, float] | None = None,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        fixed: Mapping[str, float] | None = None,
    ) -> Model:
        """Returns the model of `workspace` with the same arguments."""
        return model_of(self.workspace(poi=poi, measurement=measurement, lumi=lumi, init=init, bounds=bounds, fixed=fixed))

    def _parameters(self, lumi, init, bounds, fixed):
        sizes = self._sizes()
        settings = {name: {} for name in [*self._lumi_names(), *init, *bounds, *fixed]}
        for name in settings:
            if name not in sizes:
                raise _error(f"parameter `{name}`", "no sample has it", f"choose one of {', '.join(sizes)}")
        for name in self._lumi_names():
            settings[name].update(_lumi(name, lumi))
        for name, value in init.items():
            settings[name]["inits"] = [real(f"init of {name}", value)] * sizes[name]
        for name, (lower, upper) in bounds.items():
            settings[name]["bounds"] = [[number(end, f"`bounds`: an end of the range of `{name}`") for end in (lower, upper)]] * sizes[name]
        for name, value in fixed.items():
            settings[name].update(inits=[real(f"fixed value of {name}", value)] * sizes[name], fixed=True)
        return [{"name": name, **setting} for name, setting in settings.items()]

    def _modifiers(self):
        for channel in self._channels.values():
            for sample in channel._samples.values():
                for modifier in sample._modifiers:
                    yield channel, modifier

    def _sizes(self):
        """Returns how many elements each parameter has, by its name."""
        vectors = ("staterror", "shapesys", "shapefactor")
        return {modifier["name"]: channel._n_bins[0] if modifier["type"] in vectors else 1 for channel, modifier in self._modifiers()}

    def _lumi_names(self):
        return list(dict.fromkeys(modifier["name"] for _, modifier in self._modifiers() if modifier["type"] == "lumi"))


def _lumi(name, lumi):
    if lumi is None:
        raise _error(f"parameter `{name}`", "the uncertainty of the luminosity is not known", "pass `lumi=0.017`")
    value, width = (real("lumi", part) for part in (lumi if hasattr(lumi, "__len__") and not isinstance(lumi, str) else (1.0, lumi)))
    return {"auxdata": [value], "sigmas": [width], "inits": [value], "bounds": [[0.0, 10.0 * value]]}
