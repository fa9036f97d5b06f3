#!/usr/bin/env python3
"""Compares histograms of a tagger's score with NumPy's, of the scores that ONNX Runtime computes.

Needs the package of bindings/torchless-py, and onnxruntime from PyPI. Every difference must come
from jets whose score lies so near to an edge that rounding moves it across; which of both is right
is decided by double precision.

  compare    nominal and varied histograms of the jets of examples/tagger, bin by bin
  speed      jets in a second of both, one thread each, in turn; and of variations by weights alone
"""

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TAGGER = ROOT / "examples/tagger"
sys.path.insert(0, str(TAGGER))

import torchless  # noqa: E402
from jets import KINDS, generate, pileup_weights, scaled, without_some  # noqa: E402
from torchless import Encoder, Ragged, Score, ScoreHistograms, Variation  # noqa: E402

EDGES = np.linspace(-8, 4, 25)
SCORE = Score(column=1, transform="log_ratio", against={0: 0.9, 2: 0.1})
BATCH = 64


def session():
    """Returns the tagger in ONNX Runtime, with one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(TAGGER / "tagger.onnx", options, providers=["CPUExecutionProvider"])


def logits_by_onnx_runtime(run, offsets, particles):
    """Returns the logits of jets in batches of about one length, each padded to its longest jet."""
    counts = np.diff(offsets)
    order = np.argsort(counts, kind="stable")
    logits = np.empty((len(counts), len(KINDS)), np.float32)
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        mask = np.arange(counts[chosen].max()) < counts[chosen, None]
        padded = np.zeros((*mask.shape, 3), np.float32)
        padded[mask] = np.concatenate([particles[offsets[jet] : offsets[jet + 1]] for jet in chosen])
        logits[chosen] = run.run(None, {"particles": padded, "mask": mask})[0]
    return logits


def ratio(logits):
    """Returns the scores."""
    x = logits.astype(float)
    return x[:, 1] - np.log(0.9 * np.exp(x[:, 0]) + 0.1 * np.exp(x[:, 2]))


def varied(jets):
    """Returns the nominal and the varied jets: offsets, particles and weights."""
    ones = np.random.default_rng(9).uniform(0.5, 1.5, len(jets.pileup))
    return {
        "nominal": (jets.offsets, jets.particles, ones),
        "scale_up": (jets.offsets, scaled(jets, momentum=1.02), ones),
        "tracking": (*without_some(jets, 0.03, seed=2), ones),
        "pileup_up": (jets.offsets, jets.particles, ones * pileup_weights(jets, 1.5)),
    }


def fill(model, sets, **options):
    """Returns the histograms of torchless."""
    offsets, particles, weights = sets["nominal"]
    variations = {}
    for name, (own_offsets, own, own_weights) in sets.items():
        inputs = None if own is particles else {"particles": Ragged(own, own_offsets)}
        variations[name] = Variation(inputs, own_weights if own_weights is not weights else None)
    del variations["nominal"]
    histograms = ScoreHistograms(model, EDGES, SCORE, mask="mask", **options)
    histograms.fill({"particles": Ragged(particles, offsets)}, weights=weights, variations=variations)
    return histograms


def compare(arguments):
    model, exact = Encoder(TAGGER / "tagger.onnx"), Encoder(TAGGER / "tagger.onnx", precision="double")
    run, n_moved, n_jets, n_ours = session(), 0, 0, 0
    for kind in KINDS:
        sets = varied(generate(kind, arguments.jets, seed=7))
        histograms = fill(model, sets, threads=0)
        for name, (offsets, particles, weights) in sets.items():
            theirs = ratio(logits_by_onnx_runtime(run, offsets, particles))
            inputs = {"particles": Ragged(particles, offsets)}
            ours = ratio(model.encode(inputs, mask="mask", threads=0)["logits"])
            places = [np.searchsorted(EDGES, scores, side="right") for scores in (theirs, ours)]
            moved = np.flatnonzero(places[0] != places[1])
            found = histograms[name].values()
            numpys = np.histogram(theirs, EDGES, weights=weights)[0]
            for bin in range(len(EDGES) - 1):
                expected = math.fsum(weights[places[0] == bin + 1])
                gained = math.fsum(weights[moved][places[1][moved] == bin + 1]) - math.fsum(weights[moved][places[0][moved] == bin + 1])
                assert abs(numpys[bin] - expected) < 1e-9 * len(weights), "no score on the last edge"
                assert abs(found[bin] - expected - gained) < 1e-9 * len(weights)
            right = ratio(exact.encode({"particles": taken(offsets, particles, moved)}, mask="mask")["logits"])
            ours_right = (np.searchsorted(EDGES, right, side="right") == places[1][moved]).sum()
            distance = np.abs(theirs[moved, None] - EDGES).min(1).max(initial=0.0)
            print(f"{kind:7} {name:10} greatest difference of scores {np.abs(theirs - ours).max():.1e}, bins differ by at most "
                  f"{np.abs(found - numpys).max():.3g}: {len(moved)} jets within {distance:.1e} of an edge; {ours_right} right here")
            n_moved, n_jets, n_ours = n_moved + len(moved), n_jets + len(theirs), n_ours + ours_right
    print(f"{n_moved} of {n_jets} scores in another bin, {n_ours} of them right here and {n_moved - n_ours} there")


def taken(offsets, particles, jets):
    """Returns some of the jets."""
    parts = [particles[offsets[jet] : offsets[jet + 1]] for jet in jets]
    content = np.concatenate(parts) if parts else particles[:0]
    return Ragged(content, np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=int)]))


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def speed(arguments):
    jets = generate("light", arguments.jets, seed=7)
    model, run, sets = Encoder(TAGGER / "tagger.onnx"), session(), varied(jets)
    nominal = {"nominal": sets["nominal"]}
    by_weights = nominal | {f"weights_{index}": (*sets["nominal"][:2], sets["nominal"][2] * (1 + 0.001 * index)) for index in range(100)}
    works = {
        "scores by ONNX Runtime": lambda: logits_by_onnx_runtime(run, jets.offsets, jets.particles),
        "scores by torchless": lambda: model.encode({"particles": Ragged(jets.particles, jets.offsets)}, mask="mask"),
        "nominal histogram": lambda: fill(model, nominal),
        "and 100 variations by weights": lambda: fill(model, by_weights),
        "and 2 by inputs, 1 by weights": lambda: fill(model, sets),
    }
    times = {name: min(timed(work) for _ in range(arguments.repeat)) for name, work in works.items()}
    for name, seconds in times.items():
        print(f"{name:30} {seconds:7.3f} s, {1e6 * seconds / arguments.jets:7.2f} µs for each jet")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("what", choices=["compare", "speed"])
    parser.add_argument("--jets", type=int, default=50_000, help="jets of each kind (default: 50,000)")
    parser.add_argument("--repeat", type=int, default=5, help="runs, of which the fastest counts (default: 5)")
    arguments = parser.parse_args()
    print(f"torchless {torchless.__version__}")
    {"compare": compare, "speed": speed}[arguments.what](arguments)


if __name__ == "__main__":
    main()
