"""Invented jets of three kinds, of one, two and three prongs, with particles and pileup."""

from dataclasses import dataclass

import numpy as np

# The columns of the tagger's output. The signal is a boson with a mass of 90 GeV.
KINDS = ("light", "signal", "top")
_PRONGS = {"light": 2, "signal": 2, "top": 3}
_MASSES = {"light": 0.0, "signal": 90.0, "top": 170.0}
_MEAN_PILEUP = 30.0


@dataclass
class Jets:
    """Jets: jet j has the particles `offsets[j]` to `offsets[j + 1] - 1`."""

    offsets: np.ndarray
    particles: np.ndarray
    """A row of each particle: its pT in GeV, and Δη and Δφ to the axis of the jet."""
    pileup: np.ndarray
    """Interactions of each event."""


def generate(kind, n_jets, seed):
    """Returns jets of a kind."""
    random = np.random.default_rng(seed)
    momenta = 250 + random.exponential(150, n_jets)
    fractions, centres = _prongs(random, kind, momenta)
    pileup = random.poisson(_MEAN_PILEUP, n_jets)
    counts = 4 + random.poisson(8 + 4 * _PRONGS[kind] + 0.2 * pileup)
    jet = np.repeat(np.arange(n_jets), counts)
    prong = (random.random((len(jet), 1)) > np.cumsum(np.sqrt(fractions) / np.sqrt(fractions).sum(1, keepdims=True), 1)[jet]).sum(1)
    prong = np.minimum(prong, _PRONGS[kind] - 1)
    shares = random.exponential(1, len(jet)) ** 1.5
    of_prong = jet * _PRONGS[kind] + prong
    shares /= np.bincount(of_prong, shares, n_jets * _PRONGS[kind])[of_prong]
    pt = shares * fractions[jet, prong] * momenta[jet]
    width = (0.05 if kind == "light" else 0.03) + 0.08 / np.sqrt(1 + pt)
    angles = centres[jet, prong] + width[:, None] * random.normal(0, 1, (len(jet), 2))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return Jets(offsets, np.column_stack([pt, angles]).astype(np.float32), pileup)


def _prongs(random, kind, momenta):
    """Returns the fractions of the momentum and the places of the prongs."""
    n_jets, n_prongs = len(momenta), _PRONGS[kind]
    if kind == "light":
        # A parton with a radiation that is soft, mostly.
        soft = 0.5 * 0.04 ** random.random(n_jets)
        fractions = np.column_stack([1 - soft, soft])
        distances = 0.6 * random.random(n_jets)
    else:
        fractions = random.dirichlet([5.0] * n_prongs, n_jets)
        distances = _MASSES[kind] / (momenta * np.sqrt(fractions[:, 0] * (1 - fractions[:, 0])))
    first = 2 * np.pi * random.random((n_jets, 1))
    directions = first + 2 * np.pi * np.arange(n_prongs) / n_prongs + 0.2 * random.normal(0, 1, (n_jets, n_prongs))
    radii = 0.5 * distances[:, None, None]
    centres = radii * np.stack([np.cos(directions), np.sin(directions)], axis=-1)
    return fractions, centres - (fractions[:, :, None] * centres).sum(1, keepdims=True)


def scaled(jets, momentum=1.0, angle=1.0):
    """Returns the particles of jets with other scales of momenta or angles."""
    return jets.particles * np.array([momentum, angle, angle], np.float32)


def without_some(jets, fraction, seed):
    """Returns offsets and particles of jets that lost a fraction of their particles."""
    kept = np.random.default_rng(seed).random(len(jets.particles)) >= fraction
    # The hardest particle stays, so that no jet is empty.
    order = np.lexsort([jets.particles[:, 0], np.repeat(np.arange(len(jets.pileup)), np.diff(jets.offsets))])
    kept[order[jets.offsets[1:] - 1]] = True
    before = np.concatenate([[0], np.cumsum(kept)])
    return before[jets.offsets], jets.particles[kept]


def pileup_weights(jets, shift):
    """Returns weights for a mean of `shift` more interactions: the ratio of both Poisson laws."""
    ratio = 1 + shift / _MEAN_PILEUP
    return ratio**jets.pileup * np.exp(-shift)
