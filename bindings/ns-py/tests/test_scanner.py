"""Scans of many signals: inputs, refusals, and the results of the procedures for one signal."""

import json

import nextstat
import numpy
import pytest

SIGNALS = {"signal_region": [[1.0, 4.0, 9.0, 12.0], [0.5, 2.0, 4.5, 6.0]]}


@pytest.fixture(scope="module")
def scanner(root):
    return nextstat.Scanner(root / "examples/background.json")


def with_signal(root, events):
    workspace = json.loads((root / "examples/background.json").read_text("utf-8"))
    modifier = {"name": "mu", "type": "normfactor", "data": None}
    for channel in workspace["channels"]:
        data = events if channel["name"] == "signal_region" else [0.0] * len(channel["samples"][0]["data"])
        channel["samples"].append({"name": "signal", "data": list(data), "modifiers": [modifier]})
    return nextstat.model_of(workspace)


def test_a_signal_has_the_results_of_a_model_with_it(root, scanner):
    found = scanner.scan(SIGNALS, limits=True)
    assert found.converged and found.explored and found.warnings == ()
    for i, events in enumerate(SIGNALS["signal_region"]):
        model = with_signal(root, events)
        test, limit = nextstat.hypotest(model), nextstat.upper_limit(model)
        assert found.CLs_obs[i] == pytest.approx(test.CLs_obs, rel=1e-8)
        assert found.CLs_exp[i] == pytest.approx(test.CLs_exp, rel=1e-8)
        assert found.limits["observed"][i] == pytest.approx(limit.observed, rel=1e-6)
        assert found.limits["expected"][i] == pytest.approx(limit.expected, rel=1e-6)
        assert found.twice_nll_best[i] == pytest.approx(nextstat.fit(model).twice_nll, abs=1e-9)
    assert found.twice_nll_background == pytest.approx(nextstat.fit(model, fixed={"mu": 0}).twice_nll, abs=1e-9)


def test_one_signal_may_be_one_row_and_other_channels_are_empty(scanner):
    row, rows = ({"signal_region": events, "control_region": zero} for events, zero in (([1.0, 2, 3, 4], [0] * 3), ([[1, 2, 3, 4]], [[0.0] * 3])))
    assert scanner.scan(row) == scanner.scan(rows) == scanner.scan({"signal_region": numpy.arange(1, 5)})
    assert scanner.channels == {"control_region": 3, "signal_region": 4}
    assert repr(scanner) == "<nextstat.Scanner: 2 channels, 7 bins>"


def test_uncertainties_weaken_a_signal(scanner):
    exact = scanner.scan(SIGNALS).CLs_exp[0, 2]
    weaker = [scanner.scan({**SIGNALS, "signal_region.uncertainty": [[part * x for x in row] for row in SIGNALS["signal_region"]]}) for part in (0.0, 0.3)]
    # Without signal both are the background, whatever the uncertainties.
    none = [scanner.scan({**SIGNALS, "signal_region.uncertainty": [[part] * 4] * 2}, mu=0.0) for part in (0.0, 0.3)]
    for found in none:
        assert found.twice_nll == pytest.approx([found.twice_nll_background] * 2, abs=1e-9)
        assert found.twice_nll_background == pytest.approx(scanner.scan(SIGNALS).twice_nll_background, abs=1e-9)
    assert weaker[0].CLs_exp[0, 2] == pytest.approx(exact, rel=1e-6) and weaker[1].CLs_exp[0, 2] > 1.1 * exact


def test_parquet_files_have_a_column_for_each_array(scanner, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table(SIGNALS)
    parquet.write_table(table, tmp_path / "signals.parquet")
    assert scanner.scan(tmp_path / "signals.parquet") == scanner.scan(SIGNALS)


def test_a_json_file_is_what_its_arrays_are(root, scanner):
    path = root / "examples/signal_events.json"
    assert scanner.scan(path) == scanner.scan(json.loads(path.read_text("utf-8")))


def test_signals_without_events_have_no_result(scanner):
    with pytest.warns(nextstat.NextstatWarning, match="1 signal .index 1. has no events"):
        found = scanner.scan({"signal_region": [[1.0, 2.0, 3.0, 4.0], [0.0] * 4]}, limits=True)
    assert found.converged and list(found.signal_converged) == [True, False]
    assert numpy.isnan([found.CLs_obs[1], found.twice_nll[1], found.limits["observed"][1]]).all()


def test_results_show_the_first_signals(scanner):
    found = scanner.scan({"signal_region": numpy.outer(numpy.linspace(0.1, 1, 50), [1.0, 4, 9, 12])})
    assert "and 40 more" in repr(found)
    assert len(found.CLs_obs) == 50 and numpy.all(numpy.diff(found.CLs_exp[:, 2]) < 0)


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ({}, "there are no signals"),
        ({"SR": [[1.0]]}, "no channel `SR`"),
        ({"signal_region": [[1.0, 2.0]]}, "1 × 2 numbers instead of 1 × 4"),
        ({"signal_region": [[1.0, 2.0, 3.0, -1.0]]}, "bin 3 of the channel `signal_region` are -1"),
        ({"signal_region": [[1.0, 2.0], [1.0]]}, "not numbers, or differ in length"),
        ({"signal_region": numpy.zeros((1, 1, 4))}, "3 dimensions"),
        ({"signal_region": [[1.0] * 4], "control_region.uncertainty": [[1.0] * 3]}, "but no events"),
    ],
)
def test_signals_that_do_not_fit_are_refused(scanner, signals, message):
    with pytest.raises(nextstat.ParameterError, match=message):
        scanner.scan(signals)


def test_other_mistakes_are_refused(root, scanner, tmp_path):
    with pytest.raises(TypeError, match="`signals` must be arrays by channel or a path"):
        scanner.scan(3)
    numpy.save(tmp_path / "signals.npy", numpy.ones((1, 4)))
    with pytest.raises(nextstat.WorkspaceError, match="no names for its rows"):
        scanner.scan(tmp_path / "signals.npy")
    with pytest.raises(FileNotFoundError, match="absent"):
        scanner.scan("absent.npz")
    with pytest.raises(nextstat.ParameterError, match="`theory_ttbar` scales the sample `ttbar`"):
        nextstat.Scanner(root / "examples/background.json", strength="theory_ttbar")
    with pytest.raises(nextstat.ParameterError, match="two factors"):
        nextstat.Scanner(root / "examples/background.json", normsys={"theory": 1.1})
    with pytest.raises(TypeError, match="did you mean `limits`"):
        scanner.scan(SIGNALS, limit=True)
