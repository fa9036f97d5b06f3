"""Gradients of q_mu and CLs by signal yields, against pyhf's JAX backend differentiated by JAX,
and what either takes.

python compat/gradients.py [--time] [--write docs/differentiable-checks.md]

`make compat-gradients` runs it, by a Python that has nextstat, pyhf and JAX; it fails where a
gradient is off by more than 1e-5. The reference is pyhf's `logpdf`, whose nominal rates are
replaced by JAX's tracers; minima are found by Newton steps in double precision, and made functions
of the yields by one further step from the minimum and the Hessian kept constant, which has the
derivative of the implicit function theorem. Nothing of nextstat is in it.
"""

import argparse
import json
import platform
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import nextstat
import numpy as np
import pyhf
from nextstat.differentiable import DifferentiableSession

jax.config.update("jax_enable_x64", True)
pyhf.set_backend("jax", precision="64b")
normal_cdf = jax.scipy.stats.norm.cdf


def specification(name):
    """A model's channels, the observed data, and where the signal yields are."""
    poi = [{"name": "mu", "type": "normfactor", "data": None}]
    if name == "uncorrelated background":
        samples = [
            {"name": "signal", "data": [12.0, 11.0], "modifiers": poi},
            {"name": "background", "data": [50.0, 52.0], "modifiers": [{"name": "u", "type": "shapesys", "data": [3.0, 7.0]}]},
        ]
        return [{"name": "channel", "samples": samples}], [51.0, 48.0]
    if name == "correlated background":
        shape = {"name": "c", "type": "histosys", "data": {"hi_data": [54.0, 55.0], "lo_data": [47.0, 50.0]}}
        samples = [{"name": "signal", "data": [12.0, 11.0], "modifiers": poi}, {"name": "background", "data": [50.0, 52.0], "modifiers": [shape]}]
        return [{"name": "channel", "samples": samples}], [55.0, 58.0]
    scale = {"name": "xs", "type": "normsys", "data": {"lo": 0.9, "hi": 1.12}}
    signal = {"name": "signal", "data": [4.0, 9.0, 6.0], "modifiers": [*poi, scale]}
    first = {
        "name": "first",
        "data": [60.0, 45.0, 30.0],
        "modifiers": [
            {"name": "jes", "type": "histosys", "data": {"hi_data": [63.0, 46.0, 28.0], "lo_data": [57.0, 44.0, 33.0]}},
            {"name": "k", "type": "normsys", "data": {"lo": 0.93, "hi": 1.05}},
            {"name": "stat", "type": "staterror", "data": [3.0, 2.5, 2.0]},
        ],
    }
    second = {"name": "second", "data": [10.0, 12.0, 9.0], "modifiers": [scale, {"name": "stat", "type": "staterror", "data": [1.0, 1.2, 0.9]}]}
    return [{"name": "channel", "samples": [signal, first, second]}], [72.0, 66.0, 48.0]


class Reference:
    """Statistics as functions of the signal yields, by pyhf and JAX."""

    def __init__(self, channels, observed):
        self.pyhf = pyhf.Model({"channels": channels}, poi_name="mu", validate=False)
        self.nominal = jnp.asarray(self.pyhf.main_model.nominal_rates)
        self.signal = self.pyhf.config.samples.index("signal")
        self.names, self.poi = self.pyhf.config.par_names, self.pyhf.config.poi_index
        self.data = jnp.asarray(observed + list(self.pyhf.config.auxdata))
        self.n_bins = len(observed)
        self.init = jnp.asarray(self.pyhf.config.suggested_init(), dtype=float)

    def model(self, signal):
        """pyhf's model with other signal yields; the signals here have no histosys, whose
        differences would have to follow.
        """
        rates = self.nominal
        [axis] = [axis for axis, length in enumerate(rates.shape) if length == len(self.pyhf.config.samples) and axis < rates.ndim - 1]
        by_sample = jnp.moveaxis(rates, axis, 0).at[self.signal].set(signal)
        self.pyhf.main_model.nominal_rates = jnp.moveaxis(by_sample, 0, axis)
        return self.pyhf

    def nll(self, params, data, signal):
        return -self.model(signal).logpdf(params, data)[0]

    def start_and_index(self, mu):
        free = [i for i in range(len(self.names)) if mu is None or i != self.poi]
        start = self.init if mu is None else self.init.at[self.poi].set(mu)
        return start, jnp.asarray(free)

    def gradient(self, x, start, data, signal, is_fixed):
        _, index = self.start_and_index(0.0 if is_fixed else None)
        return jax.grad(lambda x: self.nll(start.at[index].set(x), data, signal))(x)

    @partial(jax.jit, static_argnums=(0, 5))
    def newton(self, x, start, data, signal, is_fixed):
        """The Hessian by the parameters that are free, and the next point of Newton's iteration."""
        hessian = jax.jacfwd(self.gradient)(x, start, data, signal, is_fixed)
        return hessian, x - jnp.linalg.solve(hessian, self.gradient(x, start, data, signal, is_fixed))

    def minimum(self, data, signal, mu=None, n_steps=12):
        """The parameters at the minimum, with mu fixed or free, differentiable by data and signal.
        """
        (start, index), is_fixed = self.start_and_index(mu), mu is not None
        constant = jax.lax.stop_gradient
        x = constant(start)[index]
        for _ in range(n_steps):
            hessian, x = self.newton(x, constant(start), constant(data), constant(signal), is_fixed)
        # The gradient vanishes here, so only its own derivative counts, times the inverse Hessian
        # as it is.
        x = constant(x) - jnp.linalg.solve(constant(hessian), self.gradient(constant(x), start, data, signal, is_fixed))
        return start.at[index].set(x)

    def free(self, data, signal):
        """The free minimum with mu not below zero."""
        inside = self.minimum(data, signal)
        return jnp.where(inside[self.poi] >= 0, inside, self.minimum(data, signal, 0.0))

    def q(self, data, signal, mu):
        best = self.free(data, signal)
        rise = 2 * (self.nll(self.minimum(data, signal, mu), data, signal) - self.nll(best, data, signal))
        return jnp.where(best[self.poi] <= mu, rise, 0.0)

    def asimov(self, signal):
        params = self.minimum(self.data, signal, 0.0)
        return self.model(signal).expected_data(params)

    def q_mu(self, signal, mu):
        return self.q(self.data, signal, mu)

    def cls(self, signal, mu):
        root = jnp.sqrt(self.q_mu(signal, mu))
        q_asimov = self.q(self.asimov(signal), signal, mu)
        root_asimov = jnp.sqrt(q_asimov)
        distance = jnp.where(root > root_asimov, (root**2 - q_asimov) / (2 * root_asimov), root - root_asimov)
        observed = normal_cdf(-distance - root_asimov) / normal_cdf(-distance)
        return jnp.stack([observed, *(normal_cdf(n - root_asimov) / normal_cdf(n) for n in (-2.0, -1.0, 0.0, 1.0, 2.0))])

    def q0_gradient(self):
        def q0(signal):
            best = self.free(self.data, signal)
            return 2 * (self.nll(self.minimum(self.data, signal, 0.0), self.data, signal) - self.nll(best, self.data, signal))

        return jax.jit(jax.value_and_grad(q0))


