"""Makes the histograms of an invented search, as an event loop would leave them: `histograms.root`.

    python make_histograms.py [FOLDER]    # needs NumPy, hist and uproot

Each region has a folder with the observed counts (`data`), one histogram for each sample, and
one for each systematic variation of it (`ttbar_JES_up`). Simulated histograms have the errors of a
finite number of generated events. Data are drawn from the model with the parameters `TRUTH`.
"""

import sys
from pathlib import Path

import hist
import numpy
import uproot

# The legacy generator: NumPy promises that its numbers stay the same.
random = numpy.random.RandomState(6)

#: Bins of each region in the mass [GeV], as edges.
EDGES = {
    "SR": numpy.linspace(200, 1000, 9),
    "VR": numpy.linspace(200, 700, 6),
    "CR_ttbar": numpy.linspace(200, 700, 6),
    "CR_Zjets": numpy.linspace(200, 700, 6),
}

#: Expected events of the first bin, and the mass [GeV] in which they fall by a factor e.
FALLING = {
    "SR": {"ttbar": (260, 190), "Zjets": (150, 280), "diboson": (22, 350), "fakes": (30, 150)},
    "VR": {"ttbar": (310, 200), "Zjets": (210, 270), "diboson": (18, 330), "fakes": (36, 150)},
    "CR_ttbar": {"ttbar": (1400, 210), "Zjets": (75, 260), "diboson": (9, 330), "fakes": (60, 160)},
    "CR_Zjets": {"ttbar": (160, 200), "Zjets": (1150, 270), "diboson": (60, 350), "fakes": (25, 150)},
}

#: Expected events of the signal; it has a peak at 620 GeV, with a width of 90 GeV.
SIGNAL = {"SR": 48.0, "VR": 3.0}

#: Generated events per expected event.
GENERATED = {"signal": 200.0, "ttbar": 12.0, "Zjets": 8.0, "diboson": 20.0, "fakes": 3.0}

#: What the data are drawn with: signal strength, normalisations, and nuisance parameters.
TRUTH = {"mu": 1.2, "k_ttbar": 1.12, "k_Zjets": 0.88, "JES": 0.6, "b_tagging": -0.5, "Zjets_scale": 0.4}


def expected(region):
    """Yields of each sample without fluctuations, as arrays over the bins."""
    centres = 0.5 * (EDGES[region][1:] + EDGES[region][:-1])
    samples = {name: first * numpy.exp(-(centres - centres[0]) / length) for name, (first, length) in FALLING[region].items()}
    if region in SIGNAL:
        peak = numpy.exp(-0.5 * ((centres - 620) / 90) ** 2)
        samples["signal"] = SIGNAL[region] * peak / peak.sum()
    return samples


def effect(systematic, sample, centres):
    """The relative change of each bin by one standard deviation."""
    distance = (centres - 400) / 400
    tagging = {"ttbar": 0.03, "Zjets": 0.09, "diboson": 0.06, "signal": 0.03}
    return {
        "JES": 0.03 + 0.06 * distance if sample != "fakes" else 0 * distance,
        "JER": 0.04 * distance if sample in ("ttbar", "Zjets") else 0.002 * distance,
        "b_tagging": tagging.get(sample, 0) * (1 + 0.2 * distance),
        "Zjets_scale": -0.05 + 0.08 * distance,
        "ttbar_generator": 0.02 - 0.07 * distance,
    }[systematic]


def simulated(yields, sample):
    """A histogram of weighted events: contents and squared errors."""
    counts = random.poisson(GENERATED[sample] * yields)
    return counts / GENERATED[sample], counts / GENERATED[sample] ** 2


def variations(sample, nominal, centres):
    """Pairs of a suffix and a histogram for each varied template of a sample."""
    values, variances = nominal

    def varied(systematic, sigma, noise=0.0):
        # Events that migrate between bins are other events than those of the nominal template.
        factor = 1 + sigma * effect(systematic, sample, centres) + noise * random.normal(size=len(centres))
        return values * factor, variances * factor**2

    noise = {"Zjets": 0.025, "ttbar": 0.006}.get(sample, 0.0)
    if sample != "fakes":
        yield "_JES_up", varied("JES", 1, noise)
        yield "_JES_down", varied("JES", -0.9, noise)
        yield "_JER", varied("JER", 1)
        yield "_b_tagging_up", varied("b_tagging", 1)
        yield "_b_tagging_down", varied("b_tagging", -1)
    if sample == "Zjets":
        yield "_scale_up", varied("Zjets_scale", 1)
        yield "_scale_down", varied("Zjets_scale", -0.8)
    if sample == "ttbar":
        yield "_generator", varied("ttbar_generator", 1)


def observed(region):
    """Counts drawn from the model at `TRUTH`."""
    centres, total = 0.5 * (EDGES[region][1:] + EDGES[region][:-1]), 0.0
    norms = {"signal": TRUTH["mu"], "ttbar": TRUTH["k_ttbar"], "Zjets": TRUTH["k_Zjets"]}
    for sample, yields in expected(region).items():
        factor = norms.get(sample, 1.0)
        for systematic in ("JES", "b_tagging"):
            factor = factor * (1 + TRUTH[systematic] * effect(systematic, sample, centres))
        if sample == "Zjets":
            factor = factor * (1 + TRUTH["Zjets_scale"] * effect("Zjets_scale", sample, centres))
        total = total + factor * yields
    return random.poisson(total).astype(float)


def weighted(values, variances, edges):
    """A histogram with a sum of squared weights."""
    histogram = hist.Hist.new.Var(edges, name="mass", label="mass [GeV]").Weight()
    histogram.view().value, histogram.view().variance = values, variances
    return histogram


def main(folder="."):
    with uproot.recreate(Path(folder) / "histograms.root") as file:
        for region, edges in EDGES.items():
            centres = 0.5 * (edges[1:] + edges[:-1])
            data = observed(region)
            file[f"{region}/data"] = weighted(data, data, edges)
            for sample, yields in expected(region).items():
                nominal = simulated(yields, sample)
                file[f"{region}/{sample}"] = weighted(*nominal, edges)
                for suffix, template in variations(sample, nominal, centres):
                    file[f"{region}/{sample}{suffix}"] = weighted(*template, edges)


if __name__ == "__main__":
    main(*sys.argv[1:])
