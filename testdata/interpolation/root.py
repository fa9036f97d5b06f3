#!/usr/bin/env python3
"""Factors and shifts of every interpolation code of ROOT.

    python testdata/interpolation/root.py > testdata/interpolation/root.json        (needs the wheel of ROOT)

A factor is a FlexibleInterpVar of one parameter and nominal value 1, a yield a PiecewiseInterpolation of one.
"""
import datetime, json, os, sys

import ROOT

ROOT.gErrorIgnoreLevel = ROOT.kFatal
ROOT.RooMsgService.instance().setGlobalKillBelow(ROOT.RooFit.FATAL)
HF = ROOT.RooStats.HistFactory
POINTS = [-3.0, -1.5, -1.0, -0.75, -0.5, -0.2, 0.0, 0.1, 0.4, 0.5, 0.9, 1.0, 1.25, 2.0]


def factors(lo, hi, code):
    alpha = ROOT.RooRealVar("alpha", "", 0, -10, 10)
    factor = HF.FlexibleInterpVar("f", "", ROOT.RooArgList(alpha), 1.0, ROOT.std.vector("double")([lo]),
                                  ROOT.std.vector("double")([hi]))
    factor.setAllInterpCodes(code)
    return [evaluate(alpha, factor, x) for x in POINTS]


def yields(nominal, lo, hi, code):
    alpha = ROOT.RooRealVar("alpha", "", 0, -10, 10)
    parts = [ROOT.RooConstVar(name, "", value) for name, value in (("n", nominal), ("lo", lo), ("hi", hi))]
    found = ROOT.PiecewiseInterpolation("p", "", parts[0], ROOT.RooArgList(parts[1]), ROOT.RooArgList(parts[2]),
                                        ROOT.RooArgList(alpha))
    found.setAllInterpCodes(code)
    return [evaluate(alpha, found, x) for x in POINTS]


def evaluate(alpha, function, x):
    alpha.setVal(x)
    return function.getVal()


cases = []
for lo, hi in ((0.8, 1.3), (1.1, 0.95), (0.9, 0.85)):
    # FlexibleInterpVar takes 3 for 2 and 4 for 5, and does not know 6.
    for code in range(6):
        cases.append({"class": "FlexibleInterpVar", "code": code, "nominal": 1.0, "lo": lo, "hi": hi,
                      "values": factors(lo, hi, code)})
    for code in range(7):
        cases.append({"class": "PiecewiseInterpolation", "code": code, "nominal": 1.0, "lo": lo, "hi": hi,
                      "values": yields(1.0, lo, hi, code)})
for nominal, lo, hi in ((50.0, 42.0, 61.0), (20.0, 23.0, 22.0)):
    for code in range(7):
        cases.append({"class": "PiecewiseInterpolation", "code": code, "nominal": nominal, "lo": lo, "hi": hi,
                      "values": yields(nominal, lo, hi, code)})
certificate = {"tool": "ROOT", "version": ROOT.__version__, "command": "python testdata/interpolation/root.py",
               "date": datetime.date.today().isoformat()}
json.dump({"certificate": certificate, "points": POINTS, "cases": cases}, sys.stdout, indent=1)
print()
sys.stdout.flush()
# The destructors of ROOT and of Python do not agree on an order.
os._exit(0)
