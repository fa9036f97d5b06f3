"""Models that gradients are tested on, random ones whose best fit is inside or at zero and
published ones, and every function that has gradients.
"""

import nextstat
import numpy as np


def random_workspace(seed, signal_seen=1.0, size=1.0):
    """Two channels, three samples with every kind of modifier that moves templates.

    `signal_seen` is the strength of the signal in the data, `size` scales the effects of normsys
    and histosys.
    """
    random = np.random.default_rng(seed)

    def scaled(factor):
        return 1 + size * (factor - 1)

    def normsys(name, lo, hi):
        return {"name": name, "type": "normsys", "data": {"lo": scaled(lo), "hi": scaled(hi)}}

    def histosys(name, nominal):
        hi, lo = (nominal * scaled(random.uniform(*between, len(nominal))) for between in ((1.01, 1.12), (0.9, 0.98)))
        return {"name": name, "type": "histosys", "data": {"hi_data": hi.tolist(), "lo_data": lo.tolist()}}

    channels, observations = [], []
    for name, n_bins in (("first", 3), ("second", 2)):
        signal, large, small = random.uniform(3, 9, n_bins), random.uniform(40, 90, n_bins), random.uniform(8, 20, n_bins)
        samples = [
            {
                "name": "signal",
                "data": signal.tolist(),
                "modifiers": [
                    {"name": "mu", "type": "normfactor", "data": None},
                    normsys("xs", 0.92, 1.1),
                    histosys("jes", signal),
                ],
            },
            {
                "name": "large",
                "data": large.tolist(),
                "modifiers": [histosys("jes", large), {"name": f"stat_{name}", "type": "staterror", "data": (0.05 * large).tolist()}],
            },
            {
                "name": "small",
                "data": small.tolist(),
                "modifiers": [
                    normsys("k", 0.85, 1.2),
                    {"name": f"shape_{name}", "type": "shapesys", "data": (0.2 * small).tolist()},
                ],
            },
        ]
        channels.append({"name": name, "samples": samples})
        expected = large + small + signal_seen * signal
        observations.append({"name": name, "data": (expected + 0.3 * np.sqrt(expected) * random.standard_normal(n_bins)).tolist()})
    return {
        "channels": channels,
        "observations": observations,
        "measurements": [{"name": "m", "config": {"poi": "mu", "parameters": []}}],
        "version": "1.0.0",
    }


def random_model(seed, signal_seen=1.0):
    """Some of its systematics are so far from linear that they may hide minima: its fits are the
    host's.
    """
    return nextstat.model_of(random_workspace(seed, signal_seen))


def gentle_model(seed, signal_seen=1.0):
    """Its systematics are nearly linear and hide no minima: a device does its fits."""
    return nextstat.model_of(random_workspace(seed, signal_seen, size=0.05))


def published_models(published):
    """Two published ones, with the sample to differentiate by."""
    folder = published / "workspaces"
    simple = nextstat.load_workspace(folder / "pyhf_2bin_1ch.json")
    large = nextstat.load_workspace(folder / "atlas_tHu_fcnc.json")
    return [(simple, scaled_sample(simple)), (large, scaled_sample(large))]


def scaled_sample(model):
    """A sample that the parameter of interest scales."""
    import json

    workspace = json.loads(model.workspace_json())
    for channel in workspace["channels"]:
        for sample in channel["samples"]:
            if any(modifier["type"] == "normfactor" and modifier["name"] == model.poi for modifier in sample["modifiers"]):
                return sample["name"]
    raise AssertionError("no sample is scaled by the parameter of interest")


def functions(framework):
    """What `nextstat.torch` and `nextstat.jax` have, as functions of a session and its inputs."""
    f = framework
    return {
        "profiled_nll": lambda s, x: f.profiled_nll(s, x),
        "profiled_nll at 0.5": lambda s, x: f.profiled_nll(s, x, 0.5),
        "q0": lambda s, x: f.q0(s, x),
        "q0 of Asimov data": lambda s, x: f.q0(s, x, asimov=True),
        "q_mu": lambda s, x: f.q_mu(s, x, 2.0),
        "q_mu_tilde": lambda s, x: f.q_mu_tilde(s, x, 2.0),
        "q_mu_tilde of Asimov data": lambda s, x: f.q_mu_tilde(s, x, 2.0, asimov=True),
        "cls": lambda s, x: f.cls(s, x, 2.0),
        "CLsb": lambda s, x: f.cls(s, x, 2.0, kind="CLsb"),
        "CLb": lambda s, x: f.cls(s, x, 2.0, kind="CLb"),
        "p_value": lambda s, x: f.p_value(s, x),
        "significance": lambda s, x: f.significance(s, x),
        "expected significance": lambda s, x: f.significance(s, x, asimov=True),
        "upper_limit": lambda s, x: f.upper_limit(s, x, which=["observed", -1, 0, 2]),
        "sigma_mu": lambda s, x: f.sigma_mu(s, x),
        "expected sigma_mu": lambda s, x: f.sigma_mu(s, x, mu=1.0),
    }


# Those that have second derivatives.
TWICE = ["profiled_nll", "profiled_nll at 0.5", "q0", "q_mu", "q_mu_tilde", "p_value", "significance"]


def needs_inside(name):
    """Whether the function needs a best fit that is not at zero."""
    return name in ("q0", "p_value", "significance", "sigma_mu")
