"""Smoothing: an independent implementation, ROOT where it is installed, what must not change."""

import random
import statistics

import numpy
import pytest
from nextstat import ParameterError
from nextstat.build import merged_bins, smooth_353qh, smooth_by_rebinning, smooth_ratio
from oracle import asked

# A rounding error of sums of a few terms, relative to the largest value.
ROUNDING = 1e-12


def reference(values, times=1):
    """353QH, twice, from its description, one element at a time and with no arrays."""
    for _ in range(times):
        if len(values) < 3:
            return list(values)
        smooth = one_pass(list(values))
        rough = one_pass([value - smoothed for value, smoothed in zip(values, smooth)])
        values = [a + b if min(values) < 0 else max(a + b, 0.0) for a, b in zip(smooth, rough)]
    return list(values)


def one_pass(x):
    n = len(x)
    y = [x[0], *(statistics.median(x[i - 1 : i + 2]) for i in range(1, n - 1)), x[-1]]
    y[0] = statistics.median([x[0], y[1], 3 * y[1] - 2 * y[2]])
    y[n - 1] = statistics.median([x[-1], y[n - 2], 3 * y[n - 2] - 2 * y[n - 3]])
    z = [statistics.median(y[i - 2 : i + 3]) if 2 <= i < n - 2 else y[i] for i in range(n)]
    z[1] = statistics.median(y[:3])
    z[n - 2] = statistics.median(y[-3:])
    w = [statistics.median(z[i - 1 : i + 2]) if 0 < i < n - 1 else z[i] for i in range(n)]
    q = list(w)
    for i in range(2, n - 2):
        if w[i - 1] == w[i] == w[i + 1] and (w[i - 2] - w[i]) * (w[i + 2] - w[i]) > 0:
            # The parabola leans to the side that differs less.
            d = 1 if abs(w[i + 2] - w[i]) <= abs(w[i - 2] - w[i]) else -1
            q[i] = -w[i - 2 * d] / 2 + 4 * w[i] / 3 + w[i + 2 * d] / 6
            q[i + d] = w[i] + (w[i + 2 * d] - w[i - 2 * d]) / 2
    return [q[i] if i in (0, n - 1) else (q[i - 1] + 2 * q[i] + q[i + 1]) / 4 for i in range(n)]


