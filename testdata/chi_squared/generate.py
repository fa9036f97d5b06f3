#!/usr/bin/env python3
"""Tails of the χ² distribution from 40-digit arithmetic, from the body to 1e-300.

    python testdata/chi_squared/generate.py > testdata/chi_squared/mpmath.json        (needs mpmath 1.4)
"""
import datetime, json

import mpmath

mpmath.mp.dps = 40
N_DOF = [0.5, 1.0, 2.0, 3.0, 7.25, 10.0, 41.0, 100.0, 1000.0, 10000.0]
MULTIPLES = [0.001, 0.5, 0.9, 1.0, 1.1, 1.5, 2.0, 5.0, 20.0]


def tail(x, n_dof):
    return mpmath.gammainc(mpmath.mpf(n_dof) / 2, mpmath.mpf(x) / 2, mpmath.inf, regularized=True)


points = [(multiple * n_dof, n_dof) for n_dof in N_DOF for multiple in MULTIPLES]
points += [(x, n_dof) for n_dof in N_DOF for x in (50.0, 200.0, 700.0, 1300.0)]
rows = [{"x": x, "n_dof": n_dof, "tail": float(tail(x, n_dof))} for x, n_dof in points if tail(x, n_dof) > 1e-300]
certificate = {"tool": "mpmath", "version": mpmath.__version__, "digits": mpmath.mp.dps,
               "command": "python testdata/chi_squared/generate.py", "date": datetime.date.today().isoformat()}
print(json.dumps({"certificate": certificate, "rows": rows}, indent=1))
