"""`nextstat.torch`: gradcheck of every function, at and away from bounds, batches, precisions,
failures, a short training.
"""

import nextstat
import numpy as np
import pytest
from models import TWICE, functions, gentle_model, needs_inside, published_models, random_model, random_workspace

torch = pytest.importorskip("torch")
nt = pytest.importorskip("nextstat.torch")

# Central differences of fits: with this step their rounding and their curvature are both below
# these.
CHECK = {"eps": 2e-4, "atol": 1e-6, "rtol": 1e-6}

# The same of gradients, for fits that are as tight as those that follow each other; where those
# begin shows in the last digits.
CHECK_TWICE = {"eps": 5e-5, "atol": 1e-5, "rtol": 1e-5, "nondet_tol": 1e-8}

FUNCTIONS = functions(nt)


def leaf(values):
    return torch.tensor(np.asarray(values), dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("asimov", ["fitted", "nominal"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
def test_gradcheck_on_random_models(name, signal_seen, asimov):
    if signal_seen < 0 and needs_inside(name):
        pytest.skip("the best fit is at zero: see the tests of kinks")
    session = nt.DifferentiableSession(random_model(3, signal_seen), ["signal", "small"], variations=True, asimov=asimov)
    mu_hat = nextstat.fit(session.model).bestfit[session.model.poi_index]
    assert (mu_hat == 0) == (signal_seen < 0)
    assert torch.autograd.gradcheck(lambda x: FUNCTIONS[name](session, x), leaf(session.values), **CHECK)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradcheck_on_published_models(name, published):
    for model, sample in published_models(published):
        session = nt.DifferentiableSession(model, sample)
        mu_hat = nextstat.fit(model).bestfit[model.poi_index]
        if needs_inside(name) and mu_hat < 1e-3:
            continue
        # All inputs of a large model move together in a few directions.
        directions = torch.as_tensor(np.random.default_rng(1).uniform(-1, 1, (3, session.n_inputs)))
        base = torch.tensor(session.values.copy())

        def along(steps, session=session, base=base, directions=directions):
            return FUNCTIONS[name](session, base * (1 + steps @ directions))

        assert torch.autograd.gradcheck(along, leaf(np.zeros(3)), **{**CHECK, "eps": 1e-5})


def test_nll_can_be_differentiated_twice():
    session = nt.DifferentiableSession(random_model(5), ["signal", "large", "small"], variations=True)
    params = leaf(session.model.init + 0.05)
    at = (params, leaf(session.values))
    assert torch.autograd.gradcheck(lambda p, x: nt.nll(session, p, x), at, eps=1e-5, atol=1e-5)
    assert torch.autograd.gradgradcheck(lambda p, x: nt.nll(session, p, x), at, eps=1e-4, atol=1e-4)


def test_hessian_products_of_nll_are_those_of_differences():
    session = nt.DifferentiableSession(random_model(5), "signal")
    x, params = leaf(session.values), leaf(session.model.init + 0.05)
    directions = (torch.ones_like(params), torch.linspace(-1, 1, len(x), dtype=torch.float64))
    _, products = torch.autograd.functional.hvp(lambda p, x: nt.nll(session, p, x), (params, x), directions)

    def gradients(step):
        _, *found = session.nll((params + step * directions[0]).detach().numpy(), (x + step * directions[1]).detach().numpy())
        return found

    for product, above, below in zip(products, gradients(1e-5), gradients(-1e-5)):
        assert np.abs(product.numpy()).max() > 0.1
        assert np.allclose(product, (above - below) / 2e-5, rtol=1e-5, atol=1e-5)


def test_nll_says_that_it_is_differentiated_twice():
    session = nt.DifferentiableSession(random_model(5), "signal")
    x, params = leaf(session.values), leaf(session.model.init + 0.05)
    [first] = torch.autograd.grad(nt.nll(session, params, x), params, create_graph=True)
    [second] = torch.autograd.grad(first.sum(), params, create_graph=True)
    with pytest.raises(NotImplementedError, match="differentiated twice"):
        torch.autograd.grad(second.sum(), params)


@pytest.mark.parametrize("name", TWICE)
@pytest.mark.parametrize("signal_seen", [1.2, -1.5])
def test_gradgradcheck_on_random_models(name, signal_seen):
    for make, seed in ((random_model, 3), (random_model, 5), (gentle_model, 3)):
        session = nt.DifferentiableSession(make(seed, signal_seen), ["signal", "small"], variations=["xs"], warm_start=True)
        mu_hat = nextstat.fit(session.model).bestfit[session.model.poi_index]
        assert (mu_hat == 0) == (signal_seen < 0)
        # Where μ̂ is at zero, q₀ and what is made of it are constant: the products are zeros.
        assert torch.autograd.gradgradcheck(lambda x, session=session: FUNCTIONS[name](session, x), leaf(session.values), **CHECK_TWICE)


@pytest.mark.parametrize("name", TWICE)
def test_gradgradcheck_on_published_models(name, published):
    for model, sample in published_models(published):
        session = nt.DifferentiableSession(model, sample, warm_start=True)
        mu_hat = nextstat.fit(model).bestfit[model.poi_index]
        if needs_inside(name) and mu_hat < 1e-3:
            continue
        directions = torch.as_tensor(np.random.default_rng(1).uniform(-1, 1, (3, session.n_inputs)))
        base = torch.tensor(session.values.copy())

        def along(steps, session=session, base=base, directions=directions):
            return FUNCTIONS[name](session, base * (1 + steps @ directions))

        # Second derivatives are of the order of thousands here; the tests in Rust compare with
        # differences of higher order.
        assert torch.autograd.gradgradcheck(along, leaf(np.zeros(3)), **{**CHECK_TWICE, "eps": 1e-5, "rtol": 1e-5, "atol": 1e-4})


def test_second_derivatives_by_the_tested_value():
    session = nt.DifferentiableSession(random_model(3), "signal", warm_start=True)
    x, mu = leaf(session.values), leaf(2.0)
    for function in (nt.q_mu, nt.q_mu_tilde, nt.profiled_nll):
        assert torch.autograd.gradgradcheck(lambda x, mu, function=function: function(session, x, mu), (x, mu), **CHECK_TWICE)
    batch = torch.stack([x, 1.1 * x]).detach().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x, mus: nt.q_mu(session, x, mus), (batch, leaf([2.0, 1.8])), **CHECK_TWICE)
    assert torch.autograd.gradgradcheck(lambda x: nt.q0(session, x).square().sum(), batch, **CHECK_TWICE)


def test_products_with_hessians_are_those_of_the_session():
    session = nt.DifferentiableSession(random_model(3), "signal", warm_start=True)
    x, direction = leaf(session.values), torch.linspace(-1, 1, session.n_inputs, dtype=torch.float64)
    of_torch = {"q0": nt.q0, "profiled_nll": nt.profiled_nll, "q_mu": lambda s, x: nt.q_mu(s, x, 2.0), "q_mu_tilde": lambda s, x: nt.q_mu_tilde(s, x, 2.0)}
    for name, function in of_torch.items():
        _, product = torch.autograd.functional.hvp(lambda x, function=function: function(session, x), x, direction)
        tested = [2.0] if name.startswith("q_mu") else []
        own = getattr(session, f"{name}_product")(session.values, direction.numpy(), *tested)
        assert own.by_inputs.any() and np.allclose(product, own.by_inputs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - set(TWICE)))
def test_what_can_be_differentiated_once_says_so(name):
    session = nt.DifferentiableSession(random_model(5), "signal")
    x = leaf(session.values)
    [gradient] = torch.autograd.grad(FUNCTIONS[name](session, x).sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="can be differentiated once"):
        gradient.square().sum().backward()
    assert x.grad is None


def test_third_derivatives_are_not_given():
    session = nt.DifferentiableSession(random_model(5), "signal")
    x, mu = leaf(session.values), leaf(2.0)
    [first] = torch.autograd.grad(nt.q_mu(session, x, mu), x, create_graph=True)
    [second] = torch.autograd.grad(first.sum(), mu, create_graph=True)
    for by in (x, mu):
        with pytest.raises(NotImplementedError, match="differentiated twice"):
            torch.autograd.grad(second, by, retain_graph=True)


def test_the_tested_value_has_a_gradient_too():
    session = nt.DifferentiableSession(random_model(3), "signal")
    x, mu = leaf(session.values), leaf(2.0)
    for function in (nt.q_mu, nt.q_mu_tilde, nt.cls, nt.profiled_nll):
        assert torch.autograd.gradcheck(lambda x, mu, function=function: function(session, x, mu), (x, mu), **CHECK)
    batch = torch.stack([x, 1.1 * x])
    mus = leaf([2.0, 1.8])
    assert torch.autograd.gradcheck(lambda mus: nt.q_mu(session, batch.detach(), mus), mus, **CHECK)


def test_batches_are_rows():
    session = nt.DifferentiableSession(random_model(3), "signal")
    rows = torch.tensor(np.stack([session.values, 1.2 * session.values, 0.8 * session.values]), requires_grad=True)
    limits = nt.upper_limit(session, rows, which=[-1, 0])
    assert limits.shape == (3, 2)
    limits[:, 1].sum().backward()
    for i, row in enumerate(rows.detach()):
        alone = row.clone().requires_grad_()
        limit = nt.ExpectedLimit(session)(alone)
        limit.backward()
        assert limit.shape == () and torch.allclose(limit, limits[i, 1], rtol=1e-9)
        assert torch.allclose(alone.grad, rows.grad[i], rtol=1e-7)


def test_single_precision_is_converted_and_back():
    session = nt.DifferentiableSession(random_model(3), "signal")
    single = torch.tensor(session.values, dtype=torch.float32, requires_grad=True)
    limit = nt.upper_limit(session, single)
    limit.backward()
    double = leaf(single.detach().double())
    nt.upper_limit(session, double).backward()
    assert limit.dtype == single.grad.dtype == torch.float32
    assert torch.allclose(single.grad.double(), double.grad, rtol=1e-6)


def test_blocks_by_name_leave_the_rest_as_it_is():
    session = nt.DifferentiableSession(random_model(3), "signal", variations=["jes"])
    values = torch.tensor(session.values.copy())
    block = session.block("first/signal/jes/hi")
    part = values[block.start : block.stop].clone().requires_grad_()
    named = nt.upper_limit(session, {"first/signal/jes/hi": part})
    assert torch.allclose(named, nt.upper_limit(session, values))
    named.backward()
    whole = values.clone().requires_grad_()
    nt.upper_limit(session, whole).backward()
    assert torch.allclose(part.grad, whole.grad[block.start : block.stop])
    with pytest.raises(nextstat.ParameterError, match="unknown block `first/signal/jes`; choose one of `first/signal`"):
        nt.upper_limit(session, {"first/signal/jes": part})
    with pytest.raises(ValueError, match="has 3 bins, and 2 values were given"):
        nt.upper_limit(session, {"first/signal": part[:2]})


@pytest.mark.parametrize(("function", "signal_seen"), [(nt.q0, -1.5), (nt.significance, -1.5), (nt.p_value, -1.5), (lambda s, x: nt.q_mu(s, x, 0.2), 1.5)])
def test_constant_statistics_have_gradient_zero(function, signal_seen):
    session = nt.DifferentiableSession(random_model(3, signal_seen), "signal")
    x = leaf(session.values)
    function(session, x).backward()
    assert (x.grad == 0).all()


def test_failures_raise_with_their_verdict():
    model = random_model(3, -1.5)
    session = nt.DifferentiableSession(model, ["signal", "large"])
    with pytest.raises(nextstat.GradientError, match="`mu` has no uncertainty: it is fixed, or its best fit is at an end of its range") as raised:
        nt.sigma_mu(session, leaf(session.values))
    assert raised.value.hint == "widen the range of the parameter so that its best fit is inside"
    with pytest.raises(nextstat.ParameterError, match="NaN is not a valid value for `first/"):
        nt.q0(session, leaf([np.nan] * session.n_inputs))
    with pytest.raises(nextstat.ParameterError, match=r"3 values for \d+ inputs"):
        nt.q0(session, leaf([1.0, 2.0, 3.0]))


def test_a_fit_that_fails_has_no_gradient():
    background = {"name": "background", "data": [50.0], "modifiers": []}
    signal = {"name": "signal", "data": [5.0], "modifiers": [{"name": "mu", "type": "normfactor", "data": None}]}
    workspace = random_workspace(3)
    workspace |= {"channels": [{"name": "first", "samples": [signal, background]}], "observations": [{"name": "first", "data": [60.0]}]}
    session = nt.DifferentiableSession(nextstat.model_of(workspace), ["signal", "background"])
    negative = leaf([-50.0, -5.0])
    for function in (nt.profiled_nll, nt.q0, nt.upper_limit, nt.sigma_mu, lambda s, x: nt.cls(s, x, 1.0)):
        with pytest.raises(nextstat.GradientError, match="did not converge: the likelihood is not finite at the starting point"):
            function(session, negative)
    assert negative.grad is None


def test_names_that_are_not_there_are_explained():
    model = random_model(3)
    with pytest.raises(nextstat.ParameterError, match="the model has no sample `Signal`") as raised:
        nt.DifferentiableSession(model, "Signal")
    assert raised.value.hint == "names are case sensitive; did you mean `signal`?"
    with pytest.raises(nextstat.ParameterError, match="in a channel `third`"):
        nt.DifferentiableSession(model, [("signal", "third")])
    with pytest.raises(nextstat.ParameterError, match="`asimov` cannot be"):
        nt.DifferentiableSession(model, "signal", asimov="somewhere")
    with pytest.raises(nextstat.ParameterError, match="has no derivatives"):
        nt.cls(nt.DifferentiableSession(model, "signal"), leaf(np.ones(5)), test_stat="t")


def test_tensors_of_accelerators_are_refused_unless_a_copy_is_asked_for():
    session = nt.DifferentiableSession(random_model(3), "signal")
    elsewhere = torch.empty(session.n_inputs, device="meta", dtype=torch.float64)
    with pytest.raises(nextstat.DeviceError, match="this is computed on the CPU") as raised:
        nt.q0(session, elsewhere)
    with pytest.raises(nextstat.DeviceError, match="this is computed on the CPU"):
        nt.q_mu(session, leaf(session.values), torch.tensor(2.0, device="meta"))
    assert "host_copy=True" in raised.value.hint


def test_values_are_those_of_the_procedures():
    model = random_model(7)
    session = nt.DifferentiableSession(model, "signal")
    x = torch.tensor(session.values.copy())
    test = nextstat.hypotest(model, 1.5)
    assert torch.allclose(nt.cls(session, x, 1.5), torch.tensor([test.CLs_obs, *test.CLs_exp], dtype=torch.float64), rtol=1e-7)
    limits = nextstat.upper_limit(model)
    wanted = torch.tensor([limits.observed, *limits.expected], dtype=torch.float64)
    assert torch.allclose(nt.upper_limit(session, x, which=["observed", -2, -1, 0, 1, 2]), wanted, rtol=1e-7)
    found = nextstat.significance(model)
    assert np.isclose(nt.significance(session, x).item(), found.Z_obs, rtol=1e-7)
    assert np.isclose(nt.p_value(session, x).item(), found.p0_obs, rtol=1e-6)
    fit = nextstat.fit(model)
    assert np.isclose(nt.profiled_nll(session, x).item(), fit.nll, rtol=1e-12)
    assert np.isclose(nt.sigma_mu(session, x).item(), fit.uncertainties[model.poi_index], rtol=1e-8)


@pytest.mark.parametrize("kernel", ["normal", "logistic"])
@pytest.mark.parametrize("overflow", [True, False])
def test_soft_histograms_are_differentiable(kernel, overflow):
    random = np.random.default_rng(2)
    x, w, edges = leaf(random.uniform(0, 1, 7)), leaf(random.uniform(0.5, 2, 7)), leaf([0.0, 0.3, 0.7, 1.0])

    def filled(x, w, edges):
        return nt.soft_histogram(x, edges, bandwidth=0.1, weights=w, kernel=kernel, overflow=overflow)

    assert torch.autograd.gradcheck(filled, (x, w, edges))
    assert torch.autograd.gradgradcheck(filled, (x, w, edges))
    contents = nt.soft_histogram(x.detach(), edges.detach(), bandwidth=1e-9, weights=w.detach(), kernel=kernel)
    assert np.allclose(contents, np.histogram(x.detach(), edges.detach(), weights=w.detach())[0])
    if overflow:
        assert torch.allclose(filled(x, w, edges).sum(), w.sum())
    whole = nt.soft_histogram(torch.tensor([0, 1, 1]), [-0.5, 0.5, 1.5], bandwidth=1e-6)
    assert whole.tolist() == [1.0, 2.0]
    for wrong in ({"kernel": "box"}, {"bandwidth": 0.0}, {"edges": [1.0, 0.0]}):
        with pytest.raises(ValueError):
            nt.soft_histogram(x, **{"edges": [0.0, 1.0], "bandwidth": 0.1, **wrong})


def test_modules_have_no_parameters_and_pass_gradients():
    session = nt.DifferentiableSession(nextstat.model_of(random_workspace(3)), "signal")
    for module in (nt.ExpectedLimit(session), nt.ExpectedSignificance(session), nt.ProfiledNLL(session)):
        x = leaf(session.values)
        module(x).backward()
        assert not list(module.parameters()) and x.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("params", "inputs"),
    [
        (lambda p, x: p, lambda p, x: x.to(torch.int64)),
        (lambda p, x: p, lambda p, x: x.expand(1, 2, -1)),
        (lambda p, x: p.expand(1, 2, -1), lambda p, x: x),
        (lambda p, x: p.numpy(), lambda p, x: x),
        (lambda p, x: p.to(torch.int64), lambda p, x: x),
    ],
)
def test_nll_takes_numbers_in_vectors_or_rows(params, inputs):
    session = nt.DifferentiableSession(random_model(3), "signal")
    point = torch.tensor(session.model.init.copy()), torch.tensor(session.values.copy())
    with pytest.raises(ValueError, match="floating-point numbers"):
        nt.nll(session, params(*point), inputs(*point))


def test_nll_of_rows_is_that_of_each():
    session = nt.DifferentiableSession(random_model(5), ["signal", "large", "small"], variations=True)
    random = np.random.default_rng(2)
    params = leaf(session.model.init + random.uniform(-0.1, 0.1, (3, len(session.model.init))))
    inputs = leaf(session.values * random.uniform(0.95, 1.05, (3, session.n_inputs)))

    def both(p, x):
        return nt.nll(session, p, x)

    each = torch.stack([both(params[row], inputs[row]) for row in range(3)])
    torch.testing.assert_close(both(params, inputs), each, rtol=1e-14, atol=0)
    for at in [(params, inputs), (params[0], inputs), (params, inputs[0])]:
        at = tuple(leaf(part.detach()) for part in at)
        assert torch.autograd.gradcheck(both, at, eps=1e-5, atol=1e-5)
        assert torch.autograd.gradgradcheck(both, at, eps=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="2 parameter vectors and 3 of inputs"):
        both(params[:2], inputs)
    assert both(params[:0], inputs[:0]).shape == (0,)
