"""Fits of many data sets, bootstrap replicas, and the covariance of two analyses."""

import math

import nextstat
import numpy as np
import pytest


@pytest.fixture(scope="module")
def shapes(root):
    return nextstat.load_workspace(root / "examples/shapes.json")


@pytest.fixture(scope="module")
def toys(shapes):
    return nextstat.throw_toys(shapes, nextstat.fit(shapes).bestfit, n_toys=40, seed=2)


def test_fits_are_those_of_a_loop(shapes, toys):
    found = nextstat.fits(shapes, toys, uncertainties=True)
    for i, data in enumerate(toys):
        single = nextstat.fit(shapes, data=data)
        sigma = single.uncertainties
        assert found.converged[i] and single.converged
        assert found.twice_nll[i] == pytest.approx(single.twice_nll, rel=0, abs=1e-10)
        known = np.isfinite(sigma)
        assert (np.abs(found.bestfit[i] - single.bestfit)[known] < 1e-6 * sigma[known]).all()
        assert (np.isfinite(found.uncertainties[i]) == known).all()
        np.testing.assert_allclose(found.uncertainties[i][known], sigma[known], rtol=1e-6)


def test_bits_do_not_depend_on_threads_or_order(shapes, toys):
    one = nextstat.fits(shapes, toys, threads=1)
    for threads in (2, 5):
        assert nextstat.fits(shapes, toys, threads=threads).bestfit.tobytes() == one.bestfit.tobytes()
    order = np.random.default_rng(0).permutation(len(toys))
    other = nextstat.fits(shapes, toys[order])
    assert other.bestfit.tobytes() == one.bestfit[order].tobytes()
    assert other.twice_nll.tobytes() == one.twice_nll[order].tobytes()


def test_summaries_are_those_of_numpy(shapes, toys):
    found = nextstat.fits(shapes, toys)
    np.testing.assert_allclose([row["mean"] for row in found.parameters], found.bestfit.mean(axis=0), rtol=1e-12, atol=1e-12)
    widths = [row["standard_deviation"] for row in found.parameters]
    np.testing.assert_allclose(widths, found.bestfit.std(axis=0, ddof=1), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.correlation, np.corrcoef(found.bestfit.T), rtol=0, atol=1e-9)
    assert found.standard_deviation("mu") == widths[shapes.par_names.index("mu")]
    assert found.values("mu").shape == (40,)
    nominal = nextstat.fit(shapes)
    assert found.poi["bestfit"] == pytest.approx(nominal.value("mu"), abs=1e-9)
    assert "40" in repr(found) and "standard deviation" in repr(found)


def test_the_command_has_the_same_document(root, tmp_path):
    path, rows = root / "examples/simple.json", [[57, 63], [51, 48], [66, 70]]
    model = nextstat.load_workspace(path)
    np.save(tmp_path / "rows.npy", np.array(rows))
    np.savez_compressed(tmp_path / "rows.npz", data=np.asfortranarray(np.array(rows, dtype=float)))
    for name in ("rows.npy", "rows.npz"):
        done = nextstat.command(["fits", str(path), "--data", str(tmp_path / name), "--uncertainties"])
        document, result = done.json(), nextstat.fits(model, rows, uncertainties=True).to_dict()
        del document["provenance"]["command"]
        assert document == result


def test_files_of_the_command_have_the_fits(root, tmp_path):
    path, rows = root / "examples/simple.json", np.array([[57, 63], [51, 48], [66, 70]])
    np.save(tmp_path / "rows.npy", rows)
    nextstat.command(["fits", str(path), "--data", str(tmp_path / "rows.npy"), "--uncertainties", "-o", str(tmp_path / "fits.npy")])
    records, result = np.load(tmp_path / "fits.npy"), nextstat.fits(nextstat.load_workspace(path), rows, uncertainties=True)
    assert records["data_set"].tolist() == [0, 1, 2] and not records["status"].any()
    for column, values in (("bestfit", result.bestfit), ("uncertainties", result.uncertainties), ("twice_nll", result.twice_nll)):
        assert records[column].tobytes() == values.tobytes()


