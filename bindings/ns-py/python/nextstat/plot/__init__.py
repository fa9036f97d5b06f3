"""Figures of results, as the field draws them: pulls, rankings, correlations, scans, contours, data
and prediction, Brazil bands, exclusion contours, toys.

Each function takes a result and, if wished, the axes to draw on; it returns the axes, whose
`.figure` has `savefig`. Colours can be told apart by readers with colour vision deficiencies.
Styles are matplotlib's: whatever `matplotlib.rcParams` or `mplhep.style.use` say applies.
matplotlib and mplhep come with the extra `plot`: ``pip install 'nextstat-rs[plot]'``.
"""

from ._style import COLOURS
from .exclusion import exclusion
from .likelihood import contours, scan
from .limits import brazil, limits
from .parameters import correlation, pulls, ranking
from .toys import toys
from .yields import data_mc

__all__ = ["COLOURS", "brazil", "contours", "correlation", "data_mc", "exclusion", "limits", "pulls", "ranking", "scan", "toys"]
