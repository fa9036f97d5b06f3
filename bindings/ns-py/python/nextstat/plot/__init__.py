"""Figures of results, as the field draws them: pulls, rankings, correlations, scans, contours, data
and prediction, Brazil bands, exclusion contours, searches, toys.

Each function takes a result, or its document, and, if wished, the axes to draw on; it returns the
axes, whose `.figure` has `savefig`. The look is that of ``style=``, or of the block `style`: plain,
ATLAS, CMS, LHCb, or what `matplotlib.rcParams` say. Colours can be told apart by readers with
colour vision deficiencies.
matplotlib and mplhep come with the extra `plot`: ``pip install 'nextstat-rs[plot]'``.
"""

# Says which packages are missing, before others import them.
from ._look import STYLES, style

# isort: split
from ._bands import PALETTES
from ._colours import COLOURS, sample_colours
from .contours import contours
from .correlation import correlation
from .exclusion import exclusion
from .goodness import gof
from .limits import brazil, limits
from .pulls import pulls
from .ranking import ranking
from .scans import scan
from .search import search
from .toys import toys
from .variations import variations
from .yields import data_mc, regions

__all__ = [
    "COLOURS", "PALETTES", "STYLES", "brazil", "contours", "correlation", "data_mc", "exclusion", "gof", "limits", "pulls", "ranking", "regions",
    "sample_colours", "scan", "search", "style", "toys", "variations",
]  # fmt: skip