def test_data_by_channel_are_those_in_one_table(shapes, toys):
    bins = toys[:5, : shapes.n_bins]
    edges = np.cumsum([0, *shapes.channel_n_bins])
    by_channel = {name: bins[:, low:high] for name, low, high in zip(shapes.channels, edges, edges[1:])}
    assert nextstat.fits(shapes, dict(reversed(by_channel.items()))) == nextstat.fits(shapes, bins)


def test_settings_are_those_of_fit(shapes, toys):
    options = {"fixed": {"mu": 0.0}, "mask": f"{shapes.channels[0]}[0]"}
    found = nextstat.fits(shapes, toys[:3], **options)
    single = nextstat.fit(shapes, data=toys[1], **options)
    assert found.twice_nll[1] == pytest.approx(single.twice_nll, rel=0, abs=1e-10)
    assert (found.values("mu") == 0).all()
    assert found.provenance["settings"]["fixed"] == {"mu": 0.0}


def refused(error, call):
    with pytest.raises(error) as raised:
        call()
    return raised.value


def test_damaged_data_are_refused_with_the_place(shapes):
    n_bins = shapes.n_bins
    good = np.full((3, n_bins), 20.0)
    cases = [
        (np.full((3, n_bins + 1), 20.0), "numbers, but the model has"),
        (np.zeros((0, n_bins)), "no data sets"),
        (np.zeros((2, 3, n_bins)), "3 dimensions"),
        (good[0], "one dimension instead of two"),
        (np.where(np.arange(n_bins) == 2, math.nan, good), "data set 0, channel"),
        (np.where(np.arange(n_bins) == 2, -1.0, good), "-1 is not a valid number of events"),
        ({"nope": good}, "which the model does not have"),
        ({name: good for name in shapes.channels}, "have the shape"),
    ]
    for data, message in cases:
        assert message in str(refused(nextstat.DataError, lambda data=data: nextstat.fits(shapes, data))), data
    hint = refused(nextstat.DataError, lambda: nextstat.fits(shapes, np.full((3, n_bins + 1), 20.0))).hint
    assert all(f"`{name}` ({n})" in hint for name, n in zip(shapes.channels, shapes.channel_n_bins))
    for generator in ((row for row in good), "data.npy"):
        refused(TypeError, lambda data=generator: nextstat.fits(shapes, data))


def test_fit_refers_tables_to_fits(shapes):
    error = refused(nextstat.DataError, lambda: nextstat.fit(shapes, data=np.full((3, shapes.n_bins), 20.0)))
    assert "two dimensions" in str(error) and "nextstat.fits" in error.hint


