"""The root of a function in a bracket: inverse quadratic interpolation where it is safe, bisection
elsewhere.

T. R. Chandrupatla, Advances in Engineering Software 28 (1997) 145.
"""


def crossing(function, low, high, atol, rtol, most_steps=100):
    """Returns a root of `function` between `low` and `high`, where its signs differ, to within
    ``atol + rtol·|root|``.

    >>> round(crossing(lambda x: x * x - 2.0, 0.0, 2.0, 0.0, 1e-12), 9)
    1.414213562
    """
    a, b, c = high, low, high
    at_a, at_b = function(a), function(b)
    at_c = at_a
    if at_a == 0.0 or at_b == 0.0:
        return a if at_a == 0.0 else b
    if (at_a > 0.0) == (at_b > 0.0):
        raise ValueError(f"the function does not change its sign between {low} and {high}")
    step = 0.5
    for _ in range(most_steps):
        x = a + step * (b - a)
        at_x = function(x)
        if (at_x > 0.0) == (at_a > 0.0):
            c, at_c = a, at_a
        else:
            c, b, at_c, at_b = b, a, at_b, at_a
        a, at_a = x, at_x
        # Inside so small a bracket the function is a straight line.
        root = a + (b - a) * at_a / (at_a - at_b)
        width = abs(b - a)
        tolerance = atol + rtol * abs(root)
        if at_a == 0.0 or width <= tolerance:
            return root
        step = _next_step(a, b, c, (at_a, at_b, at_c), min(0.5, 0.5 * tolerance / width))
    return root


def _next_step(a, b, c, values, least):
    at_a, at_b, at_c = values
    xi, phi = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
    if not (phi * phi < xi and (1.0 - phi) ** 2 < 1.0 - xi):
        return 0.5
    step = at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
    return min(max(step, least), 1.0 - least)
