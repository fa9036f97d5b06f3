"""Makes workspaces of any size for the tests of the app. They hold no physics."""

import random


def workspace(*, n_systematics=4, n_channels=2, n_bins=3, signal=True, names=None):
    """A workspace of pyhf whose systematics act on the background of every channel."""
    rng = random.Random(5)
    names = names or [f"syst_{i}" for i in range(n_systematics)]
    channels = [channel(rng, f"channel_{i}", names, n_bins, signal) for i in range(n_channels)]
    observations = [{"name": one["name"], "data": [float(round(value * rng.uniform(0.9, 1.15))) for value in one["samples"][0]["data"]]} for one in channels]
    parameters = [{"name": "mu", "bounds": [[0.0, 10.0]], "inits": [1.0]}]
    return {
        "channels": channels,
        "observations": observations,
        "measurements": [{"name": "search", "config": {"poi": "mu", "parameters": parameters if signal else []}}],
        "version": "1.0.0",
    }


def channel(rng, name, systematics, n_bins, signal):
    """A channel with a background that every systematic moves, by its size or by its shape."""
    data = [round(rng.uniform(40, 160), 3) for _ in range(n_bins)]
    modifiers = [modifier(rng, systematic, data, i) for i, systematic in enumerate(systematics)]
    samples = [{"name": "background", "data": data, "modifiers": modifiers}]
    if signal:
        signals = [round(0.1 * value, 3) for value in reversed(data)]
        samples.append({"name": "signal", "data": signals, "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]})
    return {"name": name, "samples": samples}


def modifier(rng, name, data, i):
    """A normsys, or a histosys every third time."""
    size = rng.uniform(0.01, 0.06)
    if i % 3:
        return {"name": name, "type": "normsys", "data": {"hi": 1 + size, "lo": 1 - size}}
    steps = [rng.uniform(-size, size) for _ in data]
    shifted = [[value * (1 + sign * step) for value, step in zip(data, steps)] for sign in (1, -1)]
    return {"name": name, "type": "histosys", "data": {"hi_data": shifted[0], "lo_data": shifted[1]}}
