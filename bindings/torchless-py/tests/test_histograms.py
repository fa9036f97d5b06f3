"""Histograms of a score: exact sums, the same bits however events are divided, the rule of
nextstat's builder, and errors that name the variation and the input."""

import math
import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torchless
from conftest import case
from torchless import Ragged, Score, ScoreHistograms, Variation

EDGES = (0.0, 0.5, 1.0, 1.25, 2.0, 3.0)
SCORE = Score(column=1, transform="log_ratio", against={0: 0.6, 2: 0.4})


def offsets_of(counts):
    return np.concatenate([[0], np.cumsum(counts)])


@pytest.fixture
def events(jets):
    """Several times the jets of the fixture, ragged, with weights and variations."""
    path, _, rows, counts = jets
    random = np.random.default_rng(5)
    rows = {name: np.concatenate([random.uniform(0.5, 1.5) * array for _ in range(8)]) for name, array in rows.items()}
    counts = np.tile(counts, 8)
    n_events = len(counts)
    offsets = offsets_of(counts)
    # Sums of weights over many powers of ten depend on their order unless they are exact.
    weights = random.normal(1, 2, n_events) * 10.0 ** random.integers(-15, 15, n_events)
    kept = np.ones(len(rows["x"]), bool)
    kept[offsets[:-1][counts > 1]] = False
    fewer = np.concatenate([[0], np.cumsum(kept)])[offsets]
    variations = {
        "scale_up": Variation(inputs={"v": Ragged(1.1 * rows["v"], offsets)}),
        "tracking": Variation(inputs={name: Ragged(array[kept], fewer) for name, array in rows.items()}, weights=weights[::-1]),
        "pileup": Variation(weights=random.normal(1, 0.1, n_events).astype(np.float32)),
    }
    nominal = {name: Ragged(array, offsets) for name, array in rows.items()}
    return SimpleNamespace(model=torchless.Encoder(path), inputs=nominal, weights=weights, variations=variations)


def part(inputs, chosen):
    """Returns some of the events of ragged inputs."""
    return {name: Ragged(array.content, array.offsets[chosen.start : chosen.stop + 1]) for name, array in inputs.items()}


def filled(events, flow="drop", call=None, **options):
    histograms = ScoreHistograms(events.model, EDGES, SCORE, flow=flow, mask="mask", **options)
    n_events = len(events.weights)
    call = call or n_events
    for start in range(0, n_events, call):
        chosen = slice(start, min(start + call, n_events))
        variations = {
            name: Variation(part(one.inputs or {}, chosen), None if one.weights is None else one.weights[chosen])
            for name, one in events.variations.items()
        }
        histograms.fill(part(events.inputs, chosen), weights=events.weights[chosen], variations=variations)
    return histograms


def bits(histograms):
    return {name: (one.values(flow=True).tobytes(), one.variances(flow=True).tobytes()) for name, one in histograms.items()}


def scores(events, inputs):
    """Returns the scores by NumPy of the outputs of `encode`."""
    logits = events.model.encode({**events.inputs, **inputs}, mask="mask")["logits"].astype(float)
    return logits[:, 1] - np.log(0.6 * np.exp(logits[:, 0]) + 0.4 * np.exp(logits[:, 2]))


def test_sums_are_those_of_the_scores_and_exact(events):
    histograms = filled(events)
    assert list(histograms) == ["nominal", *events.variations] and len(histograms) == 4
    for name, variation in {"nominal": Variation(), **events.variations}.items():
        weights = np.asarray(events.weights if variation.weights is None else variation.weights, float)
        places = np.searchsorted(EDGES, scores(events, variation.inputs or {}), side="right")
        found = histograms[name]
        for place in range(len(EDGES) + 1):
            inside = weights[places == place]
            assert found.values(flow=True)[place] == math.fsum(inside)
            assert found.variances(flow=True)[place] == math.fsum(inside**2)
        assert (found.values() == found.values(flow=True)[1:-1]).all()
        assert len(np.unique(places)) > 4


