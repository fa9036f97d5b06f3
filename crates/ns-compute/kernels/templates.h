// Templates as inputs: the tables computed from them, and the derivatives of -ln L by them. Inputs
// as in ns_core::templates: nominal yields, yields at +-1 of histosys, factors at +-1 of normsys,
// all independent of each other.

// The conditions on a polynomial at +-1: the even and the odd part of value, derivative (even: half
// the difference of the two) and curvature.
STRUCT(Ends) {
    real even_value, odd_value, even_derivative, odd_derivative, even_curve, odd_curve;
};

// Coefficients of alpha^1 ... alpha^6.
STRUCT(Sextic) {
    real a1, a2, a3, a4, a5, a6;
};

// Returns the polynomial that is 0 at 0 and meets `ends` (CERN-OPEN-2012-016, section 4.1.2).
FN Sextic sextic(const Ends ends) {
    Sextic out;
    out.a1 = (R(15.0) * ends.odd_value - R(7.0) * ends.odd_derivative + ends.odd_curve) * R(0.125);
    out.a2 = (R(24.0) * ends.even_value - R(9.0) * ends.even_derivative + ends.even_curve) * R(0.125);
    out.a3 = (R(-5.0) * ends.odd_value + R(5.0) * ends.odd_derivative - ends.odd_curve) * R(0.25);
    out.a4 = (R(-12.0) * ends.even_value + R(7.0) * ends.even_derivative - ends.even_curve) * R(0.25);
    out.a5 = (R(3.0) * ends.odd_value - R(3.0) * ends.odd_derivative + ends.odd_curve) * R(0.125);
    out.a6 = (R(8.0) * ends.even_value - R(5.0) * ends.even_derivative + ends.even_curve) * R(0.125);
    return out;
}

// Writes the table of a normsys that is `lo` at -1 and `hi` at +1: ln hi, ln lo, and the
// coefficients.
FN void set_factor(GLOBAL real* table, real hi, real lo) {
    const real ln_hi = LN(hi), ln_lo = LN(lo);
    const real derivative_hi = hi * ln_hi, derivative_lo = -lo * ln_lo;
    const real curve_hi = derivative_hi * ln_hi, curve_lo = -derivative_lo * ln_lo;
    Ends ends;
    ends.even_value = (hi + lo) * R(0.5) - R(1.0);
    ends.odd_value = (hi - lo) * R(0.5);
    ends.even_derivative = (derivative_hi - derivative_lo) * R(0.5);
    ends.odd_derivative = (derivative_hi + derivative_lo) * R(0.5);
    ends.even_curve = (curve_hi + curve_lo) * R(0.5);
    ends.odd_curve = (curve_hi - curve_lo) * R(0.5);
    const Sextic found = sextic(ends);
    table[0] = ln_hi;
    table[1] = ln_lo;
    table[2] = found.a1;
    table[3] = found.a2;
    table[4] = found.a3;
    table[5] = found.a4;
    table[6] = found.a5;
    table[7] = found.a6;
}

// Sets a nominal yield, and the differences of the template's histosys from it in this bin: their
// yields at +-1 do not change.
FN void set_yield(const Context context, const GLOBAL real* inputs, uint input) {
    CONSTANT Layout* layout = context.layout;
    const uint cell = INDEX(input_place)[input];
    const uint t = INDEX(input_template)[input];
    const uint bin = cell - INDEX(template_cell)[t];
    const real nominal = inputs[input];
    context.work[layout->nominal + cell] = nominal;
    for (uint h = INDEX(template_histosys)[t]; h < INDEX(template_histosys)[t + 1u]; ++h) {
        const uint at = INDEX(histosys_cell)[h] + bin;
        const uint hi = INDEX(histosys_hi)[h], lo = INDEX(histosys_lo)[h];
        context.work[layout->up + at] = (hi == NONE ? REAL_TABLE(fixed_up)[at] : inputs[hi + bin]) - nominal;
        context.work[layout->down + at] = (lo == NONE ? REAL_TABLE(fixed_down)[at] : inputs[lo + bin]) - nominal;
    }
}

// Writes the tables of one set of templates to `context.work`: those of the model with `inputs`
// (M).
FN void set_tables(const Context context, const GLOBAL real* inputs LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    for (uint i = LANE; i < layout->n_row_reals; i += N_LANES) context.work[i] = context.reals[i];
    BARRIER();
    for (uint i = LANE; i < layout->n_inputs; i += N_LANES) {
        const uint kind = INDEX(input_kind)[i];
        if (kind == NOMINAL_INPUT) set_yield(context, inputs, i);
        if (kind == HI_FACTOR_INPUT) set_factor(context.work + layout->normsys + 8u * INDEX(input_place)[i], inputs[i], inputs[i + 1u]);
    }
}

