"""Writes small ROOT files with every compression, by ROOT and by uproot, and what ROOT reads in
them.

    python testdata/root/generate.py    # needs root==0.1a12 (ROOT 6.40) and uproot from PyPI

Every file has the same histograms, so that one document, `contents.json`, describes them all.
"""

import json
import os
import sys
from datetime import date
from pathlib import Path

import numpy as np
import ROOT
import uproot
from uproot.writing.identify import to_TAxis, to_TH1x

HERE = Path(__file__).parent
N_BINS = 150
EDGES = [0.0, 1.0, 2.5, 10.0, 100.5]
ALGORITHMS = {"none": 0, "zlib": 101, "lzma": 207, "old": 301, "lz4": 404, "zstd": 505}


def with_root(path, setting):
    """Writes the file with ROOT; `setting` is a hundred times the algorithm plus the level."""
    # The file has its own name in it, which should be of no machine.
    file = ROOT.TFile(os.path.relpath(path), "RECREATE", "", setting)
    # Cycles: the later one is the one that is meant.
    for scale in (1.0, 2.0):
        one = ROOT.TH1D("weighted", "weights and sums of their squares", N_BINS, -1.0, 2.0)
        one.Sumw2()
        for cell in range(N_BINS + 2):
            one.SetBinContent(cell, scale * (cell % 7 + 0.125))
            one.SetBinError(cell, 0.1 * (cell % 5))
        one.Write()
    inner = file.mkdir("regions").mkdir("SR")
    inner.cd()
    kinds = {"C": 20, "S": 2000, "I": 2**30, "L": 2**40, "F": 0.1, "D": 1.0 / 3.0}
    for kind, content in kinds.items():
        one = getattr(ROOT, f"TH1{kind}")(f"kind_{kind}", "", len(EDGES) - 1, np.array(EDGES))
        for cell in range(len(EDGES) + 1):
            one.SetBinContent(cell, content * (cell + 1))
        one.Write()
    ROOT.TH2F("plane", "", 2, 0.0, 1.0, 2, 0.0, 1.0).Write()
    ROOT.TNamed("label", "no histogram").Write()
    file.Close()


def uproot_histogram(name, values, edges, variances):
    """A histogram as uproot writes it. `values` (B + 2) decide the class by their type."""
    centres = (np.array(edges[1:]) + np.array(edges[:-1])) / 2
    axis = to_TAxis(fName="xaxis", fTitle="", fNbins=len(edges) - 1, fXmin=edges[0], fXmax=edges[-1], fXbins=np.array(edges))
    inside = values[1:-1].astype(float)
    return to_TH1x(
        fName=name, fTitle="", data=values, fEntries=float(len(values)), fTsumw=inside.sum(), fTsumw2=inside.sum(),
        fTsumwx=(inside * centres).sum(), fTsumwx2=(inside * centres**2).sum(), fSumw2=variances, fXaxis=axis,
    )  # fmt: skip


def with_uproot(path, compression):
    """Writes histograms with uproot."""
    edges = list(np.linspace(-1.0, 2.0, N_BINS + 1))
    cells = np.arange(N_BINS + 2)
    with uproot.recreate(path, compression=compression) as file:
        file["weighted"] = uproot_histogram("weighted", 2.0 * (cells % 7 + 0.125), edges, (0.1 * (cells % 5)) ** 2)
        for kind, numbers in {"F": np.float32(0.1), "D": 1.0 / 3.0}.items():
            values = np.array([numbers * (cell + 1) for cell in range(len(EDGES) + 1)], dtype=type(numbers))
            file[f"regions/SR/kind_{kind}"] = uproot_histogram(f"kind_{kind}", values, EDGES, None)


def described(histogram):
    """What ROOT says of a histogram."""
    cells = range(histogram.GetNbinsX() + 2)
    return {
        "class": histogram.ClassName(),
        "cells": [histogram.GetBinContent(cell) for cell in cells],
        "errors": [histogram.GetBinError(cell) for cell in cells][1:-1],
        "edges": [histogram.GetXaxis().GetBinLowEdge(cell) for cell in cells][1:],
    }


def contents(path, names):
    """What ROOT reads under `names`."""
    file = ROOT.TFile.Open(str(path))
    found = {name: described(file.Get(name)) for name in names}
    file.Close()
    return found


def main():
    ROOT.gErrorIgnoreLevel = ROOT.kError
    for name, setting in ALGORITHMS.items():
        with_root(HERE / f"root-{name}.root", setting)
    compressions = {"none": None, "zlib": uproot.ZLIB(1), "lzma": uproot.LZMA(1), "lz4": uproot.LZ4(1), "zstd": uproot.ZSTD(1)}
    for name, compression in compressions.items():
        with_uproot(HERE / f"uproot-{name}.root", compression)
    kinds = [f"regions/SR/kind_{kind}" for kind in "CSILFD"]
    document = {
        "made_by": f"ROOT {ROOT.__version__}, uproot {uproot.__version__}",
        "command": "python testdata/root/generate.py",
        "date": date.today().isoformat(),
        "root": contents(HERE / "root-zlib.root", ["weighted", "weighted;1", *kinds]),
        "uproot": contents(HERE / "uproot-zlib.root", ["weighted", *kinds[-2:]]),
    }
    (HERE / "contents.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
