"""Fits a counting experiment with the installed package and with its command, and compares them."""

import json
import subprocess

import nextstat

SIGNAL = {"name": "signal", "data": [5.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
BACKGROUND = {"name": "background", "data": [50.0], "modifiers": []}
WORKSPACE = {
    "version": "1.0.0",
    "channels": [{"name": "SR", "samples": [SIGNAL, BACKGROUND]}],
    "observations": [{"name": "SR", "data": [60.0]}],
    "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
}

result = nextstat.fit(nextstat.model_of(WORKSPACE))
# 60 observed = 5 mu + 50.
assert abs(result.value("mu") - 2.0) < 1e-6, result
done = subprocess.run(["nextstat", "fit", "-", "--quiet"], input=json.dumps(WORKSPACE), capture_output=True, text=True, check=True)
assert json.loads(done.stdout)["converged"] is True, done.stdout
