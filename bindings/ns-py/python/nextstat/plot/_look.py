"""The look of all figures: styles, the figures that keep theirs, and what each call may ask for.

A style takes fonts, ticks and the places of labels from mplhep, and its sizes from here, so that a
figure has the same proportions in every style and can be printed without scaling. It applies to
one call or to a `with` block; `matplotlib.rcParams` are the same afterwards.
"""

from __future__ import annotations

import inspect
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from .._errors import install_command, listed, shown
from .._keywords import hinted

try:
    import matplotlib
    import matplotlib.pyplot as pyplot
    from matplotlib.figure import Figure
except ImportError as reason:
    raise ImportError(f"nextstat.plot needs matplotlib and mplhep: {install_command('plot')} ({reason})") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from matplotlib.axes import Axes

    _F = TypeVar("_F", bound="Callable[..., Any]")

#: The names of styles. `matplotlib` is what `matplotlib.rcParams` say when a figure is drawn.
STYLES = ("plain", "ATLAS", "CMS", "LHCb", "matplotlib")

#: Points of the text of a figure; inches of figures are for this size.
TEXT = 11.0

# What mplhep calls the styles; `plain` has the font of the others that have no serifs.
_SHEETS = {"plain": "ROOT", "ATLAS": "ATLAS", "CMS": "CMS", "LHCb": "LHCb2"}

# What of a style of mplhep applies here: all but colours, sizes and what is saved.
_TAKEN = ("font.family", "font.sans-serif", "font.serif", "mathtext.", "xaxis.labellocation", "yaxis.labellocation")
_LENGTHS = ("axes.linewidth", *(f"{axis}tick.{kind}.size" for axis in "xy" for kind in ("major", "minor")))

# Sizes, ticks on four sides, and fonts that are part of the file.
_OURS = {
    "font.size": TEXT,
    "axes.labelsize": 1.15 * TEXT,
    "axes.titlesize": TEXT,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "legend.fontsize": 0.93 * TEXT,
    "legend.title_fontsize": 0.93 * TEXT,
    "legend.frameon": False,
    "legend.handlelength": 1.7,
    "legend.handletextpad": 0.6,
    "legend.labelspacing": 0.35,
    "legend.columnspacing": 1.2,
    "legend.borderpad": 0.0,
    "axes.labelpad": 5.0,
    "axes.grid": False,
    "axes.formatter.use_mathtext": True,
    "axes.unicode_minus": True,
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # Digits and units are upright; what stands for a quantity says so itself.
    "mathtext.default": "regular",
    "mathtext.fallback": "stixsans",
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "errorbar.capsize": 0.0,
    "hatch.linewidth": 0.6,
    **{f"{axis}tick.{name}": value for axis in "xy" for name, value in (("direction", "in"), ("minor.visible", False))},
    **{f"{axis}tick.{kind}.width": width for axis in "xy" for kind, width in (("major", 0.8), ("minor", 0.6))},
    **{f"xtick.{side}": True for side in ("top", "bottom")},
    **{f"ytick.{side}": True for side in ("left", "right")},
}


@dataclass(frozen=True)
class Look:
    """A style, and the words of the label that it puts on figures."""

    name: str = "plain"
    label: str | None = None
    energy: float | str | None = None
    luminosity: float | str | None = None
    #: Parameters of matplotlib.
    rc: Mapping[str, Any] = field(default_factory=dict)


class LookOptions(TypedDict, total=False):
    """Keyword arguments of every figure.

    Attributes
    ----------
    style : str
        ``"plain"``, ``"ATLAS"``, ``"CMS"``, ``"LHCb"``, or ``"matplotlib"`` for what
        `matplotlib.rcParams` say.
    label : str
        Such as ``"Internal"`` or ``"Preliminary"``; the name of the experiment goes before it.
    energy : float or str
        The centre-of-mass energy in TeV.
    luminosity : float or str
        The integrated luminosity in inverse femtobarns; a text is written as it is.
    """

    style: str | None
    label: str | None
    energy: float | str | None
    luminosity: float | str | None


