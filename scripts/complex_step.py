"""The HistFactory likelihood and its gradient by complex steps, straight from a workspace's JSON:
an oracle that shares nothing with ours.

A derivative is Im f(x + ih) / h with h = 1e-40: no differences are taken, so nothing cancels
(Squire & Trapp, SIAM Rev. 40 (1998) 110). Formulas: CERN-OPEN-2012-016; conventions: pyhf 0.7.
Slow, plain, standard library only. Interpolations branch on real parts.
"""
import cmath
import copy
import math

STEP = 1e-40


def apply_patch(document, operations):
    """A copy of `document` with the RFC 6902 `operations` applied."""
    document = copy.deepcopy(document)
    for operation in operations:
        verb, path = operation["op"], _steps(operation["path"])
        if verb == "test":
            if _get(document, path) != operation["value"]:
                raise ValueError(f"test failed at {operation['path']}")
            continue
        if verb in ("add", "replace"):
            value = copy.deepcopy(operation["value"])
        elif verb in ("copy", "move"):
            value = copy.deepcopy(_get(document, _steps(operation["from"])))
        if verb in ("remove", "replace"):
            _take(document, path)
        if verb == "move":
            _take(document, _steps(operation["from"]))
        if verb != "remove":
            _put(document, path, value)
    return document


def _steps(pointer):
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _get(document, path):
    for step in path:
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _take(document, path):
    parent = _get(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]


def _put(document, path, value):
    parent = _get(document, path[:-1])
    if isinstance(parent, list):
        parent.insert(len(parent) if path[-1] == "-" else int(path[-1]), value)
    else:
        parent[path[-1]] = value


def code0(up, down, alpha):
    return alpha * up if alpha.real >= 0 else -alpha * down


def code4p(up, down, alpha):
    if abs(alpha.real) >= 1:
        return code0(up, down, alpha)
    half_difference, sixteenth_sum, square = 0.5 * (up - down), (up + down) / 16, alpha * alpha
    return alpha * (half_difference + alpha * sixteenth_sum * (15 + square * (3 * square - 10)))


def code1(high, low, alpha):
    return cmath.exp(alpha * math.log(high)) if alpha.real >= 0 else cmath.exp(-alpha * math.log(low))


def code4(high, low, alpha):
    """Exponential outside, inside a polynomial of degree six with the same value, derivative and
    curvature at both ends."""
    if abs(alpha.real) >= 1:
        return code1(high, low, alpha)
    log_high, log_low = math.log(high), math.log(low)
    even0, odd0 = 0.5 * (high + low) - 1, 0.5 * (high - low)
    even1, odd1 = 0.5 * (high * log_high + low * log_low), 0.5 * (high * log_high - low * log_low)
    even2, odd2 = 0.5 * (high * log_high**2 + low * log_low**2), 0.5 * (high * log_high**2 - low * log_low**2)
    a5 = (odd2 - 3 * odd1 + 3 * odd0) / 8
    a3 = (odd1 - odd0 - 4 * a5) / 2
    a6 = (even2 - 5 * even1 + 8 * even0) / 8
    a4 = (even1 - 2 * even0 - 4 * a6) / 2
    coefficients = (a6, a5, a4, a3, even0 - a4 - a6, odd0 - a3 - a5)
    value = 0.0
    for coefficient in coefficients:
        value = (value + coefficient) * alpha
    return 1 + value


