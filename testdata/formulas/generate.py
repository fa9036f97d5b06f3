"""Generates random expressions with reference values, gradients and Hessians.

mpmath evaluates each expression with 60 digits and takes its derivatives by finite differences of
that precision. Expressions that double precision cannot answer are left out: those whose value in
plain Python differs, and those that change much faster than their parameters. The formulas of the
crate under test take no part in that choice.

    python testdata/formulas/generate.py
"""

import datetime
import itertools
import json
import math
import pathlib
import random

import mpmath

DIGITS = 60
N_EXPRESSIONS = 200
SEED = 20_261_125

# What the functions of the syntax are in mpmath and in plain Python.
MPMATH = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "log10": mpmath.log10,
    "sqrt": mpmath.sqrt,
    "abs": abs,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "atan2": mpmath.atan2,
    "pow": mpmath.power,
    "min": min,
    "max": max,
}
PYTHON = {name: getattr(math, name) for name in MPMATH if hasattr(math, name)}
PYTHON |= {"abs": abs, "min": min, "max": max}

UNARY = [name for name in MPMATH if name not in ("atan2", "pow", "min", "max")]
BINARY = ["atan2", "pow", "min", "max"]


class Expression:
    """A random expression in the syntax of formulas, which is also Python's but for `^`."""

    def __init__(self, rng, names):
        self.rng = rng
        self.names = names

    def text(self, depth):
        """Returns an expression of at most `depth` levels."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            if rng.random() < 0.7:
                return rng.choice(self.names)
            return repr(round(rng.uniform(0.2, 3.0), 2))
        kind = rng.random()
        if kind < 0.55:
            operator = rng.choice("+-**/")
            return f"({self.text(depth - 1)} {operator} {self.text(depth - 1)})"
        if kind < 0.65:
            return f"({self.text(depth - 1)})^{rng.choice(['2', '3', '-1', '0.5', '1.7'])}"
        if kind < 0.7:
            return f"(-{self.text(depth - 1)})"
        if kind < 0.9:
            return f"{rng.choice(UNARY)}({self.text(depth - 1)})"
        return f"{rng.choice(BINARY)}({self.text(depth - 1)}, {self.text(depth - 1)})"


def evaluate(text, values, functions, number):
    """Returns the value of `text`, or `None` outside the domain."""
    code = text.replace("^", "**")
    if number is mpmath.mpf:
        # Constants are the decimal numbers as a double has them.
        code = "".join(
            f"mpf({word})" if word[:1].isdigit() else word for word in split_numbers(code)
        )
    try:
        value = eval(code, {"__builtins__": {}, "mpf": mpmath.mpf, **functions}, dict(values))  # noqa: S307
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return None
    if isinstance(value, (complex, mpmath.mpc)) or not math.isfinite(value):
        return None
    return value


def split_numbers(code):
    """Splits `code` so that every number, and only that, begins with a digit."""
    word, is_number, words = "", False, []
    for i, c in enumerate(code):
        starts = c.isdigit() and not (code[i - 1].isalnum() if i else False)
        continues = is_number and (c.isdigit() or c == ".")
        if continues or (not is_number and not starts):
            word += c
            continue
        words.append(word)
        word, is_number = c, starts
    return [*words, word]


def derivatives(text, names, point):
    """Returns value, gradient and Hessian as mpmath numbers, or `None`."""

    def function(*values):
        value = evaluate(text, zip(names, values, strict=True), MPMATH, mpmath.mpf)
        if value is None:
            raise ValueError
        return value

    n = len(names)
    try:
        value = function(*point)
        units = [[int(i == k) for i in range(n)] for k in range(n)]
        gradient = [mpmath.diff(function, tuple(point), tuple(unit)) for unit in units]
        second = {}
        for i, j in itertools.combinations_with_replacement(range(n), 2):
            order = tuple(a + b for a, b in zip(units[i], units[j], strict=True))
            second[i, j] = mpmath.diff(function, tuple(point), order)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return None
    hessian = [second[min(i, j), max(i, j)] for i in range(n) for j in range(n)]
    return [value, *gradient, *hessian]


def is_answerable(text, names, point, numbers):
    """Returns whether double precision can give `numbers` with about 14 digits."""
    largest = max(abs(number) for number in numbers)
    smallest = min((abs(number) for number in numbers if abs(number) > 1e-30), default=1)
    if not (1e-3 < abs(numbers[0]) < 1e3) or largest > 1e6 or smallest < 1e-4:
        return False
    plain = evaluate(text, zip(names, map(float, point), strict=True), PYTHON, float)
    if plain is None or abs(plain - numbers[0]) > 1e-14 * abs(numbers[0]):
        return False
    step = mpmath.mpf(10) ** -12
    moved = derivatives(text, names, [x * (1 + step * (-1) ** i) for i, x in enumerate(point)])
    if moved is None:
        return False
    rates = [abs(a - b) / step / max(abs(a), mpmath.mpf(10) ** -30) for a, b in zip(numbers, moved, strict=True)]
    zero = [abs(a) < 1e-30 for a in numbers]
    return all(rate < 100 or is_zero for rate, is_zero in zip(rates, zero, strict=True))


def main():
    mpmath.mp.dps = DIGITS
    rng = random.Random(SEED)
    rows = []
    while len(rows) < N_EXPRESSIONS:
        names = ["a", "b", "c", "d"][: rng.randint(1, 4)]
        text = Expression(rng, names).text(rng.randint(2, 5))
        point = [mpmath.mpf(round(rng.uniform(-2.0, 2.5), 3)) for _ in names]
        if not any(name in text for name in names) or any(row["text"] == text for row in rows):
            continue
        numbers = derivatives(text, names, point)
        if numbers is None or not is_answerable(text, names, point, numbers):
            continue
        n = len(names)
        floats = [0.0 if abs(number) < 1e-30 else float(number) for number in numbers]
        rows.append(
            {
                "text": text,
                "names": names,
                "point": [float(x) for x in point],
                "value": floats[0],
                "gradient": floats[1 : 1 + n],
                "hessian": floats[1 + n :],
            }
        )
    document = {
        "certificate": {
            "tool": "mpmath",
            "version": mpmath.__version__,
            "digits": DIGITS,
            "command": "python testdata/formulas/generate.py",
            "date": datetime.date.today().isoformat(),
        },
        "expressions": rows,
    }
    path = pathlib.Path(__file__).with_name("mpmath.json")
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
