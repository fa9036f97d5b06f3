// A whole fit by one block: damped Newton steps inside the box, Gauss-Newton from afar and the exact Hessian near the minimum.
//
// The iteration is that of ns_inference::minimize, but for bounds: a step that leaves the box is cut off there, and the parameter is held in the
// next step if the slope still leads outwards. What does not arrive says so, and is left to the CPU.

#define CONVERGED 0u
#define ITERATION_LIMIT 1u
#define STALLED 2u
#define SADDLE 3u
#define NOT_FINITE 4u

#define RESULT_NLL 0u
#define RESULT_EDM 1u
#define RESULT_STATUS 2u
#define RESULT_ITERATIONS 3u
#define RESULT_VARIANCE 4u
#define RESULT_SIZE 8u

#define EXACT_BELOW R(4.0)
// A step from nearer than this, with the exact Hessian, is the last one: its square is below what a double can tell.
#define LAST_BELOW SQRT(EPSILON)
#define LEAST_DAMPING (R(1e7) * EPSILON)
#define STEP_FOUND 0u
#define STEP_INDEFINITE 1u
#define STEP_UNSETTLED 2u
// The active set is found in a few rounds, or with more damping.
#define ROUNDS 8u
#define MAX_DAMPING R(1e12)
// A matrix that needs no more damping than this is singular to rounding, and not indefinite.
#define MOST_SINGULAR (R(100.0) * LEAST_DAMPING)

// The box: lower and upper ends, what is held fixed, and what has a kink at zero (each P).
struct Box {
    const GLOBAL real* lower;
    const GLOBAL real* upper;
    const GLOBAL real* fixed;
    const GLOBAL real* kinked;
};

FN Box box_of(const GLOBAL real* domain, uint n_params, uint fixed_offset) {
    Box box;
    box.lower = domain;
    box.upper = domain + n_params;
    box.kinked = domain + 2u * n_params;
    box.fixed = domain + 3u * n_params + fixed_offset;
    return box;
}

FN bool is_kinked(const Box box, uint i) {
    return box.kinked[i] != R(0.0) && box.fixed[i] == R(0.0) && box.lower[i] < R(0.0) && box.upper[i] > R(0.0);
}

// The ends of the part of the box in which no kink is crossed from x.
FN real lower_end(const Box box, uint i, real x) {
    return is_kinked(box, i) && !SIGN_BIT(x) ? R(0.0) : box.lower[i];
}

FN real upper_end(const Box box, uint i, real x) {
    return is_kinked(box, i) && SIGN_BIT(x) ? -R(0.0) : box.upper[i];
}

// Holds what is fixed and what is at an end of the box towards which the slope leads; sets the scale of the damping.
FN void hold(const Context context, const Box box LANES_PARAM) {
    const GLOBAL real* x = WORK(point);
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        const real slope = WORK(gradient)[i];
        const bool is_fixed = box.fixed[i] != R(0.0);
        const bool at_lower = x[i] <= lower_end(box, i, x[i]) && slope > R(0.0);
        const bool at_upper = x[i] >= upper_end(box, i, x[i]) && slope < R(0.0);
        WORK(held)[i] = is_fixed || at_lower || at_upper ? R(1.0) : R(0.0);
        WORK(side)[i] = is_fixed ? R(0.0) : at_lower ? R(-1.0) : at_upper ? R(1.0) : R(0.0);
        WORK(displaced)[i] = R(0.0);
        WORK(rhs)[i] = -slope;
        const real range = box.upper[i] - box.lower[i];
        const real least = IS_FINITE(range) && range > R(0.0) ? R(1.0) / (range * range) : R(1e-12);
        WORK(scale)[i] = MAX(WORK(diagonal)[i], least);
    }
    BARRIER();
}

// Adds the steps of parameters that were put on an end of the box, and holds those whose step leaves it. How many there are.
FN real hold_violators(const Context context, const Box box LANES_PARAM) {
    const GLOBAL real* x = WORK(point);
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        if (WORK(held)[i] != R(0.0)) {
            WORK(step)[i] = WORK(displaced)[i];
            continue;
        }
        const real to_lower = lower_end(box, i, x[i]) - x[i];
        const real to_upper = upper_end(box, i, x[i]) - x[i];
        const real step = WORK(step)[i];
        if (step >= to_lower && step <= to_upper) continue;
        WORK(held)[i] = R(1.0);
        WORK(side)[i] = step < to_lower ? R(-2.0) : R(2.0);
        WORK(displaced)[i] = step < to_lower ? to_lower : to_upper;
        own = plus(own, R(1.0));
    }
    return block_sum(context, own LANES_ARG);
}