class Likelihood:
    """-ln L of a workspace at points in the order of `par_names`, up to terms of the data alone."""

    def __init__(self, workspace, par_names, measurement=None, normsys=code4, histosys=code4p):
        self.normsys, self.histosys = normsys, histosys
        self.index = {name: i for i, name in enumerate(par_names)}
        observed = {o["name"]: o["data"] for o in workspace["observations"]}
        measurements = workspace["measurements"]
        chosen = next(m for m in measurements if measurement in (None, m["name"]))
        self.config = {p["name"]: p for p in chosen["config"]["parameters"]}
        self.channels = [(observed[c["name"]], sorted(c["samples"], key=lambda s: s["name"])) for c in workspace["channels"]]
        self.constraints = self._constraints()
        self.users = [[] for _ in par_names]
        for c, (_, samples) in enumerate(self.channels):
            for s, sample in enumerate(samples):
                touched = {p for m in sample["modifiers"] for p in self._params(m, len(sample["data"]))}
                for p in touched:
                    self.users[p].append((c, s))

    def _params(self, modifier, n_bins):
        """The parameter of each bin; a single one for scalar modifiers."""
        name = modifier["name"]
        if modifier["type"] in ("shapesys", "staterror", "shapefactor"):
            return [self.index[f"{name}[{bin}]"] for bin in range(n_bins)]
        return [self.index[name]]

    def _constraints(self):
        """(kind, parameter, auxiliary datum, width or tau) of each constrained parameter."""
        terms, stat = {}, {}
        for _, samples in self.channels:
            for sample in samples:
                for modifier in sample["modifiers"]:
                    kind, name, data, params = modifier["type"], modifier["name"], modifier["data"], None
                    params = self._params(modifier, len(sample["data"]))
                    if kind in ("normsys", "histosys", "lumi"):
                        terms[params[0]] = ("normal", name, 0, 0.0, 1.0)
                    elif kind == "shapesys":
                        for bin, p in enumerate(params):
                            nominal, error = sample["data"][bin], data[bin]
                            tau = (nominal / error) ** 2 if nominal > 0 and error > 0 else 1.0
                            terms[p] = ("poisson", name, bin, tau, tau)
                    elif kind == "staterror":
                        for bin, p in enumerate(params):
                            total = stat.setdefault(p, [name, bin, 0.0, 0.0])
                            total[2] += sample["data"][bin]
                            total[3] += data[bin] ** 2
        for p, (name, bin, nominal, variance) in stat.items():
            sigma = math.sqrt(variance) / nominal if nominal != 0 else 0.0
            terms[p] = ("normal", name, bin, 1.0, sigma or 1.0)
        return {p: self._configured(*term) for p, term in terms.items()}

    def _configured(self, kind, name, element, aux, scale):
        config = self.config.get(name, {})
        aux = config["auxdata"][element] if "auxdata" in config else aux
        key = "sigmas" if kind == "normal" else "factors"
        return kind, aux, config[key][element] if key in config else scale

    def yields(self, sample, theta):
        """Expected events of a sample in each bin."""
        shifted = list(sample["data"])
        factors = [1.0] * len(shifted)
        for modifier in sample["modifiers"]:
            kind, data = modifier["type"], modifier["data"]
            params = self._params(modifier, len(shifted))
            value = theta[params[0]]
            if kind == "histosys":
                for bin, nominal in enumerate(sample["data"]):
                    shifted[bin] += self.histosys(data["hi_data"][bin] - nominal, data["lo_data"][bin] - nominal, value)
            elif kind in ("shapesys", "staterror", "shapefactor"):
                factors = [f * theta[p] for f, p in zip(factors, params)]
            else:
                factor = self.normsys(data["hi"], data["lo"], value) if kind == "normsys" else value
                factors = [f * factor for f in factors]
        return [s * f for s, f in zip(shifted, factors)]

    def gradient(self, theta):
        """d(-ln L)/d theta, one complex step per parameter; only the samples that a parameter
        touches are evaluated again."""
        plain = [[self.yields(sample, theta) for sample in samples] for _, samples in self.channels]
        totals = [[sum(column) for column in zip(*samples)] for samples in plain]
        return [self._derivative(theta, p, totals) for p in range(len(theta))]

    def _derivative(self, theta, p, totals):
        moved = list(theta)
        moved[p] = complex(theta[p], STEP)
        value, shifts = 0.0, {}
        for c, s in self.users[p]:
            yields = self.yields(self.channels[c][1][s], moved)
            shift = shifts.setdefault(c, [0.0] * len(yields))
            shifts[c] = [a + complex(y).imag for a, y in zip(shift, yields)]
        for c, shift in shifts.items():
            for n, total, moved_by in zip(self.channels[c][0], totals[c], shift):
                value += poisson(n, complex(complex(total).real, moved_by)).imag
        if p in self.constraints:
            kind, aux, scale = self.constraints[p]
            term = poisson(aux, scale * moved[p]) if kind == "poisson" else 0.5 * ((moved[p] - aux) / scale) ** 2
            value += term.imag
        return value / STEP


def poisson(n, expected):
    """-ln Pois(n | expected) without the term of n alone."""
    return expected - (n * cmath.log(expected) if n else 0.0)