def arrays():
    """Random and special arrays of 1 to 40 elements."""
    draw = random.Random(17)
    kinds = [
        lambda n: [draw.gauss(0, 1) for _ in range(n)],
        lambda n: [float(draw.randrange(3)) for _ in range(n)],
        lambda n: [float(draw.randrange(-2, 3)) for _ in range(n)],
        lambda n: [1000 * 0.8**i * (1 + draw.gauss(0, 0.1)) for i in range(n)],
        lambda n: [1 + draw.gauss(0, 0.02) for _ in range(n)],
        lambda n: [10 ** draw.uniform(-8, 8) for _ in range(n)],
        lambda n: [value for value in (draw.gauss(0, 1) for _ in range(n)) for _ in range(3)][:n],
        lambda n: [0.0] * n,
        lambda n: [-1.0] * n,
        lambda n: [float(i) for i in range(n)],
        lambda n: [1.0 if i == n // 2 else 0.0 for i in range(n)],
        lambda n: [1.0 if i == n - 1 else 0.0 for i in range(n)],
    ]
    # A valley with equal walls.
    return [[3.0, 3.0, 1.0, 1.0, 1.0, 3.0, 3.0], *(kind(n) for n in range(1, 41) for kind in kinds)]


def largest_difference(found, wanted, scale):
    return max((abs(a - b) for a, b in zip(found, wanted)), default=0.0) / (max(map(abs, scale)) or 1.0)


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_smoothing_agrees_with_an_independent_implementation(times):
    for values in arrays():
        assert largest_difference(smooth_353qh(values, times), reference(values, times), values) <= ROUNDING


ROOT = """
import numpy, ROOT
answer = []
for values in question:
    answer.append([])
    for times in (1, 2):
        smooth = numpy.array(values)
        if len(values) >= 3:
            ROOT.TH1.SmoothArray(len(values), smooth, times)
        answer[-1].append(smooth.tolist())
"""


def test_smoothing_agrees_with_root():
    theirs = asked("ROOT", ROOT, arrays())
    for values, (once, twice) in zip(arrays(), theirs):
        assert largest_difference(smooth_353qh(values), once, values) <= ROUNDING
        assert largest_difference(smooth_353qh(values, 2), twice, values) <= ROUNDING


def test_numbers_of_root_are_reproduced():
    """By ROOT 6.40.00 (`TH1::SmoothArray`) on 2026-11-23."""
    values = ROOT_VALUES
    for times, wanted in ROOT_SMOOTH.items():
        assert largest_difference(smooth_353qh(values, times), wanted, values) <= ROUNDING


ROOT_VALUES = [1.5, 9.0, 4.25, 8.0, 8.5, 7.75, 3.0, 2.5, 6.0, 2.25, 1.0, 0.5]
ROOT_SMOOTH = {
    1: [1.5, 4.307291666666667, 6.942708333333334, 8.583333333333334, 8.5, 6.390625000000001, 3.713541666666667, 2.59375, 2.46875, 2.0, 1.1875, 0.5],
    2: [
        1.5,
        4.373914930555555,
        6.900625723379631,
        8.267451533564813,
        8.056224681712964,
        6.39328342013889,
        4.235026041666667,
        2.906901041666667,
        2.404296875,
        1.9140625,
        1.21875,
        0.5,
    ],
}


def test_the_argument_is_not_changed_and_few_values_are_returned_as_they_are():
    values = numpy.array([3.0, 9.0, 1.0, 4.0])
    smooth_353qh(values)
    assert values.tolist() == [3.0, 9.0, 1.0, 4.0]
    assert smooth_353qh([5.0, 1.0]).tolist() == [5.0, 1.0]


@pytest.mark.parametrize("values", [[[1.0, 2.0, 3.0]], [1.0, numpy.nan, 2.0], [1.0, numpy.inf, 2.0]])
def test_what_cannot_be_smoothed_is_refused(values):
    with pytest.raises(ParameterError, match="one dimension and finite"):
        smooth_353qh(values)


def test_a_smoothed_template_keeps_its_number_of_events():
    nominal = numpy.array([50.0, 40.0, 0.0, 20.0, 10.0, 5.0])
    varied = nominal * [1.1, 0.9, 1.0, 1.3, 0.8, 1.2]
    found = smooth_ratio(varied, nominal)
    assert found.sum() == pytest.approx(varied.sum(), rel=1e-14)
    assert found[2] == 0.0
    assert not numpy.allclose(found, varied)


def test_a_constant_ratio_is_not_changed_by_smoothing():
    nominal = numpy.array([50.0, 40.0, 30.0, 20.0])
    assert smooth_ratio(1.25 * nominal, nominal) == pytest.approx(1.25 * nominal, rel=1e-14)


@pytest.mark.parametrize("empty", [[3, 4], [0, 1], [2, 5], [5]])
def test_bins_that_are_empty_in_both_templates_are_left_out_of_smoothing(empty):
    """So they do not pull the ratios of their neighbours: a constant ratio remains constant."""
    nominal = numpy.array([50.0, 40.0, 30.0, 20.0, 10.0, 5.0, 4.0])
    nominal[empty] = 0.0
    assert smooth_ratio(1.25 * nominal, nominal) == pytest.approx(1.25 * nominal, rel=1e-14)
    varied = nominal * [1.1, 0.9, 1.0, 1.3, 0.8, 1.2, 1.4]
    found = smooth_ratio(varied, nominal)
    filled = nominal > 0.0
    smooth = numpy.array(reference(list(varied[filled] / nominal[filled]))) * nominal[filled]
    assert found[filled] == pytest.approx(smooth * varied.sum() / smooth.sum(), rel=ROUNDING)
    assert not found[~filled].any()


def test_a_bin_that_only_the_varied_template_fills_has_no_ratio():
    with pytest.raises(ParameterError, match="bin 1: the varied template has 2 events where the nominal one has none"):
        smooth_ratio([1.0, 2.0, 3.0], [1.0, 0.0, 3.0])


def test_merged_bins_have_the_precision_and_no_bin_is_lost():
    draw = random.Random(3)
    for n in range(1, 30):
        values = numpy.array([draw.uniform(0, 100) for _ in range(n)])
        errors = numpy.sqrt(values)
        ranges = merged_bins([(values, errors), (1.1 * values, errors)], threshold=0.12)
        assert [bin for start, end in ranges for bin in range(start, end)] == list(range(n))
        if len(ranges) > 1:
            for start, end in ranges:
                assert numpy.sqrt((errors[start:end] ** 2).sum()) <= 0.12 * values[start:end].sum()


def test_merging_stops_as_soon_as_the_precision_is_reached():
    ranges = merged_bins([([400.0] * 6, [20.0] * 6)], threshold=0.04)
    assert ranges == [(0, 2), (2, 4), (4, 6)]


def test_bins_that_never_reach_the_precision_are_one_range():
    assert merged_bins([([1.0, 0.0, 2.0], [1.0, 0.0, 1.4])], threshold=0.01) == [(0, 3)]


def test_rebinning_keeps_the_events_of_each_range():
    nominal, varied = numpy.array([10.0, 8.0, 2.0, 0.0]), numpy.array([12.0, 9.0, 5.0, 1.0])
    found = smooth_by_rebinning(varied, nominal, [(0, 1), (1, 3), (3, 4)])
    assert found.tolist() == [12.0, 11.2, 2.8, 1.0]
