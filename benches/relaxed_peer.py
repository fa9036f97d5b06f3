"""q0 with its gradient by signal yields: `relaxed` (JAX) beside nextstat, on a model with one
nuisance parameter for each bin.

python benches/relaxed_peer.py [--bins 2]

Run by a Python that has nextstat and `relaxed`: `relaxed.mle.fit` (L-BFGS-B) with and without μ and
its implicit derivatives, compiled together; the likelihood that it fits is written out here. Its
own `fixed_poi_fit`, and so `hypotest`, end in a ValueError about keys of a dictionary (0.4.0 with
JAX 0.4.30 and 0.10.2), hence the model without μ. Inputs move by up to 0.5 % from call to call, as
in a training. Medians of the processor's time, without compiling.
"""

import argparse
import json
import statistics
import sys
import time

import equinox
import jax
import jax.numpy as jnp
import nextstat
import numpy as np
import relaxed
from counting import numbers, workspace
from nextstat.differentiable import DifferentiableSession

jax.config.update("jax_enable_x64", True)


class Free(equinox.Module):
    """Poisson counts of μ s + γ b, and of γ τ in control regions."""

    signal: jax.Array
    background: jax.Array
    tau: jax.Array

    def expected(self, pars):
        return pars["mu"] * self.signal + pars["gamma"] * self.background, pars["gamma"] * self.tau

    def logpdf(self, pars, data):
        main, aux = self.expected(pars)
        observed, controls = data
        # JAX's `poisson.logpmf` has no value between whole numbers, which auxiliary data are.
        terms = (jax.scipy.special.xlogy(n, rate) - rate - jax.scipy.special.gammaln(n + 1) for n, rate in ((observed, main), (controls, aux)))
        return sum(term.sum() for term in terms)


class Null(Free):
    """The same without a signal."""

    def logpdf(self, pars, data):
        return Free.logpdf(self, {"mu": 0.0, "gamma": pars["gamma"]}, data)


def q0_of(background, width, observed):
    """q0 as a function of the signal's yields."""
    tau = jnp.asarray((background / width) ** 2)
    data = (jnp.asarray(observed), tau)

    def q0(signal):
        free, null = (kind(signal, jnp.asarray(background), tau) for kind in (Free, Null))
        gammas, bounds = {"gamma": jnp.ones(len(background))}, {"gamma": jnp.array([1e-10, 10.0])}
        best = relaxed.mle.fit(data, free, {"mu": jnp.asarray(1.0), **gammas}, {"mu": jnp.array([0.0, 10.0]), **bounds})
        conditional = relaxed.mle.fit(data, null, gammas, bounds)
        return 2 * (free.logpdf(best, data) - null.logpdf(conditional, data))

    return q0


def training_steps(n_bins):
    """Steps of the training of `training.py`, compiled: of the network alone, and with q0 as its
    loss; each takes relative changes of the signal."""
    signal, *rest = numbers(n_bins)
    random = np.random.default_rng(1)
    events = jnp.asarray(random.standard_normal((256, 8)))
    layers = [(jnp.asarray(random.uniform(-0.3, 0.3, shape)), jnp.zeros(shape[1])) for shape in ((8, 32), (32, n_bins))]

    def templates(layers, change):
        hidden = jnp.tanh(events @ layers[0][0] + layers[0][1])
        return signal * (1 + 0.01 * jnp.tanh((hidden @ layers[1][0] + layers[1][1]).mean(0)) + change)

    def step_of(loss):
        @jax.jit
        def step(layers, change):
            gradients = jax.grad(lambda layers: loss(templates(layers, change)))(layers)
            return jax.tree_util.tree_map(lambda value, gradient: value - 1e-6 * gradient, layers, gradients)

        return lambda change: jax.block_until_ready(step(layers, change))

    return step_of(jnp.sum), step_of(q0_of(*rest))


def serve(n_bins):
    """Answers every line on standard input with the milliseconds of a step without and with q0: for
    a caller that measures in turns."""
    random = np.random.default_rng(1)
    changes = [jnp.asarray(0.005 * random.standard_normal(n_bins)) for _ in range(61)]
    steps = training_steps(n_bins)
    print(json.dumps({"relaxed": relaxed.__version__, "jax": jax.__version__}), flush=True)
    for _ in sys.stdin:
        print(json.dumps([median_ms(step, changes, 1.0) for step in steps]), flush=True)


def median_ms(call, rows, budget=2.0):
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < budget and len(times) < 2000):
        start = time.process_time()
        call(rows[len(times) % len(rows)])
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--bins", type=int, default=2)
    parser.add_argument("--serve", action="store_true", help="time training steps for `training.py`")
    arguments = parser.parse_args()
    n_bins = arguments.bins
    if arguments.serve:
        serve(n_bins)
        return
    signal, background, width, observed = numbers(n_bins)
    session = DifferentiableSession(nextstat.model_of(workspace(signal, background, width, observed)), "signal")
    theirs = jax.jit(jax.value_and_grad(q0_of(background, width, observed)))
    start = time.perf_counter()
    value, gradients = jax.block_until_ready(theirs(jnp.asarray(signal)))
    compiled = time.perf_counter() - start
    ours = session.q0(signal)
    print(f"relaxed {relaxed.__version__}, JAX {jax.__version__}, nextstat {nextstat.__version__}: {n_bins} bins, {n_bins + 1} parameters")
    difference, largest = np.abs(ours.by_inputs - np.asarray(gradients)).max(), np.abs(ours.by_inputs).max()
    print(f"q0 {float(ours.value):.9f} and {float(value):.9f}; gradients differ by {difference:.1e} of {largest:.2g}")
    random = np.random.default_rng(1)
    rows = [signal * random.uniform(0.995, 1.005, n_bins) for _ in range(61)]
    given = [jnp.asarray(row) for row in rows]
    # Interleaved, so that both meet the same load.
    pairs = [(median_ms(session.q0, rows), median_ms(lambda row: jax.block_until_ready(theirs(row)), given)) for _ in range(3)]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"q0 with its gradient: nextstat {mine:.4f} ms, relaxed {other:.3f} ms ({other / mine:.0f} times; compiled in {compiled:.1f} s)")


if __name__ == "__main__":
    main()