@pytest.mark.parametrize(
    ("call", "options"),
    [(None, {"threads": 2}), (None, {"chunk_size": 1}), (7, {}), (13, {"chunk_size": 5, "events_at_once": 3, "threads": 3})],
)
def test_no_bit_depends_on_chunks_threads_or_calls(events, call, options):
    assert bits(filled(events, call=call, **options)) == bits(filled(events))


def test_no_bit_depends_on_the_order_of_events(jets):
    path, padded, _, counts = jets
    model = torchless.Encoder(path)
    weights = 10.0 ** np.arange(len(counts))
    found = []
    for order in (np.arange(len(counts)), np.arange(len(counts))[::-1]):
        histograms = ScoreHistograms(model, [-10, 10], mask="mask")
        histograms.fill({name: array[order] for name, array in padded.items()}, weights=weights[order])
        found.append(bits(histograms))
    assert found[0] == found[1]


def test_awkward_arrays_and_padded_ones_give_the_same(jets):
    ak = pytest.importorskip("awkward")
    path, padded, rows, counts = jets
    model = torchless.Encoder(path)
    awkward = {name: ak.unflatten(array, counts) for name, array in rows.items()}
    found = []
    for inputs, varied in ((padded, 2 * padded["v"]), (awkward, 2 * awkward["v"])):
        histograms = ScoreHistograms(model, EDGES, SCORE, mask="mask")
        histograms.fill(inputs, variations={"double": Variation(inputs={"v": varied})})
        found.append(bits(histograms))
    assert found[0] == found[1]


@pytest.mark.parametrize("transform", ["number", "softmax"])
def test_transforms(transform):
    path, inputs, _ = case("mlp")
    model = torchless.Encoder(path)
    logits = model.encode(inputs)["logits"].astype(float)
    softmax = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = {"number": logits, "softmax": softmax}[transform][:, 0]
    edges = np.sort(expected)[::3] - 1e-9
    histograms = ScoreHistograms(model, edges, Score(transform=transform))
    histograms.fill(inputs)
    assert (histograms.nominal.values() == np.histogram(expected, edges)[0]).all()


def test_the_upper_edge_is_outside_and_joins_if_merged():
    path, inputs, _ = case("mlp")
    model = torchless.Encoder(path)
    scores = model.encode(inputs)["logits"][:, 0].astype(float)
    edges = np.array([np.median(scores), scores.max()])
    edges[0] = scores[scores >= edges[0]].min()
    inside, above = (scores >= edges[0]) & (scores < edges[1]), scores == edges[1]
    drop, merge = (ScoreHistograms(model, edges, flow=flow) for flow in ("drop", "merge"))
    for histograms in (drop, merge):
        histograms.fill(inputs)
    assert drop.nominal.values() == [inside.sum()] and drop.nominal.values(flow=True)[-1] == above.sum() > 0
    assert merge.nominal.values() == merge.nominal.values(flow=True) == [len(scores)]
    assert drop.nominal.to_numpy(flow=True)[1].tolist() == [-np.inf, *edges, np.inf]


def test_histograms_follow_the_protocol(events):
    histogram = filled(events).nominal
    (axis,) = histogram.axes
    assert list(axis) == list(pairwise(EDGES)) and axis[len(axis) - 1] == axis[-1] == EDGES[-2:]
    assert axis == filled(events).nominal.axes[0] != filled(events, flow="merge").nominal.axes[0]
    assert histogram.kind == "COUNT" and axis.traits.overflow and not axis.traits.circular
    values, variances = histogram.values(), histogram.variances()
    assert np.allclose(histogram.counts() * variances, values**2)
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1.0
    with pytest.raises(KeyError):
        filled(events)["scale_down"]


