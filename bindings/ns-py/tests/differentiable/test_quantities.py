"""The functions of every framework have the arguments and texts of one list of quantities."""

import importlib
import inspect

import nextstat
import numpy as np
import pytest
from nextstat._quantities import QUANTITIES
from nextstat.differentiable import DifferentiableSession

FRAMEWORKS = {"torch": "torch.Tensor", "jax": "jax.Array"}


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda quantity: quantity.name)
def test_functions_have_the_signature_and_the_text_of_the_quantity(framework, quantity):
    function = getattr(importlib.import_module(f"nextstat.{framework}"), quantity.name)
    signature, own = inspect.signature(function), inspect.signature(quantity.request)
    assert list(signature.parameters) == ["session", "inputs", *own.parameters]
    assert signature.return_annotation == FRAMEWORKS[framework]
    for name, parameter in own.parameters.items():
        assert signature.parameters[name].default == parameter.default
        assert signature.parameters[name].kind == parameter.kind
    assert function.__name__ == function.__qualname__ == quantity.name
    assert function.__doc__.startswith(inspect.getdoc(quantity.request))
    assert f">>> from nextstat.{framework} import DifferentiableSession, {quantity.name}\n" in function.__doc__


@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda quantity: quantity.name)
def test_methods_of_sessions_have_the_arguments_of_the_quantity(quantity):
    signature = inspect.signature(getattr(DifferentiableSession, quantity.name))
    own = inspect.signature(quantity.request)
    assert list(signature.parameters) == ["self", "inputs", *own.parameters]
    for name, parameter in own.parameters.items():
        assert signature.parameters[name].default == parameter.default
        assert signature.parameters[name].kind == parameter.kind


def test_every_framework_has_every_quantity(framework):
    names = {quantity.name for quantity in QUANTITIES}
    assert names | {"nll"} <= set(importlib.import_module(f"nextstat.{framework}").__all__)


def test_wrong_arguments_are_refused_with_the_name_of_the_function(framework, root):
    module = importlib.import_module(f"nextstat.{framework}")
    session = DifferentiableSession(nextstat.load_workspace(root / "examples/simple.json"), "signal")
    inputs = np.array(session.values)
    with pytest.raises(TypeError, match=r"q_mu\(\) missing 1 required positional argument: 'mu'"):
        module.q_mu(session, inputs)
    with pytest.raises(TypeError, match=r"q0\(\) got an unexpected keyword argument 'asimow'"):
        module.q0(session, inputs, asimow=True)
