"""Evaluates Combine's likelihood of a data card in plain Python, to test the reader against.

It shares no code with the reader and is written from the semantics of Combine's manual; slow, and
only for what its callers need: `lnN`, `lnU`, `gmN`, `shape`, `shapeN`, `rateParam` with a value,
and `autoMCStats` with one parameter per bin. ROOT files are read by uproot, tables by `csv`.

    python3 scripts/combine_evaluator.py POINTS.json CARD.txt MASS   # compares with stored points
    python3 scripts/combine_evaluator.py --write                     # writes testdata/combine/reference.json
"""

import csv
import json
import math
import random
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
CARDS, REFERENCE = ROOT / "examples/combine", ROOT / "testdata/combine/reference.json"
LOWEST = 1e-9


class Card:
    """The lines of a card."""

    def __init__(self, path, mass):
        self.folder, self.mass = Path(path).parent, mass
        self.shapes, self.systematics, self.rates, self.stats = [], [], [], {}
        lines = [line.split("#")[0].split() for line in Path(path).read_text().splitlines()]
        lines = [words for words in lines if words and not words[0].startswith("--")]
        rate = next(i for i, words in enumerate(lines) if words[0] == "rate")
        bins = [words[1:] for words in lines[:rate] if words[0] == "bin"]
        names, indices = (words[1:] for words in lines[:rate] if words[0] == "process")
        self.channels = bins[0] if len(bins) > 1 else list(dict.fromkeys(bins[0]))
        if not indices[0].lstrip("-").isdigit():
            names, indices = indices, names
        observed = next(words[1:] for words in lines if words[0].lower() == "observation")
        self.observed = dict(zip(self.channels, map(float, observed)))
        self.columns = list(zip(bins[-1], names, (int(i) <= 0 for i in indices)))
        self.expected = list(map(float, lines[rate][1:]))
        self.shapes = [words[1:] for words in lines[:rate] if words[0] == "shapes"]
        for words in lines[rate + 1 :]:
            self.line(words)

    def line(self, words):
        name = f"theta{words[0]}" if words[0][0].isdigit() else words[0]
        if words[1] == "rateParam":
            self.rates += [
                (name, i)
                for i, (channel, process, _) in enumerate(self.columns)
                if words[2] in ("*", channel) and words[3] in ("*", process)
            ]
        elif words[1] == "autoMCStats":
            self.stats |= {c: float(words[2]) for c in self.channels if words[0] in ("*", c)}
        elif words[1] in ("lnN", "lnU", "gmN", "shape", "shapeN"):
            count = int(words[2]) if words[1] == "gmN" else None
            effects = words[3:] if words[1] == "gmN" else words[2:]
            effects = [None if set(e) == {"-"} or e in ("0", "0.0") else e for e in effects]
            self.systematics.append((name, words[1], count, effects))
        elif words[1] not in ("group", "flatParam"):
            raise ValueError(f"{words[1]} is not evaluated here")

    def histogram(self, channel, process, systematic=""):
        """Returns contents and uncertainties, or nothing for a counting experiment."""
        if not self.shapes:
            return None
        known = {(c, p): names for p, c, *names in self.shapes}
        order = [(channel, process), (channel, "*"), ("*", process), ("*", "*")]
        names = next(known[key] for key in order if key in known)
        if names[0] == "FAKE":
            return None
        words = {"PROCESS": process, "CHANNEL": channel, "SYSTEMATIC": systematic, "MASS": self.mass}
        file, name = names[0], names[2 if systematic else 1]
        for word, value in words.items():
            file, name = (text.replace(f"${word}", str(value)) for text in (file, name))
        if file.endswith(".csv"):
            return self.table(file, name)
        import uproot

        histogram = uproot.open(self.folder / file)[name]
        contents = histogram.values().astype(float)
        return contents, np.sqrt(np.abs(histogram.variances()))

    def table(self, file, name):
        key = name.split(":") + ["nominal"] * (3 - len(name.split(":")))
        with open(self.folder / file, newline="") as opened:
            rows = [row for row in csv.reader(opened) if row[:3] == key]
        return np.array([float(r[-2]) for r in rows]), np.sqrt([float(r[-1]) for r in rows])


def single(values):
    return np.asarray(values, dtype=np.float32).astype(float)


def log_ratio(end, start):
    """Returns logarithms of ratios, 0 where there are none."""
    is_ratio = (end > 0) & (start > 0)
    return np.where(is_ratio, np.log(np.where(is_ratio, end / np.where(start > 0, start, 1), 1)), 0.0)


def step(x):
    return math.copysign(1, x) if abs(x) >= 1 else x * (x * x * (3 * x * x - 10) + 15) / 8


def power(theta, low, high):
    up, down = math.log(high), -math.log(low)
    return math.exp(theta * 0.5 * ((up + down) + step(2 * theta) * (up - down)))


