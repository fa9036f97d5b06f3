// Expected yields at a point, and -ln L without its constants. lambda_b = sum over templates of
// (nominal + shifts) * K * product of per-bin factors; K is the product of a template's scalar
// factors.

// Returns x, or a tiny number for zero, by which derivatives can be divided. Sums of such terms
// alone count as zero.
FN real nonzero(real x) {
    return x == R(0.0) ? TINY : x;
}

// Computes scalar factors with their logarithmic derivatives and relative curvatures, histosys
// weights, and K of every template.
FN void prepare(const Context context, const GLOBAL real* params LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    GLOBAL real* value = WORK(scalar_value);
    GLOBAL real* derivative = WORK(scalar_derivative);
    GLOBAL real* curve = WORK(scalar_curve);
    for (uint e = LANE; e < layout->n_scalars; e += N_LANES) {
        const real x = params[INDEX(scalar_param)[e]];
        const uint normsys = INDEX(scalar_normsys)[e];
        Jet factor;
        factor.value = x;
        factor.first = R(1.0);
        factor.second = R(0.0);
        if (normsys != NONE) factor = normsys_factor(REAL_TABLE(normsys) + 8u * normsys, layout->normsys_rule, x);
        factor.value = nonzero(factor.value);
        value[e] = factor.value;
        derivative[e] = factor.first / factor.value;
        curve[e] = factor.second / factor.value;
    }
    GLOBAL real* weights = WORK(weights);
    for (uint i = LANE; i < layout->n_weights; i += N_LANES) {
        const real x = params[INDEX(weight_param)[i]];
        const Jet up = histosys_weight(layout->histosys_rule, R(1.0), x);
        const Jet down = histosys_weight(layout->histosys_rule, R(-1.0), x);
        weights[6u * i] = up.value;
        weights[6u * i + 1u] = down.value;
        weights[6u * i + 2u] = up.first;
        weights[6u * i + 3u] = down.first;
        weights[6u * i + 4u] = up.second;
        weights[6u * i + 5u] = down.second;
    }
    BARRIER();
    GLOBAL real* scale = WORK(template_scale);
    for (uint t = LANE; t < layout->n_templates; t += N_LANES) {
        real product = R(1.0);
        for (uint e = INDEX(template_scalar)[t]; e < INDEX(template_scalar)[t + 1u]; ++e) product *= value[e];
        scale[t] = product;
    }
    BARRIER();
}

// Computes for every cell (a bin of a template) its yield, and K times its per-bin factors.
FN void fill_cells(const Context context, const GLOBAL real* params LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    const GLOBAL real* weights = WORK(weights);
    GLOBAL real* yields = WORK(cell_yield);
    GLOBAL real* scales = WORK(cell_scale);
    for (uint cell = LANE; cell < layout->n_cells; cell += N_LANES) {
        const uint t = INDEX(cell_template)[cell];
        const uint bin = cell - INDEX(template_cell)[t];
        real shifted = REAL_TABLE(nominal)[cell];
        for (uint h = INDEX(template_histosys)[t]; h < INDEX(template_histosys)[t + 1u]; ++h) {
            const GLOBAL real* weight = weights + 6u * INDEX(histosys_weight)[h];
            const uint at = INDEX(histosys_cell)[h] + bin;
            shifted += weight[0] * REAL_TABLE(up)[at] + weight[1] * REAL_TABLE(down)[at];
        }
        real factor = WORK(template_scale)[t];
        for (uint f = INDEX(template_factor)[t]; f < INDEX(template_factor)[t + 1u]; ++f)
            factor *= nonzero(params[INDEX(factor_param)[f] + bin]);
        scales[cell] = factor;
        yields[cell] = shifted * factor;
    }
    BARRIER();
}

// Returns lambda of bin `bin` of the model.
FN real expected(const Context context, uint bin) {
    const uint channel = INDEX(bin_channel)[bin];
    const uint inside = bin - INDEX(channel_bin)[channel];
    real lambda = R(0.0);
    for (uint t = INDEX(channel_template)[channel]; t < INDEX(channel_template)[channel + 1u]; ++t)
        lambda += WORK(cell_yield)[INDEX(template_cell)[t] + inside];
    return ABS(lambda) < SQRT(TINY) ? R(0.0) : lambda;
}

// Returns -ln L at `params` (P) without the constants that the data alone determine: +infinity
// outside the domain. Keeps cells and the derivatives of the bins' terms for `differentiate`.
FN real evaluate(const Context context, const GLOBAL real* params LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    prepare(context, params LANES_ARG);
    fill_cells(context, params LANES_ARG);
    Compensated own = nothing();
    for (uint bin = LANE; bin < layout->n_bins; bin += N_LANES) {
        const real lambda = expected(context, bin);
        own = plus(own, half_deviance(context.counts[bin], lambda));
        const Jet term = poisson_derivatives(context.counts[bin], lambda);
        WORK(first)[bin] = term.first;
        WORK(second)[bin] = term.second;
    }
    for (uint k = LANE; k < layout->n_terms; k += N_LANES) {
        const real theta = params[INDEX(term_param)[k]];
        own = plus(own, constraint_term(INDEX(term_is_poisson)[k], REAL_TABLE(term_scale)[k], context.aux[k], theta).value);
    }
    const real total = block_sum(context, own LANES_ARG);
    return IS_FINITE(total) ? total : INF;
}