// Returns the index of the first invalid one of `inputs` (M), or M: yields must be finite, factors
// positive too.
FN uint first_refused(const Context context, const GLOBAL real* inputs LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    uint own = layout->n_inputs;
    for (uint i = LANE; i < layout->n_inputs && own == layout->n_inputs; i += N_LANES) {
        const bool is_factor = INDEX(input_kind)[i] >= HI_FACTOR_INPUT;
        if (!IS_FINITE(inputs[i]) || (is_factor && inputs[i] <= R(0.0))) own = i;
    }
    context.shared[LANE] = real(own);
    BARRIER();
    real least = context.shared[0];
    for (uint lane = 1u; lane < N_LANES; ++lane) least = MIN(least, context.shared[lane]);
    BARRIER();
    return uint(least);
}

// Returns the derivative of a normsys factor by its value at +1, or at -1.
FN real factor_by_end(const GLOBAL real* table, uint rule, bool is_hi, real alpha) {
    const real ln = is_hi ? table[0] : table[1];
    if (rule == NORMSYS_SMOOTH && ABS(alpha) < R(1.0)) {
        // Value, derivative and curvature at the end are x, x ln x and x ln^2 x of its value x.
        const real odd = is_hi ? R(1.0) : R(-1.0);
        Ends ends;
        ends.even_value = R(0.5);
        ends.even_derivative = R(0.5) * (ln + R(1.0));
        ends.even_curve = R(0.5) * ln * (ln + R(2.0));
        ends.odd_value = odd * ends.even_value;
        ends.odd_derivative = odd * ends.even_derivative;
        ends.odd_curve = odd * ends.even_curve;
        const Sextic a = sextic(ends);
        return alpha * (a.a1 + alpha * (a.a2 + alpha * (a.a3 + alpha * (a.a4 + alpha * (a.a5 + alpha * a.a6)))));
    }
    if (is_hi == SIGN_BIT(alpha)) return R(0.0);
    const real x = ABS(alpha);
    return x * EXP((x - R(1.0)) * ln);
}

// Returns the derivative of -ln L by a factor of a normsys: the weighted sum of the template's
// yields, relative to the factor.
FN real factor_derivative(const Context context, const GLOBAL real* params, uint input, uint first_bin, uint n_bins) {
    const uint cell = INDEX(template_cell)[INDEX(input_template)[input]];
    const uint e = INDEX(input_use)[input];
    Compensated total = nothing();
    for (uint inside = 0u; inside < n_bins; ++inside) total = plus(total, WORK(first)[first_bin + inside] * WORK(cell_yield)[cell + inside]);
    const GLOBAL real* table = REAL_TABLE(normsys) + 8u * INDEX(input_place)[input];
    const bool is_hi = INDEX(input_kind)[input] == HI_FACTOR_INPUT;
    const real by_end = factor_by_end(table, context.layout->normsys_rule, is_hi, params[INDEX(scalar_param)[e]]);
    return (total.sum + total.rest) / WORK(scalar_value)[e] * by_end;
}

// Returns the derivative of -ln L by an input, after `evaluate` at `params` (P).
FN real input_derivative(const Context context, const GLOBAL real* params, uint input) {
    const uint kind = INDEX(input_kind)[input];
    const uint t = INDEX(input_template)[input];
    const uint channel = INDEX(template_channel)[t];
    const uint first_bin = INDEX(channel_bin)[channel];
    if (kind >= HI_FACTOR_INPUT) return factor_derivative(context, params, input, first_bin, INDEX(channel_bin)[channel + 1u] - first_bin);
    const uint cell = INDEX(input_place)[input];
    const real weighted = WORK(first)[first_bin + cell - INDEX(template_cell)[t]] * WORK(cell_scale)[cell];
    const GLOBAL real* weights = WORK(weights);
    if (kind != NOMINAL_INPUT) {
        const GLOBAL real* weight = weights + 6u * INDEX(histosys_weight)[INDEX(input_use)[input]];
        return weighted * (kind == UP_INPUT ? weight[0] : weight[1]);
    }
    // Nominal yields count with 1 minus the weights of all shifts, because the templates at +-1 do
    // not change.
    real rest = R(1.0);
    for (uint h = INDEX(template_histosys)[t]; h < INDEX(template_histosys)[t + 1u]; ++h) {
        const GLOBAL real* weight = weights + 6u * INDEX(histosys_weight)[h];
        rest -= weight[0] + weight[1];
    }
    return weighted * rest;
}