def ours(channels, observed):
    workspace = {
        "channels": channels,
        "observations": [{"name": channels[0]["name"], "data": observed}],
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    }
    return DifferentiableSession(nextstat.model_of(workspace), "signal")


def median(call, budget=2.0):
    """The median of repeated calls, in seconds."""
    call()
    times, begin = [], time.perf_counter()
    while len(times) < 5 or (time.perf_counter() - begin < budget and len(times) < 2000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def compare(name, mu, is_timed):
    channels, observed = specification(name)
    session, reference = ours(channels, observed), Reference(channels, observed)
    signal = jnp.asarray(session.values)
    q = session.q_mu_tilde(session.values, mu)
    cls = session.cls(session.values, mu)
    value, gradient = jax.value_and_grad(reference.q_mu)(signal, mu)
    cls_values, cls_gradients = reference.cls(signal, mu), jax.jacrev(reference.cls)(signal, mu)
    row = {
        "model": name,
        "mu": mu,
        "parameters": len(reference.names),
        "q": abs(float(value) - float(q.value)),
        "dq": float(np.abs(np.asarray(gradient) - q.by_inputs).max()),
        "CLs": float(np.abs(np.asarray(cls_values) - cls.value).max()),
        "dCLs": float(np.abs(np.asarray(cls_gradients) - cls.by_inputs).max()),
        "largest dq": float(np.abs(q.by_inputs).max()),
        "largest dCLs": float(np.abs(cls.by_inputs).max()),
    }
    if is_timed:
        of_q0 = reference.q0_gradient()
        row["ours_ms"] = 1e3 * median(lambda: session.q0(session.values))
        row["jax_ms"] = 1e3 * median(lambda: jax.block_until_ready(of_q0(signal)))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--time", action="store_true", help="measure a gradient of q0 by either (JAX compiles for minutes)")
    arguments = parser.parse_args()
    names = ["uncorrelated background", "correlated background", "three samples, every kind"]
    rows = [compare(name, mu, arguments.time and mu == 2.0) for name in names for mu in (1.0, 2.0)]
    print(json.dumps(rows, indent=1))
    worst = max(max(row["dq"], row["dCLs"]) for row in rows)
    if arguments.write:
        arguments.write.write_text(page(rows), "utf-8")
    if worst > 1e-5:
        raise SystemExit(f"error: a gradient is off by {worst:.1e}")


def time_of(row, who):
    return f"{row[who]:.3g} ms" if who in row else ""


def page(rows):
    lines = [
        "# Gradients against pyhf and JAX",
        "",
        "Written by `compat/gradients.py`; the reference is explained there. Gradients of q̃_μ and of CLs (observed, and the five expected ones) by the"
        " signal's yields, greatest difference of any element; then one gradient of q₀ by either, median of repeated calls on one machine, JAX compiled"
        " beforehand.",
        "",
        f"pyhf {pyhf.__version__}, JAX {jax.__version__}, nextstat {nextstat.__version__}, Python {platform.python_version()}.",
        "",
        "| model | μ | q̃_μ off by | its gradient | of at most | CLs off by | their gradients | of at most | q₀ with gradient | by JAX |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['model']}, {row['parameters']} parameters | {row['mu']:g} | {row['q']:.0e} | {row['dq']:.0e} | {row['largest dq']:.2g}"
            f" | {row['CLs']:.0e} | {row['dCLs']:.0e} | {row['largest dCLs']:.2g} | {time_of(row, 'ours_ms')} | {time_of(row, 'jax_ms')} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