// Releases held parameters that the quadratic model would rather have inside; after `multiply`. How many there are.
FN real release_held(const Context context, real damping LANES_PARAM) {
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        if (WORK(side)[i] == R(0.0)) continue;
        if (ABS(WORK(side)[i]) == R(2.0)) {
            // Free in this round still.
            WORK(side)[i] *= R(0.5);
            continue;
        }
        const real multiplier = WORK(gradient)[i] + WORK(product)[i] + damping * WORK(scale)[i] * WORK(step)[i];
        if (multiplier * WORK(side)[i] <= R(0.0)) continue;
        WORK(held)[i] = R(0.0);
        WORK(side)[i] = R(0.0);
        WORK(displaced)[i] = R(0.0);
        own = plus(own, R(1.0));
    }
    return block_sum(context, own LANES_ARG);
}

FN bool any_at_end(const Context context LANES_PARAM) {
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES)
        if (WORK(side)[i] != R(0.0)) own = plus(own, R(1.0));
    return block_sum(context, own LANES_ARG) != R(0.0);
}

// The minimum of the quadratic model inside the box, by a primal-dual active set (Hintermueller, Ito and Kunisch, SIAM J. Optim. 13 (2002) 865):
// what leaves the box is put on its end, what would rather be inside is released, until nothing changes.
FN uint bounded_step(const Context context, const Box box, real damping, bool exact LANES_PARAM) {
    for (uint round = 0u; round < ROUNDS; ++round) {
        if (!newton_step(context, damping, exact LANES_ARG)) return STEP_INDEFINITE;
        const real n_new = hold_violators(context, box LANES_ARG);
        if (!any_at_end(context LANES_ARG)) return STEP_FOUND;
        multiply(context, WORK(step), exact LANES_ARG);
        const real n_released = release_held(context, damping LANES_ARG);
        if (n_new == R(0.0) && n_released == R(0.0)) return STEP_FOUND;
        multiply(context, WORK(displaced), exact LANES_ARG);
        for (uint i = LANE; i < context.layout->n_params; i += N_LANES) WORK(rhs)[i] = -WORK(gradient)[i] - WORK(product)[i];
        BARRIER();
    }
    return STEP_UNSETTLED;
}

// Sets the trial point to x + p, inside the box whatever the rounding. The decrease that the undamped quadratic model promises there.
FN real try_step(const Context context, const Box box, bool exact LANES_PARAM) {
    const GLOBAL real* x = WORK(point);
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        const real wanted = x[i] + (WORK(held)[i] != R(0.0) ? WORK(displaced)[i] : WORK(step)[i]);
        real trial = MIN(MAX(wanted, lower_end(box, i, x[i])), upper_end(box, i, x[i]));
        if (box.fixed[i] != R(0.0)) trial = x[i];
        if (trial == R(0.0) && is_kinked(box, i)) trial = COPYSIGN(R(0.0), x[i]);
        WORK(trial)[i] = trial;
        WORK(step)[i] = trial - x[i];
    }
    BARRIER();
    multiply(context, WORK(step), exact LANES_ARG);
    Compensated gain = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES)
        gain = plus(gain, WORK(step)[i] * (WORK(gradient)[i] + R(0.5) * WORK(product)[i]));
    return -block_sum(context, gain LANES_ARG);
}

FN void copy_params(const Context context, const GLOBAL real* from, GLOBAL real* to LANES_PARAM) {
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) to[i] = from[i];
    BARRIER();
}

// A parameter on its kink whose own side leads uphill goes to the other side if that leads downhill. The derivatives are those of the point that is kept.
FN void settle_kinks(const Context context, const Box box, bool exact LANES_PARAM) {
    GLOBAL real* x = WORK(point);
    GLOBAL real* trial = WORK(trial);
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        const real side = SIGN_BIT(x[i]) ? R(-1.0) : R(1.0);
        const bool flips = is_kinked(box, i) && x[i] == R(0.0) && WORK(gradient)[i] * side > R(0.0);
        trial[i] = flips ? -x[i] : x[i];
        if (flips) own = plus(own, R(1.0));
    }
    const real n_flipped = block_sum(context, own LANES_ARG);
    if (n_flipped == R(0.0)) return;
    evaluate(context, trial LANES_ARG);
    differentiate(context, trial, exact LANES_ARG);
    own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        if (SIGN_BIT(trial[i]) == SIGN_BIT(x[i])) continue;
        const real side = SIGN_BIT(trial[i]) ? R(-1.0) : R(1.0);
        if (WORK(gradient)[i] * side < R(0.0)) {
            x[i] = trial[i];
            own = plus(own, R(1.0));
        }
    }
    if (block_sum(context, own LANES_ARG) == n_flipped) return;
    evaluate(context, x LANES_ARG);
    differentiate(context, x, exact LANES_ARG);
}