IMPOSSIBLE = {
    "version": "1.0.0",
    "channels": [
        {
            "name": "SR",
            "samples": [
                {"name": "signal", "data": [5.0, 0.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
                {"name": "background", "data": [50.0, 0.0], "modifiers": []},
            ],
        }
    ],
    "observations": [{"name": "SR", "data": [50.0, 0.0]}],
    "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
}


def test_failed_fits_have_no_numbers_and_warn():
    model = nextstat.model_of(IMPOSSIBLE)
    with pytest.warns(nextstat.NextstatWarning, match="1 of 3 data sets did not converge"):
        found = nextstat.fits(model, [[60, 0], [60, 1], [50, 0]], uncertainties=True)
    assert found.converged.tolist() == [True, False, True] and found.n_failed == 1
    assert found.outcomes[1] == "not_finite" and found.failures == {"not_finite": 1}
    assert np.isnan([found.bestfit[1, 0], found.uncertainties[1, 0], found.twice_nll[1]]).all()
    assert len(found.values("mu")) == 2
    document = found.to_dict()
    assert document["converged"] is False and document["data_sets"][1]["bestfit"] == [None]


def test_bootstrap_sums_are_those_of_its_weights():
    random = np.random.default_rng(1)
    n_events = 500
    bins, events = random.integers(-1, 4, n_events), random.integers(0, 2**63, n_events, dtype=np.uint64)
    runs, weights = random.integers(1, 5, n_events), random.uniform(0.5, 2, n_events)
    replicas = nextstat.bootstrap(bins, events, runs=runs, weights=weights, n_bins=4, n_replicas=70, first=3, seed=9)
    counts = nextstat.bootstrap_weights(events, runs=runs, n_replicas=70, first=3, seed=9)
    assert (replicas.shape, counts.shape, counts.dtype) == ((70, 4), (n_events, 70), np.uint8)
    for bin_ in range(4):
        chosen = bins == bin_
        np.testing.assert_allclose(replicas[:, bin_], weights[chosen] @ counts[chosen], rtol=1e-13)
    again = nextstat.bootstrap(bins, events, runs=runs, weights=weights, n_bins=4, n_replicas=70, first=3, seed=9, threads=1)
    assert again.tobytes() == replicas.tobytes()


def test_poisson_weights_follow_the_distribution():
    stats = pytest.importorskip("scipy.stats")
    counts = nextstat.bootstrap_weights(np.arange(5000), n_replicas=200, seed=4)
    found = np.bincount(counts.ravel(), minlength=8)[:8]
    expected = counts.size * stats.poisson(1).pmf(np.arange(8))
    expected[7] = counts.size * stats.poisson(1).sf(6)
    found[7] = (counts >= 7).sum()
    assert stats.chisquare(found, expected * found.sum() / expected.sum()).pvalue > 1e-4


def test_events_have_the_same_weights_wherever_they_are():
    counts = nextstat.bootstrap_weights([7, 8, 9], runs=[1, 1, 2], n_replicas=50)
    assert (nextstat.bootstrap_weights([9], runs=2, n_replicas=50) == counts[2]).all()
    assert (nextstat.bootstrap_weights([9], runs=1, n_replicas=50) != counts[2]).any()
    assert (nextstat.bootstrap_weights([9], runs=2, n_replicas=50, seed=1) != counts[2]).any()


def test_events_that_are_not_sound_are_refused():
    cases = [
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0, 1], [1])),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0, 5], [1, 2], n_bins=2)),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0], [1], weights=[math.nan])),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0, 1], [1, 2], weights=[])),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0, 1], [1, 2], runs=[1, 2, 3])),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0], [-1])),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0], [1], runs=2**32)),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0], [1], n_replicas=0)),
        (nextstat.ParameterError, lambda: nextstat.bootstrap([0], [1], first=2**32)),
        (TypeError, lambda: nextstat.bootstrap([0.5], [1])),
        (TypeError, lambda: nextstat.bootstrap([0], [1.5])),
        (TypeError, lambda: nextstat.bootstrap([[0]], [[1]])),
        (nextstat.ParameterError, lambda: nextstat.bootstrap_weights([1, 2], runs=[1, 2, 3])),
    ]
    for error, call in cases:
        refused(error, call)


def counting(signal, background):
    """A model of one bin whose best fit is (n - b)/s."""
    samples = [
        {"name": "signal", "data": [signal], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]},
        {"name": "background", "data": [background], "modifiers": []},
    ]
    return nextstat.model_of(
        {
            "version": "1.0.0",
            "channels": [{"name": "SR", "samples": samples}],
            "observations": [{"name": "SR", "data": [signal + background]}],
            "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": [{"name": "mu", "bounds": [[-100.0, 100.0]]}]}}],
        }
    )


