// Interpolation of systematics: the factor of a normsys, the two weights of a histosys shift, with
// first and second derivatives. Formulas and codes as in ns_core::interpolate (CERN-OPEN-2012-016,
// section 4.1).

STRUCT(Jet) {
    real value, first, second;
};

// Returns the factor of a normsys. `table` has ln hi, ln lo, and the coefficients of alpha^1 ...
// alpha^6.
FN Jet normsys_factor(const GLOBAL real* table, uint rule, real alpha) {
    Jet out;
    if (rule == NORMSYS_SMOOTH && ABS(alpha) < R(1.0)) {
        // Horner's scheme for a polynomial and its two derivatives.
        real value = table[7], first = R(0.0), half_second = R(0.0);
        for (uint k = 6u; k >= 2u; --k) {
            half_second = half_second * alpha + first;
            first = first * alpha + value;
            value = value * alpha + table[k];
        }
        half_second = half_second * alpha + first;
        first = first * alpha + value;
        value = value * alpha + R(1.0);
        out.value = value;
        out.first = first;
        out.second = R(2.0) * half_second;
        return out;
    }
    const real rate = SIGN_BIT(alpha) ? -table[1] : table[0];
    out.value = EXP(rate * alpha);
    out.first = rate * out.value;
    out.second = rate * out.first;
    return out;
}

// Returns the weight of the upper (side = 1) or lower (side = -1) template difference.
FN Jet histosys_weight(uint rule, real side, real alpha) {
    Jet out;
    const bool inside = ABS(alpha) < R(1.0);
    if (rule == HISTOSYS_SMOOTH && inside) {
        const real x = alpha * alpha;
        out.value = x * (R(15.0) + x * (R(3.0) * x - R(10.0))) * R(0.0625) + side * alpha * R(0.5);
        out.first = alpha * (R(30.0) + x * (R(18.0) * x - R(40.0))) * R(0.0625) + side * R(0.5);
        out.second = (R(30.0) + x * (R(90.0) * x - R(120.0))) * R(0.0625);
        return out;
    }
    if (rule == HISTOSYS_QUADRATIC) {
        if (ABS(alpha) <= R(1.0)) {
            out.value = alpha * (alpha + side) * R(0.5);
            out.first = alpha + side * R(0.5);
            out.second = R(1.0);
            return out;
        }
        const real edge = SIGN_BIT(alpha) ? R(-1.0) : R(1.0);
        out.first = edge + side * R(0.5);
        out.value = (R(1.0) + edge * side) * R(0.5) + out.first * (alpha - edge);
        out.second = R(0.0);
        return out;
    }
    const bool same_side = SIGN_BIT(alpha) ? side < R(0.0) : side > R(0.0);
    out.value = same_side ? side * alpha : R(0.0);
    out.first = same_side ? side : R(0.0);
    out.second = R(0.0);
    return out;
}
