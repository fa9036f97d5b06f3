"""Gradients by templates of models with formulas and morphing, against the same likelihood in plain
NumPy.
"""

import nextstat
import numpy as np
import pytest
from nextstat.differentiable import DifferentiableSession

minimize = pytest.importorskip("scipy.optimize").minimize

SM = np.array([12.0, 9.0, 6.0, 4.0])
LINEAR = np.array([1.5, 2.5, 3.0, 3.5])
SQUARE = np.array([0.5, 1.0, 2.0, 4.0])
BACKGROUND = np.array([50.0, 30.0, 20.0, 10.0])
OBSERVED = np.array([66.0, 44.0, 33.0, 24.0])
TIGHT = {"method": "Nelder-Mead", "options": {"xatol": 1e-10, "fatol": 1e-13}}
TEMPLATES = np.concatenate([SM, LINEAR, SQUARE, BACKGROUND])


def workspace():
    """|SM + c O|², scaled by a formula, over a background with a normsys."""
    terms = [{"expression": "c", "data": LINEAR.tolist()}, {"expression": "c^2", "data": SQUARE.tolist()}]
    signal = [
        {"name": "eft", "type": "morphing", "data": {"terms": terms}},
        {"name": "efficiency", "type": "formula", "data": {"expression": "exp(0.1*c) / (1 + 0.05*tilt^2)"}},
    ]
    tilt = [{"name": "tilt", "type": "normsys", "data": {"lo": 0.9, "hi": 1.1}}]
    return {
        "channels": [
            {
                "name": "SR",
                "samples": [
                    {"name": "signal", "data": SM.tolist(), "modifiers": signal},
                    {"name": "top", "data": BACKGROUND.tolist(), "modifiers": tilt},
                ],
            }
        ],
        "observations": [{"name": "SR", "data": OBSERVED.tolist()}],
        "measurements": [
            {"name": "m", "config": {"poi": "c", "parameters": [{"name": "c", "inits": [0.5], "bounds": [[0.0, 5.0]]}]}}
        ],
        "version": "1.0.0",
    }


def session_of(**options):
    model = nextstat.model_of(workspace())
    return DifferentiableSession(model, ["signal", "top"], variations=["c", "c^2"], **options)


def nll(templates, c, tilt):
    """-ln L without constants."""
    sm, linear, square, background = templates.reshape(4, 4)
    signal = (sm + c * linear + c**2 * square) * np.exp(0.1 * c) / (1 + 0.05 * tilt**2)
    expected = signal + background * normsys(tilt)
    return np.sum(expected - OBSERVED * np.log(expected)) + tilt**2 / 2


def normsys(tilt):
    """Code 4: a polynomial of degree 6 that meets 1.1^α and 0.9^-α at ±1 with two derivatives."""
    if abs(tilt) >= 1:
        return 1.1**tilt if tilt > 0 else 0.9**-tilt
    rows, wanted = [], []
    for side, base in ((1.0, 1.1), (-1.0, 1 / 0.9)):
        log = np.log(base)
        rows += [[side**n for n in range(1, 7)], [n * side ** (n - 1) for n in range(1, 7)]]
        rows.append([n * (n - 1) * side ** (n - 2) if n > 1 else 0.0 for n in range(1, 7)])
        wanted += [base**side - 1, log * base**side, log**2 * base**side]
    return 1 + np.linalg.solve(rows, wanted) @ [tilt**n for n in range(1, 7)]


def minimum(templates, c=None):
    """The lowest -ln L, with `c` fixed if given."""
    if c is None:
        return minimize(lambda p: nll(templates, *p), [0.8, 0.0], **TIGHT).fun
    return minimize(lambda p: nll(templates, c, p[0]), [0.0], **TIGHT).fun


def differences(function):
    """The derivative by each template bin."""
    found = []
    for i in range(len(TEMPLATES)):
        step = np.zeros(len(TEMPLATES))
        step[i] = 1e-2 * TEMPLATES[i]
        at = [function(TEMPLATES + k * step) for k in (-2, -1, 1, 2)]
        found.append((8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step[i]))
    return np.array(found)


def test_blocks_have_the_morphing_terms_by_their_coefficients():
    session = session_of()
    assert [(block.name, block.kind, block.parameter) for block in session.blocks] == [
        ("SR/signal", "nominal", None),
        ("SR/signal/c", "morphing", "c"),
        ("SR/signal/c^2", "morphing", "c^2"),
        ("SR/top", "nominal", None),
    ]
    assert session.values.tolist() == TEMPLATES.tolist()
    with pytest.raises(nextstat.ParameterError, match=r"no chosen template has a histosys, normsys or morphing term of `c\^3`"):
        DifferentiableSession(session.model, "signal", variations=["c^3"])


def test_the_statistic_has_the_derivatives_of_plain_numpy():
    found = session_of().q_mu(TEMPLATES, 1.6)
    assert found.value > 0.1
    assert float(found.value) == pytest.approx(2 * (minimum(TEMPLATES, 1.6) - minimum(TEMPLATES)), abs=1e-8)
    np.testing.assert_allclose(found.by_inputs, differences(lambda x: 2 * (minimum(x, 1.6) - minimum(x))), atol=2e-6)


@pytest.mark.parametrize("asimov", ["fitted", "nominal"])
def test_limits_and_widths_have_the_derivatives_of_their_differences(asimov):
    session = session_of(asimov=asimov)

    def limits(x):
        return session.upper_limit(x, which=["observed", 0], test_stat="qtilde")

    for function in (limits, session.sigma_mu):
        found = function(TEMPLATES)
        for i in range(0, len(TEMPLATES), 3):
            step = np.zeros(len(TEMPLATES))
            step[i] = 1e-3 * TEMPLATES[i]
            at = [function(TEMPLATES + k * step).value for k in (-2, -1, 1, 2)]
            difference = (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * step[i])
            np.testing.assert_allclose(found.by_inputs[..., i], difference, rtol=1e-5, atol=1e-6)


def test_new_templates_give_the_results_of_a_workspace_that_has_them():
    x = TEMPLATES * np.linspace(0.9, 1.1, len(TEMPLATES))
    changed = workspace()
    sm, linear, square, background = x.reshape(4, 4).tolist()
    signal, other = changed["channels"][0]["samples"]
    signal["data"], other["data"] = sm, background
    for term, data in zip(signal["modifiers"][0]["data"]["terms"], (linear, square), strict=True):
        term["data"] = data
    model = nextstat.model_of(changed)
    test = nextstat.hypotest(model, 1.4, test_stat="qtilde")
    np.testing.assert_allclose(session_of().cls(x, 1.4).value, [test.CLs_obs, *test.CLs_exp], rtol=1e-7)
    assert float(session_of().profiled_nll(x).value) == pytest.approx(nextstat.fit(model).nll, rel=1e-12)


def test_a_device_refuses_formulas_by_name():
    with pytest.raises(nextstat.NextstatError, match="formulas and morphing terms"):
        session_of(device="emulated")
