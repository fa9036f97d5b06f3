"""Modifiers of one's own: expressions of numexpr, as pyhf's `experimental.modifiers` has them."""

import importlib
import importlib.util
import math
import pickle

import nextstat.pyhf as pyhf
import numpy as np
import pytest
from nextstat.pyhf.experimental.modifiers import add_custom_modifier

SETTING = {"inits": (1.0,), "bounds": ((-5.0, 5.0),)}


def custom(name, expression):
    return {"name": name, "type": "customfunc", "data": {"expr": expression}}


def model(signal, background, deps=("m1", "m2"), more=(), **options):
    """A model of a signal and a background, each with a modifier of one's own."""
    modifiers = add_custom_modifier("customfunc", list(deps), {name: SETTING for name in deps})
    samples = [
        {"name": "signal", "data": [10.0] * 20, "modifiers": [custom("f2", signal), *more]},
        {"name": "background", "data": [100.0] * 20, "modifiers": [custom("f1", background)]},
    ]
    spec = {"channels": [{"name": "singlechannel", "samples": samples}]}
    return pyhf.Model(spec, modifier_set=modifiers, poi_name="m1", validate=False, **options)


def test_the_example_of_pyhf():
    # The value is that of pyhf's own test of `add_custom_modifier`.
    for batch_size, pars in ((1, [[1.0, 2.0]]), (None, [1.0, 2.0])):
        made = model("m1", "m1+(m2**2)", batch_size=batch_size)
        assert made.config.par_order == ["m1", "m2"]
        assert np.ravel(made.expected_actualdata(pars)).tolist() == [510.0] * 20
    assert made.config.suggested_init() == [1.0, 1.0] and made.config.suggested_bounds() == [(-5.0, 5.0)] * 2
    assert pickle.loads(pickle.dumps(made)).expected_actualdata([1.0, 2.0])[0] == 510.0


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("exp(-m1) * 3.0 + sqrt(m2)", lambda m1, m2: math.exp(-m1) * 3.0 + math.sqrt(m2)),
        ("where((m1 > 0) & ~(m2 == 3), m1, m2) ** 2", lambda m1, m2: (m1 if m1 > 0 and m2 != 3 else m2) ** 2),
        ("arctan2(m1, m2) + log1p(m2) - expm1(m1)", lambda m1, m2: math.atan2(m1, m2) + math.log1p(m2) - math.expm1(m1)),
        ("1/2*m1 + m2/3", lambda m1, m2: 0.5 * m1 + m2 / 3.0),
        ("2**-m1 / (1 + m2) - 3", lambda m1, m2: 2.0**-m1 / (1.0 + m2) - 3.0),
    ],
)
def test_expressions_mean_what_numexpr_computes(expression, wanted):
    numexpr = None if importlib.util.find_spec("numexpr") is None else importlib.import_module("numexpr")
    made = model("m1", expression)
    for m1, m2 in ((1.0, 2.0), (0.3, 3.0), (-0.7, 0.2)):
        assert made.expected_actualdata([m1, m2])[0] == pytest.approx(10.0 * m1 + 100.0 * wanted(m1, m2), rel=1e-14)
        if numexpr is not None:
            assert float(numexpr.evaluate(expression, {"m1": m1, "m2": m2})) == pytest.approx(wanted(m1, m2), rel=1e-14)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("m1 %% 2", "is not an expression"),
        ("m1 % 2", "`m1 % 2` is not a part of formulas"),
        ("m3", "`m3` is not one of the parameters `m1`, `m2`"),
        ("floor(m1)", r"`floor\(m1\)` is not a function of formulas"),
        ("0 < m1 < 2", "is not a comparison of two numbers"),
        ("m1 + 2j", "`2j` is not a real number"),
        ("m1 * 1e400", "`1e400` is not a finite number"),
        ("m1 * 1" + 400 * "0", "0` is not a finite number"),
        ("m1 & 3", "`m1` is not a comparison"),
        ("~m1", "`m1` is not a comparison"),
        ("where(m1, 1, 2)", "`m1` is not a comparison"),
        ("(" * 150 + "m1" + ")" * 150 + "+m1" * 3000, ""),
    ],
)
def test_what_is_no_formula_is_refused_by_name(expression, message):
    with pytest.raises(pyhf.exceptions.InvalidModifier, match=f"modifier `f1` of type `customfunc`: .*{message}"):
        model("m1", expression)


def test_a_modifier_without_an_expression_is_refused():
    modifiers = add_custom_modifier("customfunc", ["m1"], {"m1": SETTING})
    sample = {"name": "signal", "data": [10.0], "modifiers": [{"name": "f", "type": "customfunc", "data": None}]}
    with pytest.raises(pyhf.exceptions.InvalidModifier, match="its data must be"):
        pyhf.Model({"channels": [{"name": "SR", "samples": [sample]}]}, modifier_set=modifiers, validate=False, poi_name="m1")


def test_modifiers_that_are_python_code_are_refused():
    with pytest.raises(pyhf.exceptions.Unsupported, match=r"the modifier `mine` is Python code.*add_custom_modifier"):
        pyhf.Model({"channels": []}, modifier_set={**pyhf.modifiers.histfactory_set, "mine": (object, object)})


def test_fits_and_tests_are_those_of_the_same_model_without_modifiers_of_ones_own():
    # m1 alone is a normfactor, and so is a product of parameters that are normfactors.
    shape = {"name": "tilt", "type": "histosys", "data": {"lo_data": np.linspace(9.0, 11.0, 20).tolist(), "hi_data": np.linspace(11.0, 9.0, 20).tolist()}}
    made = model("m1", "m2", more=[shape])
    factor = lambda name: {"name": name, "type": "normfactor", "data": None}
    samples = [
        {"name": "signal", "data": [10.0] * 20, "modifiers": [factor("m1"), shape]},
        {"name": "background", "data": [100.0] * 20, "modifiers": [factor("m2")]},
    ]
    settings = [{"name": name, "inits": [1.0], "bounds": [[-5.0, 5.0]]} for name in ("m1", "m2")]
    plain = pyhf.Model({"channels": [{"name": "SR", "samples": samples}], "parameters": settings}, poi_name="m1")
    data = np.random.default_rng(1).poisson(112.0, 20).tolist()
    found = []
    for one in (made, plain):
        fitted = dict(zip(one.config.par_names, pyhf.infer.mle.fit(data + one.config.auxdata, one)))
        found.append([fitted[name] for name in ("m1", "m2", "tilt")] + [float(pyhf.infer.hypotest(2.0, data + one.config.auxdata, one))])
    assert found[0] == pytest.approx(found[1], rel=1e-7)
