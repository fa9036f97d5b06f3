"""Colours of samples: a function of their names, so that a sample has the same colour in every
region, before and after a fit, and in every figure.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from .._errors import shown
from ._documents import document_of
from ._look import matplotlib

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ._documents import Source

# M. Petroff, arXiv:2107.02270: ten colours that stay distinct with any colour vision deficiency,
# and in print.
COLOURS = ("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd")

#: The colour of the sum of small samples.
OTHERS = "0.8"

# Common processes and the colours that they prefer; the first that matches a name counts.
_PROCESSES = tuple(
    (re.compile(pattern), colour)
    for pattern, colour in (
        (r"^(sig|signal|bsm|susy|new)|signal|prime|dm|gluino|squark|stop|hh$", 2),
        (r"^tt(h|higgs)|^t+bar_?h", 6),
        (r"^tt(v|w|z|gamma|ww|zz|y)|^t+bar_?(v|w|z)", 7),
        (r"^(tt|ttbar|top$|toppair)", 0),
        (r"^(st|singletop|single_top|t_?w|tchan|schan|tw)", 5),
        (r"^(vv|diboson|dibosons|multiboson|ww|wz|zz|vvv|triboson)", 9),
        (r"^(w|wjets|wplus|wlnu)", 1),
        (r"^(z|zjets|dy|drellyan|zll|znunu|zplus)", 4),
        (r"^(h$|higgs|ggh|vbf|wh|zh|vh)", 6),
        (r"fake|qcd|multijet|multi_jet|nonprompt|non_prompt|jets?$", 3),
        (r"^(gamma|photon|vgamma|y)", 7),
        (r"other|rare|misc|background|bkg$", 8),
    )
)


def sample_colours(result: Source, colors: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns the colours that figures of yields give to the samples of a model, by name.

    A colour depends on the name: common processes have colours of their own, other names one by
    their letters, and names that end in a number follow each other. Where two samples of a model
    prefer the same colour, the one that comes first in a fixed order gets it, whatever their
    yields. Pruning a sample can therefore only recolour samples that prefer its colour; pass this
    dictionary as ``colors=`` to have the colours of the whole model after pruning.

    Parameters
    ----------
    result : YieldsResult or ReportResult, or its document
    colors : mapping, optional
        Colours of some samples, which the others then avoid.

    Examples
    --------
    >>> import nextstat
    >>> import nextstat.plot
    >>> yields = nextstat.yields(nextstat.load_workspace("examples/shapes.json"))
    >>> nextstat.plot.sample_colours(yields, {"fakes": "black"})["fakes"]
    'black'
    """
    document = document_of(result, ("yields", "report"))
    channels = (document["yields"] if document.kind == "report" else document)["channels"]
    known = (sample["sample"] for channel in channels for sample in channel["prefit"]["samples"])
    return colours_of(dict.fromkeys(known), colors)


def colours_of(names: Iterable[str], chosen: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns a colour for each name, those that are `chosen` first."""
    found = {name: _checked(colour) for name, colour in (chosen or {}).items()}
    taken = set(found.values())
    # Processes that are known by their names come before hashes.
    for name in sorted(set(names) - set(found), key=_priority):
        colour = next((colour for colour in _preferences(name) if colour not in taken), _preferences(name)[0])
        found[name] = colour
        taken.add(colour)
    return found


def _checked(colour: str) -> str:
    if not matplotlib.colors.is_color_like(colour):
        raise ValueError(f"`colors` has `{shown(colour)}`, which is not a colour of matplotlib")
    return colour


def _priority(name: str) -> tuple[bool, int, str]:
    return _process(name) is None, len(name), name


def _process(name: str) -> int | None:
    key = re.sub(r"[\s\-+]+", "_", name.lower())
    return next((colour for pattern, colour in _PROCESSES if pattern.search(key)), None)


def _preferences(name: str) -> Sequence[str]:
    """Returns all colours, the preferred one first: those of the palette, then lighter and darker
    ones.
    """
    stem, number = re.fullmatch(r"(.*?)(\d{0,6})", name.lower(), re.DOTALL).groups()  # type: ignore[union-attr]
    first = _process(stem)
    if first is None:
        first = zlib.crc32(stem.encode())
    n = len(COLOURS)
    order = [COLOURS[(first + int(number or 0) + i) % n] for i in range(n)]
    return [*order, *(_mixed(colour, 1.0) for colour in order), *(_mixed(colour, 0.0) for colour in order)]


def _mixed(colour: str, grey: float) -> str:
    """Returns a colour halfway to white (1) or black (0)."""
    return matplotlib.colors.to_hex([0.55 * part + 0.45 * grey for part in matplotlib.colors.to_rgb(colour)])
