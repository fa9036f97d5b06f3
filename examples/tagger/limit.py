"""From jets to a limit: scores of a tagger with all variations, a workspace, a fit and a figure.

python limit.py --jets 1000000 --figure limit.svg    # in this folder

Needs the packages torchless and nextstat; the figure needs nextstat's extra `plot`.
"""

import argparse
import time

import nextstat
import numpy as np
from jets import KINDS, generate, pileup_weights, scaled, without_some
from nextstat.histograms import WorkspaceBuilder
from torchless import Encoder, Ragged, Score, ScoreHistograms, Variation

# Jets that are expected in the data.
EXPECTED = {"light": 20_000.0, "top": 4_000.0, "signal": 50.0}
# Of the simulated jets.
FRACTIONS = {"light": 0.6, "top": 0.2, "signal": 0.2}
SCORE = Score(column=KINDS.index("signal"), transform="log_ratio", against={KINDS.index("light"): 0.9, KINDS.index("top"): 0.1})
EDGES = np.linspace(-8, 4, 25)
# Jets that are in memory at once.
CHUNK = 50_000


def variations(jets, weight):
    """Returns what is varied: momenta, angles, lost particles, and weights for pileup."""
    def varied(particles, offsets=jets.offsets):
        return Variation(inputs={"particles": Ragged(particles, offsets)})

    fewer, kept = without_some(jets, 0.03, seed=2)
    return {
        "scale_up": varied(scaled(jets, momentum=1.02)),
        "scale_down": varied(scaled(jets, momentum=0.98)),
        "angles_up": varied(scaled(jets, angle=1.02)),
        "angles_down": varied(scaled(jets, angle=0.98)),
        "tracking": varied(kept, fewer),
        "pileup_up": Variation(weights=weight * pileup_weights(jets, +1.5)),
        "pileup_down": Variation(weights=weight * pileup_weights(jets, -1.5)),
    }


def histograms(kind, n_jets, threads=1):
    """Returns the histograms of jets of a kind, scaled to those that are expected."""
    filled = ScoreHistograms(Encoder("tagger.onnx"), EDGES, SCORE, flow="merge", mask="mask", threads=threads)
    for start in range(0, n_jets, CHUNK):
        jets = generate(kind, min(CHUNK, n_jets - start), seed=[KINDS.index(kind), start])
        weights = np.full(len(jets.pileup), EXPECTED[kind] / n_jets)
        inputs = {"particles": Ragged(jets.particles, jets.offsets)}
        filled.fill(inputs, weights=weights, variations=variations(jets, weights))
    return filled


def workspace(filled):
    """Returns the builder of a workspace with the histograms of each kind, and invented data."""
    background = sum(filled[kind].nominal.values() for kind in ("light", "top"))
    builder = WorkspaceBuilder()
    region = builder.channel("tagged", data=(np.random.default_rng(3).poisson(background), EDGES))
    for kind in ("signal", "light", "top"):
        sample = region.sample(kind, filled[kind]["nominal"]).staterror()
        for name in ("scale", "angles", "pileup"):
            sample.histosys(name, up=filled[kind][f"{name}_up"], down=filled[kind][f"{name}_down"])
        sample.histosys("tracking", up=filled[kind]["tracking"])
        if kind == "signal":
            sample.normfactor("mu")
        else:
            sample.normsys(f"rate_{kind}", 0.2)
    return builder


def figure(filled, model, limits, path):
    """Draws the scores of signal and background with two variations, and the limit."""
    import matplotlib.pyplot as plt
    import nextstat.plot

    with nextstat.plot.style():
        drawn, axes = plt.subplot_mosaic(
            [["scores", "brazil"], ["ratio", "brazil"]], figsize=(11.5, 5), height_ratios=(2, 1), width_ratios=(1.1, 1), layout="constrained"
        )
        scores, ratio, brazil = axes["scores"], axes["ratio"], axes["brazil"]
        scores.sharex(ratio)
        scores.tick_params(labelbottom=False)
        bottom = np.zeros(len(EDGES) - 1)
        for kind, label in (("top", "top"), ("light", "light partons")):
            values = filled[kind].nominal.values()
            scores.stairs(bottom + values, EDGES, baseline=bottom, fill=True, label=label)
            bottom = bottom + values
        scores.stairs(filled["signal"].nominal.values(), EDGES, color="black", linewidth=2, label="signal, μ = 1")
        scores.set(yscale="log", ylim=(0.2, 8 * bottom.max()), ylabel="jets")
        scores.legend(ncols=3, fontsize="small", loc="upper left")
        for name, label in (("scale_up", "momenta +2 %"), ("angles_up", "angles +2 %"), ("tracking", "3 % of particles lost"), ("pileup_up", "more pileup")):
            varied = sum(filled[kind][name].values() for kind in ("light", "top"))
            ratio.stairs(varied / bottom, EDGES, baseline=None, label=label, linewidth=1.5)
        ratio.axhline(1, color="grey", linewidth=0.8)
        ratio.set(xlabel="ln p(signal) / (0.9 p(light) + 0.1 p(top))", ylabel="varied / nominal", ylim=(0.85, 1.3))
        ratio.legend(ncols=2, fontsize="x-small", loc="upper left")
        tests = [nextstat.hypotest(model, mu) for mu in np.linspace(0, 2.2 * limits.expected[2], 31)]
        nextstat.plot.brazil(tests, limits, xlabel="signal strength μ", ax=brazil)
        drawn.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--jets", type=int, default=1_000_000, help="simulated jets of all kinds together (default: a million)")
    parser.add_argument("--threads", type=int, default=0, help="0 for all of the machine (default)")
    parser.add_argument("--figure", help="where the figure goes")
    arguments = parser.parse_args(arguments)
    start = time.perf_counter()
    filled = {kind: histograms(kind, int(arguments.jets * FRACTIONS[kind]), arguments.threads) for kind in KINDS}
    print(f"histograms: {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    model = workspace(filled).model(poi="mu", bounds={"mu": (0, 20)})
    limits = nextstat.upper_limit(model)
    print(f"limit: {time.perf_counter() - start:.2f} s, μ < {limits.observed:.2f} observed, {limits.expected[2]:.2f} expected")
    if arguments.figure:
        figure(filled, model, limits, arguments.figure)


if __name__ == "__main__":
    main()
