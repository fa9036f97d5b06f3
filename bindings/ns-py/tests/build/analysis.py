"""A small analysis for the tests of `nextstat.build`: histograms by a formula, trees, and the
configurations that describe them.
"""

import copy

import numpy

#: Regions with the edges of their bins; one has a space in its name, one a single bin.
REGIONS = {"SR": [0.0, 10.0, 20.0, 35.0, 50.0, 80.0, 120.0], "CR tt": [0.0, 1.0, 2.0, 4.0], "CR1": [0.0, 1.0]}
SAMPLES = ("signal", "ttbar", "zjets")
VARIATIONS = ("JES", "JER", "btag", "scale")


def nominal(region, sample):
    """Contents without randomness: the same bits everywhere."""
    k, s = numpy.arange(len(REGIONS[region]) - 1), SAMPLES.index(sample)
    return (40.0 + 9.0 * s) / (1.0 + 0.25 * k) + (3.0 * k * s) % 7.0 + len(region)


def varied(region, sample, variation, side):
    """Contents one standard deviation up or down, with a rough ratio to the nominal ones."""
    k = numpy.arange(len(REGIONS[region]) - 1)
    seed = 7 * VARIATIONS.index(variation) + 3 * SAMPLES.index(sample) + (5 if side == "Up" else 2)
    sign = 1.0 if side == "Up" else -1.0
    return nominal(region, sample) * (1.0 + sign * 0.03125 + ((13 * k + seed) % 11 - 5) / 128.0)


def template(region, sample, systematic, side):
    """What `build` may be given instead of files."""
    if sample == "Data":
        return numpy.round(sum(nominal(region, one) for one in SAMPLES)), REGIONS[region]
    name = {"Z+jets": "zjets"}.get(sample, sample)
    values = nominal(region, name) if systematic is None else varied(region, name, systematic.partition("_")[0], side)
    return values, REGIONS[region]


def write_histograms(path):
    """A ROOT file with the histograms of all regions, in folders."""
    import hist
    import uproot

    def weighted(values, edges):
        made = hist.Hist(hist.axis.Variable(edges), storage=hist.storage.Weight())
        made.view().value, made.view().variance = values, 0.5 * values
        return made

    with uproot.recreate(path) as file:
        for region, edges in REGIONS.items():
            folder = region.replace(" ", "_")
            for sample in SAMPLES:
                file[f"{folder}/{sample}"] = weighted(nominal(region, sample), edges)
                for variation in VARIATIONS:
                    for side in ("Up", "Down"):
                        file[f"{folder}/{sample}_{variation}_{side}"] = weighted(varied(region, sample, variation, side), edges)
            file[f"{folder}/data"] = template(region, "Data", None, None)[0], numpy.array(edges)
        file["numbers"] = "not a histogram"


