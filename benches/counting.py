"""A model with one nuisance parameter for each bin, which `relaxed` can fit too: its numbers, and
its workspace."""

import numpy as np


def numbers(n_bins):
    """Signal, background, its uncertainty, and the observed counts of each bin."""
    place = np.arange(n_bins)
    background = 60.0 - 25.0 * place / n_bins
    signal = 4.0 + 8.0 * place / n_bins
    return signal, background, 0.08 * background, np.round(background + 1.2 * signal)


def workspace(signal, background, width, observed):
    samples = [
        {"name": "signal", "data": signal.tolist(), "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
        {"name": "background", "data": background.tolist(), "modifiers": [{"name": "gamma", "type": "shapesys", "data": width.tolist()}]},
    ]
    return {
        "channels": [{"name": "channel", "samples": samples}],
        "observations": [{"name": "channel", "data": observed.tolist()}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    }
