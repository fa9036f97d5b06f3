// The Poisson term without cancellation: half the deviance of a count n from its expectation, and
// its derivatives. Formulas and edges as in ns_core::poisson.

// Returns x - ln(1 + x) for |x| <= 1/4, by the series of artanh.
FN real minus_ln_1p(real x) {
    const real s = x / (R(2.0) + x);
    const real z = s * s;
    real series = R(0.0);
    for (uint k = 12u; k >= 1u; --k) series = z * (R(1.0) / real(2u * k + 1u) + series);
    return s * (x - R(2.0) * series);
}

// Returns lambda - n - n ln(lambda / n): infinite if lambda is negative, NaN, or zero although n is
// not.
FN real half_deviance(real n, real lambda) {
    if (!(lambda >= R(0.0))) return INF;
    if (n == R(0.0)) return lambda;
    if (lambda == R(0.0)) return INF;
    const real excess = lambda - n;
    const real x = excess / n;
    if (ABS(x) < R(0.25)) return n * minus_ln_1p(x);
    return excess - n * LN(lambda / n);
}

// Returns the first and second derivative with respect to lambda: 1 - n / lambda and n / lambda^2.
FN Jet poisson_derivatives(real n, real lambda) {
    Jet out;
    out.value = R(0.0);
    if (n == R(0.0)) {
        out.first = R(1.0);
        out.second = R(0.0);
        return out;
    }
    const real ratio = n / lambda;
    out.first = R(1.0) - ratio;
    out.second = ratio / lambda;
    return out;
}

// Returns a constraint term without its normalisation, as a function of theta: Gaussian of width
// `scale`, or Poisson of rate `scale` theta.
FN Jet constraint_term(uint is_poisson, real scale, real aux, real theta) {
    Jet out;
    if (is_poisson != 0u) {
        out = poisson_derivatives(aux, scale * theta);
        out.first *= scale;
        out.second *= scale * scale;
        out.value = half_deviance(aux, scale * theta);
        return out;
    }
    const real pull = (theta - aux) / scale;
    out.value = R(0.5) * pull * pull;
    out.first = pull / scale;
    out.second = R(1.0) / (scale * scale);
    return out;
}