def process(card, column, point):
    """Returns the factor, the template and the uncertainties of one column."""
    channel, name, is_signal = card.columns[column]
    nominal, rate = card.histogram(channel, name), card.expected[column]
    rate = float(nominal[0].sum()) if rate == -1 else rate
    factors, norm, morphs = [], rate, []
    factors += [point["r"]] if is_signal else []
    factors += [point[parameter] for parameter, i in card.rates if i == column]
    for parameter, kind, _, effects in card.systematics:
        effect, theta = effects[column], point.get(parameter, 0.0)
        if effect is None or (kind == "lnN" and "/" not in effect and float(effect) == 1):
            continue
        if kind == "gmN":
            factors.append(theta)
            norm = float(effect)
        elif kind in ("lnN", "lnU"):
            low, high = map(float, effect.split("/")) if "/" in effect else (1 / float(effect), float(effect))
            factors.append(power(theta, low, high))
        elif nominal is not None:
            morphs.append((parameter, kind, float(effect)))
    norm = norm if factors else float(f"{norm:g}")
    if nominal is None:
        return norm * math.prod(factors), np.ones(1), np.zeros(1)
    has_stats = channel in card.stats
    for parameter, _, effect in morphs:
        kappas = [card.histogram(channel, name, parameter + end)[0].sum() / nominal[0].sum() for end in ("Down", "Up")]
        if max(abs(kappa - 1) for kappa in kappas) >= 1e-3:
            factors.append(power(point[parameter], *(float(f"{kappa**effect:f}") for kappa in kappas)))
    template = morphed(card, column, point, morphs, has_stats)
    return math.prod(factors) * (1 if has_stats else norm), template, nominal[1]


def morphed(card, column, point, morphs, has_stats):
    channel, name, _ = card.columns[column]
    nominal = single(card.histogram(channel, name)[0])
    scale = (lambda t: t) if has_stats else (lambda t: t / t.sum())
    template, start = scale(nominal), scale(nominal)
    is_log = bool(morphs) and morphs[0][1] == "shapeN"
    region = min([1.0] + [effect for _, _, effect in morphs])
    with np.errstate(divide="ignore"):
        template = np.where(start > 0, np.log(start), -999.0) if is_log else template.copy()
        for parameter, _, effect in morphs:
            x = point[parameter] * effect
            ends = [single(card.histogram(channel, name, parameter + end)[0]) for end in ("Up", "Down")]
            ends = [single(e * (nominal.sum() / e.sum())) if has_stats else scale(e) for e in ends]
            up, down = (log_ratio(e, start) if is_log else e - start for e in ends)
            template = template + 0.5 * x * ((up - down) + step(x / region) * (up + down))
    if is_log:
        template = np.exp(template)
        template *= start.sum() / template.sum()
    template = np.maximum(template, LOWEST) if has_stats or not is_log else template
    return template if has_stats else template / template.sum()


def nll(card, point):
    """Returns -ln L but for a constant."""
    value = 0.0
    for channel in card.channels:
        columns = [i for i, (c, _, _) in enumerate(card.columns) if c == channel and card.expected[i] != 0]
        parts = [process(card, i, point) for i in columns]
        expected = sum(factor * template for factor, template, _ in parts)
        data = card.histogram(channel, "data_obs")
        data = single(data[0]) if data is not None else np.array([card.observed[channel]])
        if channel in card.stats:
            error = np.sqrt(sum((factor * errors) ** 2 for factor, _, errors in parts))
            nu = np.array([point.get(f"prop_bin{channel}_bin{b}", 0.0) for b in range(len(error))])
            expected = np.maximum(expected + nu * error, LOWEST)
            value += 0.5 * float(nu @ nu)
        value += float(sum(e - (n * math.log(e) if n else 0.0) for e, n in zip(expected, data)))
    counts = {name: (kind, count) for name, kind, count, _ in card.systematics}
    for name, (kind, count) in counts.items():
        if kind == "gmN":
            value += point[name] - count * math.log(point[name])
        elif kind != "lnU":
            value += 0.5 * point[name] ** 2
    return value


def compare(points, card, mass):
    reference = json.loads(Path(points).read_text())
    card = Card(card, mass)
    found = np.array([nll(card, one["values"]) for one in reference["points"]])
    wanted = np.array([one["nll"] for one in reference["points"]])
    return float(np.max(np.abs((found - found[0]) - (wanted - wanted[0]))))


def write():
    """Writes -ln L at random points of every card of the tests."""
    generator, cases = random.Random(1), {}
    for path in sorted(CARDS.glob("*.txt")):
        card = Card(path, 125)
        names = {name: kind for name, kind, _, _ in card.systematics}
        counts = {name: count for name, kind, count, _ in card.systematics if kind == "gmN"}
        points = []
        for _ in range(6):
            point = {name: generator.gauss(0, 0.8) for name in names}
            point |= {name: (counts[name] + 1) * generator.uniform(0.6, 1.6) for name in counts}
            point |= {name: generator.uniform(-1, 1) for name, kind in names.items() if kind == "lnU"}
            point |= {name: generator.uniform(0.7, 1.3) for name, _ in card.rates}
            for channel in card.stats:
                n_bins = len(card.histogram(channel, "data_obs")[0])
                point |= {f"prop_bin{channel}_bin{b}": generator.gauss(0, 0.8) for b in range(n_bins)}
            point["r"] = generator.uniform(0.2, 2)
            points.append({"values": point, "nll": nll(card, point)})
        cases[path.name] = points
    REFERENCE.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    write() if sys.argv[1:] == ["--write"] else print(compare(*sys.argv[1:]))