_CURRENT: ContextVar[Look | None] = ContextVar("nextstat.plot.look", default=None)


def look() -> Look:
    """Returns the look of the call or of the block."""
    return _CURRENT.get() or Look()


@contextmanager
def style(
    name: str = "plain",
    *,
    label: str | None = None,
    energy: float | str | None = None,
    luminosity: float | str | None = None,
    rc: Mapping[str, Any] | None = None,
) -> Iterator[None]:
    """Gives all figures of a `with` block a look, those of matplotlib included.

    Arguments of a figure go before those of the block. Nothing remains after the block:
    `matplotlib.rcParams` are what they were.

    Parameters
    ----------
    name : ``"plain"``, ``"ATLAS"``, ``"CMS"``, ``"LHCb"`` or ``"matplotlib"``
        The last one is what `matplotlib.rcParams` say.
    label : str, optional
        Such as ``"Internal"`` or ``"Preliminary"``; the name of the experiment goes before it.
    energy : float or str, optional
        The centre-of-mass energy in TeV.
    luminosity : float or str, optional
        The integrated luminosity in inverse femtobarns; a text is written as it is.
    rc : mapping, optional
        Parameters of matplotlib that go before those of the style, such as ``{"font.size": 9}``.

    Examples
    --------
    >>> import nextstat
    >>> import nextstat.plot
    >>> fit = nextstat.fit(nextstat.load_workspace("examples/shapes.json"))
    >>> with nextstat.plot.style("ATLAS", label="Internal", energy=13, luminosity=140):
    ...     ax = nextstat.plot.pulls(fit)
    """
    known = _known(name)
    found = {**_parameters(known), **(rc or {})}
    wanted = Look(known, _text("label", label), _value("energy", energy), _value("luminosity", luminosity), found)
    with _applied(wanted):
        yield


@contextmanager
def _applied(wanted: Look) -> Iterator[None]:
    """Makes `wanted` the look until the end of the block."""
    token = _CURRENT.set(wanted)
    try:
        with matplotlib.rc_context(dict(wanted.rc)):
            yield
    finally:
        _CURRENT.reset(token)


def _known(name: object) -> str:
    """Returns the style that `name` means, in upper or lower case."""
    found = next((known for known in STYLES if isinstance(name, str) and known.lower() == name.lower()), None)
    if found is None:
        raise ValueError(f"`style` is {listed(STYLES, 'or')}, not `{shown(name)}`")
    return found


def _text(name: str, value: object) -> Any:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"`{name}` is text, not `{shown(value)}`")
    return value


def _value(name: str, value: object) -> Any:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"`{name}` is a number or text, not `{shown(value)}`")
    number = float(cast("float", value))
    if not 0 < number < float("inf"):
        raise ValueError(f"`{name}` must be above 0, not {number:g}")
    return number


@cache
def _parameters(name: str) -> dict[str, Any]:
    """Returns the parameters of matplotlib of a style."""
    if name == "matplotlib":
        return {}
    try:
        import mplhep
    except ImportError as reason:
        raise ImportError(f"nextstat.plot needs matplotlib and mplhep: {install_command('plot')} ({reason})") from None
    sheet = dict(getattr(mplhep.style, _SHEETS[name]))
    found = {key: value for key, value in sheet.items() if key.startswith(_TAKEN)}
    # Names of fonts instead of a family: a figure is drawn after the block, when families are
    # again what they were before it.
    family = found.pop("font.family")
    fonts = found.pop(f"font.{family}", [])
    found = {key: value for key, value in found.items() if not key.startswith("font.")}
    found["font.family"] = [*fonts[:1], "DejaVu Serif" if family == "serif" else "DejaVu Sans"]
    # Lengths in proportion to the labels of axes.
    scale = 1.15 * TEXT / _label_size(sheet)
    found.update((key, scale * float(sheet[key])) for key in _LENGTHS if key in sheet)
    found["axes.linewidth"] = max(found.get("axes.linewidth", 0.8), 0.8)
    return {**found, **_OURS}


