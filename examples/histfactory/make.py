"""Writes `histograms.root`, which the XML of this folder names: `python make.py` (needs uproot)."""

from pathlib import Path

import numpy as np
import uproot
from uproot.writing.identify import to_TAxis, to_TH1x

HISTOGRAMS = {
    "SR/data": ([52, 49, 37, 25], None),
    "SR/signal": ([2.1, 4.8, 7.5, 6.2], [0.1, 0.2, 0.2, 0.2]),
    "SR/ttbar": ([48.0, 40.2, 25.1, 11.3], [1.9, 1.7, 1.6, 1.4]),
    "SR/ttbar_JES_up": ([46.5, 41.0, 26.6, 12.9], None),
    "SR/ttbar_JES_down": ([49.1, 39.7, 23.8, 10.2], None),
    "CR/data": ([212, 175], None),
    "CR/ttbar": ([205.0, 168.0], [4.1, 3.9]),
    "CR/ttbar_JES_up": ([201.0, 171.5], None),
    "CR/ttbar_JES_down": ([208.0, 165.0], None),
}


def histogram(values, errors):
    """A TH1D with edges 0, 1, 2, …; errors are those of weighted events."""
    cells = np.array([0.0, *values, 0.0])
    squares = cells if errors is None else np.array([0.0, *errors, 0.0]) ** 2
    n_bins = len(values)
    axis = to_TAxis(fName="xaxis", fTitle="", fNbins=n_bins, fXmin=0.0, fXmax=float(n_bins))
    sums = {"fTsumw": cells.sum(), "fTsumw2": squares.sum(), "fTsumwx": 0.0, "fTsumwx2": 0.0}
    return to_TH1x(fName=None, fTitle="", data=cells, fEntries=cells.sum(), fSumw2=squares, fXaxis=axis, **sums)


with uproot.recreate(Path(__file__).with_name("histograms.root"), compression=uproot.ZSTD(5)) as file:
    for name, (values, errors) in HISTOGRAMS.items():
        file[name] = histogram(values, errors)