def test_what_does_not_fit_is_an_error_that_names_the_variation(events):
    def error(variation=None, **changes):
        histograms = ScoreHistograms(events.model, EDGES, SCORE, mask="mask")
        variations = {} if variation is None else {"up": variation}
        with pytest.raises(torchless.InputError) as caught:
            histograms.fill(**{"inputs": events.inputs, "variations": variations, **changes})
        assert not histograms.nominal.values(flow=True).any() and list(histograms) == ["nominal"]
        return caught.value

    offsets = events.inputs["v"].offsets
    short = Ragged(events.inputs["v"].content, offsets[:-1])
    messages = {
        "variation `up`: input `v`: it has 95 events, and other inputs have 96": Variation({"v": short}),
        "variation `up`: input `w`: the model has no such input": Variation({"w": short}),
        "variation `up`: input `v`: arrays of <U1 are not taken": Variation({"v": np.array(["a"])}),
        "variation `up`: input `v`: its offsets are an array [1, 2] of int64": Variation({"v": Ragged([1.0], [[0, 1]])}),
        "variation `up`: it has neither inputs nor weights of its own": Variation(),
        "variation `up`: there are 2 weights, and 96 events": Variation(weights=[1.0, 2.0]),
        "variation `up`: weights: they have the shape [1, 2], and one axis is needed": Variation(weights=[[1.0, 2.0]]),
        "variation `up`: weights: arrays of complex128 are not taken": Variation(weights=np.zeros(96, complex)),
        "variation `up`: weights: they have masked values": Variation(weights=np.ma.masked_array([1.0], [True])),
        "variation `up`: the weight of event 95 is inf, and its square must be finite": Variation(weights=[1.0] * 95 + [np.inf]),
    }
    for message, variation in messages.items():
        found = error(variation)
        assert str(found) == message
        if sys.version_info >= (3, 11) and found.hint:
            assert found.__notes__ == [f"hint: {found.hint}"]
    assert str(error(weights=[1.0])) == "there are 1 weights, and 96 events"
    assert str(error(inputs={"v": short})) == "input `x`: it is not given"
    nan = np.where(np.arange(len(events.inputs["v"].content))[:, None] == offsets[9], np.nan, events.inputs["v"].content)
    found = error(Variation({"v": Ragged(nan, offsets)}))
    assert str(found) == "variation `up`: the score of event 9 is NaN" and "weight 0" in found.hint


def test_mistakes_of_the_histograms_are_errors(events):
    def error(*arguments, **options):
        with pytest.raises(torchless.InputError) as caught:
            ScoreHistograms(events.model, *arguments, **options)
        return str(caught.value)

    assert error([0, 1, 1]) == "edge 2 is 1, and must be above 1"
    assert error([[0, 1]]) == "the edges have the shape [1, 2], and one axis is needed"
    assert error([0, 1], flow="keep") == "`flow` is 'keep'"
    assert error([0, 1], Score(transform="sigmoid")) == "score: `transform` is 'sigmoid'"
    assert error([0, 1], Score(against={0: 1.0})) == "score: `against` goes with ratios, and `transform` is 'number'"
    histograms = ScoreHistograms(events.model, EDGES, Score(output="probabilities"), mask="mask")
    with pytest.raises(torchless.InputError, match="the model has no output `probabilities`; it has `logits`"):
        histograms.fill(events.inputs)


def test_the_builder_of_nextstat_takes_the_histograms(events):
    """Values, variances, edges, and under- and overflow by the same rule."""
    nextstat = pytest.importorskip("nextstat.histograms")
    from nextstat.build.sources import filled as filled_by_nextstat

    events.weights = np.abs(events.weights) ** 0.1
    histograms, merged = filled(events), filled(events, flow="merge")
    for name in histograms:
        found = nextstat.read(histograms[name])
        assert found.values == histograms[name].values().tolist() and found.variances == histograms[name].variances().tolist()
        assert found.edges == list(EDGES)
        both = nextstat.read(histograms[name], flow="merge"), nextstat.read(merged[name], flow="merge")
        assert np.allclose(both[0].values, both[1].values, rtol=1e-14) and np.allclose(both[0].variances, both[1].variances, rtol=1e-14)
    template = filled_by_nextstat(scores(events, {}), events.weights, EDGES)
    assert np.allclose(template.values, histograms.nominal.values(), rtol=1e-13)
    assert np.allclose(template.errors**2, histograms.nominal.variances(), rtol=1e-13)
    builder = nextstat.WorkspaceBuilder()
    sample = builder.channel("region", data="asimov").sample("jets", histograms.nominal).normfactor("mu").staterror()
    sample.histosys("scale", up=histograms["scale_up"]).histosys("pileup", up=histograms["pileup"], down=histograms["tracking"])
    assert builder.model(poi="mu").n_bins == len(EDGES) - 1