def _label_size(sheet: Mapping[str, Any]) -> float:
    """Returns the size in points of the labels of axes in a style of mplhep."""
    size = sheet.get("axes.labelsize", "medium")
    relative = {"medium": 1.0, "large": 1.2, "x-large": 1.44, "xx-large": 1.728}
    return relative[size] * float(sheet["font.size"]) if isinstance(size, str) else float(size)


class StyledFigure(Figure):
    """A figure that is drawn and saved with the parameters of matplotlib that it was made with.

    Fonts of formulas and ticks that are not there yet would otherwise be those of the time when it
    is saved.
    """

    def __init__(self, *args: Any, parameters: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._parameters = dict(parameters or {})
        super().__init__(*args, **options)

    def draw(self, renderer: Any) -> None:
        with matplotlib.rc_context(self._parameters):
            super().draw(renderer)

    def get_tightbbox(self, *args: Any, **options: Any) -> Any:
        with matplotlib.rc_context(self._parameters):
            return super().get_tightbbox(*args, **options)

    def savefig(self, *args: Any, **options: Any) -> None:
        with matplotlib.rc_context(self._parameters):
            super().savefig(*args, **options)


def new_figure(width: float, height: float, **panels: Any) -> tuple[Figure, Any]:
    """Returns a figure of `width` by `height` inches for text of the usual size, and its axes,
    as `pyplot.subplots` makes them of the other arguments.
    """
    scale = matplotlib.rcParams["font.size"] / TEXT
    options = {"figsize": (scale * width, scale * height), "layout": "constrained"}
    return pyplot.subplots(FigureClass=StyledFigure, parameters=look().rc, **options, **panels)


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Returns `ax`, or the axes of a new figure of `width` by `height` inches."""
    return new_figure(width, height)[1] if ax is None else axes_of(ax)


def axes_of(ax: Any) -> Axes:
    """Returns `ax` if it can be drawn on."""
    if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
        raise TypeError(f"`ax` must be axes of matplotlib, not `{shown(ax)}`")
    return cast("Axes", ax)


def figure(function: _F) -> _F:
    """Returns `function` with the arguments of `LookOptions`, which it calls `look`, and within
    which it is called. A figure that it begins and does not finish is closed.
    """
    signature = _with_look(inspect.signature(function))

    @wraps(function)
    def draw(*args: Any, **options: Any) -> Any:
        wanted = {name: options.pop(name, None) for name in LookOptions.__annotations__}
        there = set(pyplot.get_fignums())
        try:
            with _applied(_merged(**wanted)):
                return function(*args, **options)
        except BaseException:
            for number in set(pyplot.get_fignums()) - there:
                pyplot.close(number)
            raise

    draw.__signature__ = signature  # type: ignore[attr-defined]
    return cast("_F", hinted(draw))


def _merged(style: str | None, label: str | None, energy: float | str | None, luminosity: float | str | None) -> Look:
    """Returns the look of the block with what a call asks for."""
    around = look() if style is None else replace(look(), name=_known(style), rc=_parameters(_known(style)))
    if _CURRENT.get() is None and style is None:
        around = replace(around, rc=_parameters(around.name))
    given = {"label": _text("label", label), "energy": _value("energy", energy), "luminosity": _value("luminosity", luminosity)}
    return replace(around, **{name: value for name, value in given.items() if value is not None})


def _with_look(signature: inspect.Signature) -> inspect.Signature:
    """Returns the signature of a figure with the arguments of `LookOptions` by name."""
    kept = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in LookOptions.__annotations__.items()
    ]
    return signature.replace(parameters=[*kept, *added])