def write_trees(path):
    """A ROOT file with trees: a thousand events each, by a formula."""
    import uproot

    events = numpy.arange(1000)
    with uproot.recreate(path) as file:
        for k, tree in enumerate(("signal", "background", "background_varied", "pseudodata")):
            columns = {
                "pt": (100.0 + (events * (37 + 2 * k)) % 500).astype("f4"),
                "n_jets": (events // (3 + k)) % 8,
                "weight": 0.0625 + (events % 16) / 256.0,
            }
            file.mktree(tree, {name: column.dtype for name, column in columns.items()})
            file[tree].extend(columns)


def _both(variation):
    return {"Up": {"VariationPath": f"_{variation}_Up"}, "Down": {"VariationPath": f"_{variation}_Down"}}


def _mirrored(variation):
    return {"Up": {"VariationPath": f"_{variation}_Up"}, "Down": {"Symmetrize": True}}


HISTOGRAMS = {
    "General": {
        "Measurement": "everything",
        "POI": "mu",
        "InputPath": "histograms.root:{RegionPath}/{SamplePath}{VariationPath}",
        "HistogramFolder": "folder/",
        "Fixed": [{"Name": "k_z", "Value": 1}, {"Name": "luminosity", "Value": 0.1}],
    },
    "Regions": [{"Name": "SR", "RegionPath": "SR"}, {"Name": "CR tt", "RegionPath": "CR_tt"}, {"Name": "CR1", "RegionPath": "CR1"}],
    "Samples": [
        {"Name": "Data", "SamplePath": "data", "Data": True},
        {"Name": "signal", "SamplePath": "signal", "Regions": ["SR", "CR tt"]},
        {"Name": "ttbar", "SamplePath": "ttbar"},
        {"Name": "Z+jets", "SamplePath": "zjets", "DisableStaterror": True},
    ],
    "NormFactors": [
        {"Name": "mu", "Samples": "signal", "Nominal": 1, "Bounds": [0, 10]},
        {"Name": "k_tt", "Samples": ["ttbar"], "Nominal": 1.0, "Bounds": [0.5, 2]},
        {"Name": "k_z", "Samples": "Z+jets", "Regions": ["CR1", "SR"]},
    ],
    "Systematics": [
        {"Name": "luminosity", "Type": "Normalization", "Up": {"Normalization": 0.02}, "Down": {"Normalization": -0.02}},
        {"Name": "nothing", "Type": "Normalization", "Up": {"Normalization": 0}, "Down": {"Normalization": 0}, "Samples": "ttbar"},
        {"Name": "JES", "Type": "NormPlusShape", **_both("JES"), "Smoothing": {"Algorithm": "353QH, twice"}},
        {"Name": "JER", "Type": "NormPlusShape", **_mirrored("JER"), "Samples": ["ttbar", "signal"]},
        {
            "Name": "btag",
            "Type": "NormPlusShape",
            **_mirrored("btag"),
            "Regions": ["SR", "CR1"],
            "Smoothing": {"Algorithm": "353QH, twice", "Regions": "SR", "Samples": ["ttbar"]},
        },
        {"Name": "scale_tt", "ModifierName": "scale", "Type": "NormPlusShape", **_both("scale"), "Samples": "ttbar"},
        {"Name": "scale_z", "ModifierName": "scale", "Type": "NormPlusShape", **_both("scale"), "Samples": "Z+jets"},
    ],
}

SMALL = {
    "General": {"Measurement": "small", "InputPath": "histograms.root:SR/{SamplePath}", "HistogramFolder": "folder/"},
    "Regions": [{"Name": "only"}],
    "Samples": [{"Name": "data", "SamplePath": "data", "Data": True}, {"Name": "signal", "SamplePath": "signal"}],
    "NormFactors": [{"Name": "mu"}],
}

TREES = {
    "General": {"Measurement": "trees", "POI": "mu", "InputPath": "{SamplePath}", "HistogramFolder": "folder/"},
    "Regions": [
        {"Name": "high", "Variable": "pt", "Binning": [200, 300, 400, 500.5, 600], "Filter": "(n_jets >= 4) & (pt > 50)"},
        {"Name": "jets", "Variable": "n_jets", "Binning": [0, 2, 4, 6, 8], "Filter": "pt < 300"},
        {"Name": "log", "Variable": "log(pt)", "Binning": [4.6, 5, 5.5, 6, 7]},
    ],
    "Samples": [
        {"Name": "Data", "Tree": "pseudodata", "SamplePath": "trees.root", "Data": True},
        {"Name": "signal", "Tree": "signal", "SamplePath": "trees.root", "Weight": "0.0123"},
        {"Name": "background", "Tree": "background", "SamplePath": ["trees.root", "trees*.root"], "Weight": "weight*1.5"},
    ],
    "NormFactors": [{"Name": "mu", "Samples": "signal", "Bounds": [-5, 5]}],
    "Systematics": [
        {"Name": "weight", "Type": "NormPlusShape", "Up": {"Weight": "weight*weight*9"}, "Down": {"Symmetrize": True}, "Samples": "background"},
        {
            "Name": "tree",
            "Type": "NormPlusShape",
            "Up": {"Tree": "background_varied", "SamplePath": "trees.root"},
            "Down": {"Symmetrize": True},
            "Samples": "background",
            "Smoothing": {"Algorithm": "353QH, twice"},
            "Regions": ["high"],
        },
        {"Name": "scale", "Type": "NormPlusShape", "Up": {"Variable": "pt*1.1"}, "Down": {"Variable": "pt*0.9"}, "Regions": "high"},
        {"Name": "filter", "Type": "NormPlusShape", "Up": {"Filter": "n_jets > -1"}, "Down": {"Filter": "pt < 250"}, "Samples": ["signal"], "Regions": "jets"},
    ],
}

CONFIGURATIONS = {"histograms": HISTOGRAMS, "small": SMALL, "trees": TREES}


def with_options(config=HISTOGRAMS, **options):
    """A copy of a configuration with the section `Nextstat`."""
    return {**copy.deepcopy(config), "Nextstat": options}