// The variance of one parameter at the end of a fit: an element of the inverse Hessian over what is not held; NaN where there is none.
FN real variance_of(const Context context, const Box box, uint param LANES_PARAM) {
    evaluate(context, WORK(point) LANES_ARG);
    differentiate(context, WORK(point), true LANES_ARG);
    hold(context, box LANES_ARG);
    const bool is_held = WORK(held)[param] != R(0.0);
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) WORK(rhs)[i] = i == param ? R(1.0) : R(0.0);
    BARRIER();
    if (is_held || !newton_step(context, R(0.0), true LANES_ARG)) return INF - INF;
    return WORK(step)[param];
}

// Fits one data set from `params` (P), and leaves the minimum there.
FN void fit_one(const Context context, const Box box, uint max_iterations, uint variance_param, GLOBAL real* params, GLOBAL real* result LANES_PARAM) {
    GLOBAL real* x = WORK(point);
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES)
        x[i] = box.fixed[i] != R(0.0) ? params[i] : MIN(MAX(params[i], box.lower[i]), box.upper[i]);
    BARRIER();
    real value = evaluate(context, x LANES_ARG);
    real edm = INF, damping = R(0.0), exact_below = EXACT_BELOW, undamped_below = R(1e-4);
    uint status = IS_FINITE(value) ? ITERATION_LIMIT : NOT_FINITE;
    uint iterations = 0u;
    bool exact = false, has_pieces = false, is_singular = false;
    while (status == ITERATION_LIMIT && iterations < max_iterations) {
        ++iterations;
        if (!has_pieces) {
            differentiate(context, x, exact LANES_ARG);
            settle_kinks(context, box, exact LANES_ARG);
            has_pieces = true;
        }
        hold(context, box LANES_ARG);
        const real used = exact ? damping : MAX(damping, LEAST_DAMPING);
        const uint found = bounded_step(context, box, used, exact LANES_ARG);
        if (found == STEP_UNSETTLED) {
            damping = MAX(R(8.0) * damping, R(1e-2));
            if (damping > MAX_DAMPING) status = STALLED;
            continue;
        }
        if (found == STEP_INDEFINITE) {
            if (exact && damping == R(0.0)) {
                // Singular to rounding, perhaps: a trifle helps there.
                is_singular = true;
                damping = LEAST_DAMPING;
            } else if (exact) {
                // Indefinite so far from the minimum: back to the matrix that never is.
                exact_below *= R(0.1);
                exact = false;
                has_pieces = false;
                damping = R(0.0);
                if (exact_below < R(1e-6)) status = SADDLE;
                evaluate(context, x LANES_ARG);
            } else {
                damping = MAX(R(10.0) * damping, LEAST_DAMPING);
                if (damping > MAX_DAMPING) status = STALLED;
            }
            continue;
        }
        const real promised = try_step(context, box, exact LANES_ARG);
        edm = ABS(promised);
        const bool is_undamped = damping == R(0.0) || (is_singular && damping <= MOST_SINGULAR);
        const bool is_last = exact && is_undamped && edm <= LAST_BELOW;
        const real trial_value = evaluate(context, WORK(trial) LANES_ARG);
        const real noise = R(100.0) * EPSILON * MAX(R(1.0), ABS(value));
        const real ratio = (value - trial_value) / promised;
        const bool is_noise = promised < noise;
        const bool gains = trial_value < value && ratio > R(1e-4);
        if (IS_FINITE(trial_value) && (gains || (is_noise && trial_value <= value + noise))) {
            copy_params(context, WORK(trial), x LANES_ARG);
            value = trial_value;
            exact = edm < exact_below;
            has_pieces = false;
            if (is_last) status = CONVERGED;
            if (ratio > R(0.75) || is_noise) {
                damping = damping * R(0.1) < undamped_below ? R(0.0) : damping * R(0.1);
            } else if (ratio < R(0.25)) {
                damping = MAX(R(3.0) * damping, R(1e-3));
            }
        } else if (is_noise) {
            status = exact && is_undamped && edm <= LAST_BELOW ? CONVERGED : STALLED;
        } else {
            if (damping == R(0.0)) undamped_below = MAX(R(1e-3) * undamped_below, EPSILON);
            damping = MAX(R(8.0) * damping, R(1e-2));
            if (damping > MAX_DAMPING) status = STALLED;
        }
    }
    copy_params(context, x, params LANES_ARG);
    real variance = INF - INF;
    if (status == CONVERGED && variance_param != NONE) variance = variance_of(context, box, variance_param LANES_ARG);
    if (LANE == 0u) {
        result[RESULT_NLL] = value;
        result[RESULT_EDM] = edm;
        result[RESULT_STATUS] = real(status);
        result[RESULT_ITERATIONS] = real(iterations);
        result[RESULT_VARIANCE] = variance;
    }
    BARRIER();
}