def test_analyses_that_share_events_have_the_correlation_of_their_overlap():
    def of(model, events):
        return nextstat.fits(model, nextstat.bootstrap(np.zeros(len(events), dtype=int), events, runs=1, n_replicas=1500, seed=5))

    a, b = of(counting(100.0, 700.0), range(800)), of(counting(50.0, 550.0), range(400, 1000))
    found = nextstat.replica_covariance(a, b)
    exact = 400 / math.sqrt(800 * 600)
    assert abs(found.value("mu", "mu") - exact) < 4 * found.error("mu", "mu")
    assert found.error("mu", "mu") == pytest.approx((1 - exact**2) / math.sqrt(1499), rel=0.1)
    both = np.cov(a.values("mu"), b.values("mu"))
    np.testing.assert_allclose(
        [found.covariance_a[0, 0], found.covariance[0, 0], found.covariance_b[0, 0]], [both[0, 0], both[0, 1], both[1, 1]], rtol=1e-9
    )
    assert (found.n_replicas, found.n_common, found.par_names_a) == (1500, 1500, ("mu",))
    assert "mu" in repr(found)


def test_replicas_of_different_numbers_have_no_covariance():
    model = counting(10.0, 50.0)
    a, b = nextstat.fits(model, [[60], [61]]), nextstat.fits(model, [[60], [61], [62]])
    refused(nextstat.ParameterError, lambda: nextstat.replica_covariance(a, b))
    refused(TypeError, lambda: nextstat.replica_covariance(a, a.bestfit))
    refused(nextstat.ParameterError, lambda: nextstat.replica_covariance(a, a).value("nu", "mu"))


def test_fits_are_read_from_the_file_or_the_shards_of_a_run(root, tmp_path):
    model = nextstat.load_workspace(root / "examples/simple.json")
    data = nextstat.throw_toys(model, model.init, n_toys=7, seed=3)
    np.save(tmp_path / "data.npy", data)

    def run(name, *more):
        words = ["fits", root / "examples/simple.json", "--data", tmp_path / "data.npy", "--uncertainties", "-o", tmp_path / name, *more]
        nextstat.command([str(word) for word in words])
        return tmp_path / name

    wanted = nextstat.fits(model, data, uncertainties=True)
    shards = [run(f"{k}.npy", "--shard", f"{k}/3") for k in (3, 1, 2)]
    for found in (nextstat.load_fits(run("whole.npy")), nextstat.load_fits(shards)):
        assert found == wanted and found.provenance is None
        assert found.uncertainties.tobytes() == wanted.uncertainties.tobytes()
    # A part of the parameters, by name.
    some = nextstat.load_fits(run("some.npy", "--parameter", "mu"))
    assert some.par_names == ("mu",) and (some.values("mu") == wanted.values("mu")).all()
    with pytest.raises(nextstat.ToyError, match="shard 2 of 3"):
        nextstat.load_fits(shards[:2])
    (tmp_path / "whole.npy").write_bytes((tmp_path / "whole.npy").read_bytes()[:-3])
    with pytest.raises(nextstat.ToyError, match=r"whole\.npy` is damaged"):
        nextstat.load_fits(tmp_path / "whole.npy")


@pytest.mark.filterwarnings("ignore::nextstat.NextstatWarning")
@pytest.mark.parametrize("uncertainties", [False, True])
def test_saved_fits_are_read_back_to_the_bit(shapes, toys, uncertainties, tmp_path):
    found = nextstat.fits(shapes, toys[:6], uncertainties=uncertainties)
    found.save(tmp_path / "fits.npy")
    read = nextstat.load_fits(tmp_path / "fits.npy")
    there, here = found.to_dict(), read.to_dict()
    # Files do not have the command that made them.
    assert {name for name in there if there[name] != here.get(name)} <= {"provenance"}
    assert read.bestfit.tobytes() == found.bestfit.tobytes()
    read.save(tmp_path / "again.npy")
    for suffix in ("", ".json"):
        assert (tmp_path / f"again.npy{suffix}").read_bytes() == (tmp_path / f"fits.npy{suffix}").read_bytes()


def test_fits_are_saved_to_numpy_files_only(shapes, toys, tmp_path):
    with pytest.raises(nextstat.ToyError, match=r"does not end in `\.npy`"):
        nextstat.fits(shapes, toys[:2]).save(tmp_path / "fits.txt")
    assert not list(tmp_path.iterdir())
