// A whole fit by one block: damped Newton steps inside the box, Gauss-Newton from afar and the
// exact Hessian near the minimum.
//
// The algorithm is that of ns_inference::minimize with fewer cases: no steps with an old factor, a
// larger tolerance, and another least damping. Both find the same minimum by different paths. A fit
// that does not converge reports its status, and is left to the CPU.

#define EXACT_BELOW R(4.0)
// A step with the exact Hessian from a smaller distance is the last one: its square is far below
// the precision of the numbers, even in a curved valley.
#define LAST_BELOW (R(0.01) * SQRT(EPSILON))
// 1e-9 in double and 3e-5 in single precision: makes a matrix with a unit diagonal positive
// definite in spite of rounding.
#define LEAST_DAMPING (R(0.1) * SQRT(EPSILON))
#define STEP_FOUND 0u
// Found, with a parameter at a bound; the Hessian times the step is in `product`.
#define STEP_AT_BOUND 1u
#define STEP_INDEFINITE 2u
#define STEP_UNSETTLED 3u
// The active set is found in a few rounds, or with more damping.
#define ROUNDS 8u
#define MAX_DAMPING R(1e12)
// A matrix that needs at most this damping is singular up to rounding, and not indefinite.
#define MOST_SINGULAR (R(100.0) * LEAST_DAMPING)

// The box: lower and upper bounds, and flags of fixed parameters and of kinks at zero (each P).
STRUCT(Box) {
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

// Returns the lower bound of the part of the box that contains no kink between it and x.
FN real lower_end(const Box box, uint i, real x) {
    return is_kinked(box, i) && !SIGN_BIT(x) ? R(0.0) : box.lower[i];
}

// Returns the upper bound of that part.
FN real upper_end(const Box box, uint i, real x) {
    return is_kinked(box, i) && SIGN_BIT(x) ? -R(0.0) : box.upper[i];
}

// Starts the active set: fixed parameters, and those at a bound that the gradient pushes against.
// Sets the scale of the damping. The right-hand side is minus the gradient, or the unit vector of
// parameter `wanted` for a column of the inverse.
FN void set_bounds(const Context context, const Box box, uint wanted LANES_PARAM) {
    const GLOBAL real* x = WORK(point);
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        const real derivative = WORK(gradient)[i];
        const bool is_fixed = box.fixed[i] != R(0.0);
        const bool at_lower = x[i] <= lower_end(box, i, x[i]) && derivative > R(0.0);
        const bool at_upper = x[i] >= upper_end(box, i, x[i]) && derivative < R(0.0);
        WORK(bound_status)[i] = real(is_fixed ? BOUND_FIXED : at_lower ? BOUND_LOWER : at_upper ? BOUND_UPPER : BOUND_FREE);
        WORK(displaced)[i] = R(0.0);
        WORK(rhs)[i] = wanted == NONE ? -derivative : i == wanted ? R(1.0) : R(0.0);
        const real range = box.upper[i] - box.lower[i];
        const real least = IS_FINITE(range) && range > R(0.0) ? R(1.0) / (range * range) : R(1e-12);
        WORK(scale)[i] = MAX(WORK(diagonal)[i], least);
    }
    BARRIER();
}

// Adds the steps of parameters at a bound, and cuts at the bound the steps that leave the box.
// Returns the number of steps cut.
FN real fix_violators(const Context context, const Box box LANES_PARAM) {
    const GLOBAL real* x = WORK(point);
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        if (!is_free(context, i)) {
            WORK(step)[i] = WORK(displaced)[i];
            continue;
        }
        const real to_lower = lower_end(box, i, x[i]) - x[i];
        const real to_upper = upper_end(box, i, x[i]) - x[i];
        const real step = WORK(step)[i];
        if (step >= to_lower && step <= to_upper) continue;
        WORK(bound_status)[i] = real(step < to_lower ? BOUND_NEW_LOWER : BOUND_NEW_UPPER);
        WORK(displaced)[i] = step < to_lower ? to_lower : to_upper;
        own = plus(own, R(1.0));
    }
    return block_sum(context, own LANES_ARG);
}

// Releases parameters whose multiplier points into the box; after `multiply`. Returns their number.
FN real release_bounds(const Context context, real damping LANES_PARAM) {
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        const uint status = uint(WORK(bound_status)[i]);
        if (status < BOUND_LOWER) continue;
        if (status >= BOUND_NEW_LOWER) {
            // Its step was free in this round.
            WORK(bound_status)[i] = real(status == BOUND_NEW_LOWER ? BOUND_LOWER : BOUND_UPPER);
            continue;
        }
        const real multiplier = WORK(gradient)[i] + WORK(product)[i] + damping * WORK(scale)[i] * WORK(step)[i];
        if (multiplier * (status == BOUND_LOWER ? R(-1.0) : R(1.0)) <= R(0.0)) continue;
        WORK(bound_status)[i] = real(BOUND_FREE);
        WORK(displaced)[i] = R(0.0);
        own = plus(own, R(1.0));
    }
    return block_sum(context, own LANES_ARG);
}

// Returns true if any parameter is at a bound.
FN bool any_at_bound(const Context context LANES_PARAM) {
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES)
        if (WORK(bound_status)[i] >= real(BOUND_LOWER)) own = plus(own, R(1.0));
    return block_sum(context, own LANES_ARG) != R(0.0);
}

// Computes the minimum of the quadratic model inside the box by a primal-dual active set
// (Hintermueller, Ito and Kunisch, SIAM J. Optim. 13 (2002) 865): steps that leave the box are cut
// at the bound, and parameters whose multiplier points inside are released, until nothing changes.
// Returns a STEP_ number.
FN uint bounded_step(const Context context, const Box box, real damping, bool exact, bool is_unbounded LANES_PARAM) {
    uint found = STEP_UNSETTLED;
    for (uint round = 0u; round < ROUNDS && found == STEP_UNSETTLED; ++round) {
        if (!newton_step(context, damping, exact LANES_ARG)) {
            found = STEP_INDEFINITE;
        } else if (is_unbounded) {
            found = STEP_FOUND;
        }
        WHERE (found == STEP_UNSETTLED) {
            const real n_new = fix_violators(context, box LANES_ARG);
            if (!any_at_bound(context LANES_ARG)) found = STEP_FOUND;
            ROLLED for (uint pass = 0u; pass < 2u && found == STEP_UNSETTLED; ++pass) {
                multiply(context, pass == 0u ? WORK(step) : WORK(displaced), exact LANES_ARG);
                WHERE (pass == 0u) {
                    const real n_released = release_bounds(context, damping LANES_ARG);
                    if (n_new == R(0.0) && n_released == R(0.0)) found = STEP_AT_BOUND;
                }
            }
            WHERE (found == STEP_UNSETTLED) {
                for (uint i = LANE; i < context.layout->n_params; i += N_LANES) WORK(rhs)[i] = -WORK(gradient)[i] - WORK(product)[i];
                BARRIER();
            }
        }
    }
    return found;
}

// Sets the trial point to x + p, inside the box in spite of rounding. Returns the decrease that the
// undamped quadratic model predicts: if no parameter is at a bound, H p = -g - damping * scale * p.
FN real try_step(const Context context, const Box box, real damping, bool is_at_bound LANES_PARAM) {
    const GLOBAL real* x = WORK(point);
    Compensated gain = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        const real step = is_free(context, i) ? WORK(step)[i] : WORK(displaced)[i];
        const real wanted = x[i] + step;
        real trial = MIN(MAX(wanted, lower_end(box, i, x[i])), upper_end(box, i, x[i]));
        if (box.fixed[i] != R(0.0)) trial = x[i];
        if (trial == R(0.0) && is_kinked(box, i)) trial = COPYSIGN(R(0.0), x[i]);
        WORK(trial)[i] = trial;
        const real derivative = WORK(gradient)[i];
        const real product = is_at_bound ? WORK(product)[i] : -derivative - damping * WORK(scale)[i] * step;
        gain = plus(gain, step * (derivative + R(0.5) * product));
    }
    return -block_sum(context, gain LANES_ARG);
}

FN void copy_params(const Context context, const GLOBAL real* from, GLOBAL real* to LANES_PARAM) {
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) to[i] = from[i];
    BARRIER();
}

// Sets the trial point to x, with the parameters on a kink moved to its other side if the gradient
// on their own side points uphill. Returns their number.
FN real flip_kinks(const Context context, const Box box LANES_PARAM) {
    const GLOBAL real* x = WORK(point);
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        const real side = SIGN_BIT(x[i]) ? R(-1.0) : R(1.0);
        const bool flips = is_kinked(box, i) && x[i] == R(0.0) && WORK(gradient)[i] * side > R(0.0);
        WORK(trial)[i] = flips ? -x[i] : x[i];
        if (flips) own = plus(own, R(1.0));
    }
    return block_sum(context, own LANES_ARG);
}

// Keeps the moved parameters whose gradient at the trial point points downhill there. Returns their
// number.
FN real keep_flips(const Context context LANES_PARAM) {
    GLOBAL real* x = WORK(point);
    const GLOBAL real* trial = WORK(trial);
    Compensated own = nothing();
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES) {
        if (SIGN_BIT(trial[i]) == SIGN_BIT(x[i])) continue;
        const real side = SIGN_BIT(trial[i]) ? R(-1.0) : R(1.0);
        if (WORK(gradient)[i] * side < R(0.0)) {
            x[i] = trial[i];
            own = plus(own, R(1.0));
        }
    }
    return block_sum(context, own LANES_ARG);
}

// The point that the next round of a fit works at.
#define AT_POINT 0u   // the current point
#define AT_FLIPPED 1u // with some parameters on the other sides of their kinks
#define AT_SETTLED 2u // with the sides chosen
#define AT_TRIAL 3u   // the end of a step
#define AT_END 4u     // the minimum, for the variance

// The state of a fit; the same for every lane.
STRUCT(Progress) {
    real value, edm, damping;
    // Below this distance the exact Hessian is used; damping below that goes to zero at once.
    real exact_below, undamped_below;
    // The predicted decrease at the trial point; the number of kinks that are tried on their other
    // side.
    real promised, n_flipped;
    uint status, at, iterations;
    // Whether the exact Hessian is used; whether it is positive definite only with a little
    // damping; whether the derivatives belong to the point; whether the yields belong to another
    // point.
    bool exact, is_singular, has_pieces, is_stale;
};

// Updates the state after a matrix that gives no step.
FN void refuse_matrix(PRIVATE Progress* progress, bool is_unsettled) {
    if (is_unsettled) {
        progress->damping = MAX(R(8.0) * progress->damping, R(1e-2));
    } else if (progress->exact && progress->damping == R(0.0)) {
        // Perhaps singular up to rounding: little damping suffices then.
        progress->is_singular = true;
        progress->damping = LEAST_DAMPING;
    } else if (progress->exact) {
        // Indefinite far from the minimum: use the Gauss-Newton matrix, which never is.
        progress->exact_below *= R(0.1);
        progress->exact = false;
        progress->has_pieces = false;
        progress->damping = R(0.0);
        if (progress->exact_below < R(1e-6)) progress->status = SADDLE;
    } else {
        progress->damping = MAX(R(10.0) * progress->damping, LEAST_DAMPING);
    }
    if (progress->damping > MAX_DAMPING) progress->status = STALLED;
}

// Updates the state after a trial point with -ln L = `found`. Returns true if the point is
// accepted.
FN bool accept_trial(PRIVATE Progress* progress, real found, real promised) {
    const real value = progress->value, damping = progress->damping;
    progress->edm = ABS(promised);
    const bool is_undamped = damping == R(0.0) || (progress->is_singular && damping <= MOST_SINGULAR);
    const bool is_last = progress->exact && is_undamped && progress->edm <= LAST_BELOW;
    const real noise = R(100.0) * EPSILON * MAX(R(1.0), ABS(value));
    const real ratio = (value - found) / promised;
    const bool is_noise = promised < noise;
    const bool gains = found < value && ratio > R(1e-4);
    if (IS_FINITE(found) && (gains || (is_noise && found <= value + noise))) {
        progress->value = found;
        progress->exact = progress->edm < progress->exact_below;
        progress->has_pieces = false;
        if (is_last) progress->status = CONVERGED;
        if (ratio > R(0.75) || is_noise) {
            progress->damping = damping * R(0.1) < progress->undamped_below ? R(0.0) : damping * R(0.1);
        } else if (ratio < R(0.25)) {
            progress->damping = MAX(R(3.0) * damping, R(1e-3));
        }
        return true;
    }
    if (is_noise) {
        progress->status = is_last ? CONVERGED : STALLED;
        return false;
    }
    if (damping == R(0.0)) progress->undamped_below = MAX(R(1e-3) * progress->undamped_below, EPSILON);
    progress->damping = MAX(R(8.0) * damping, R(1e-2));
    if (progress->damping > MAX_DAMPING) progress->status = STALLED;
    return false;
}

// Starts at `params` (P), moved into the box.
FN Progress begin(const Context context, const Box box, const GLOBAL real* params LANES_PARAM) {
    for (uint i = LANE; i < context.layout->n_params; i += N_LANES)
        WORK(point)[i] = box.fixed[i] != R(0.0) ? params[i] : MIN(MAX(params[i], box.lower[i]), box.upper[i]);
    BARRIER();
    Progress progress;
    progress.value = progress.edm = INF;
    progress.damping = progress.promised = progress.n_flipped = R(0.0);
    progress.exact_below = EXACT_BELOW;
    progress.undamped_below = R(1e-4);
    progress.status = ITERATION_LIMIT;
    progress.at = AT_POINT;
    progress.iterations = 0u;
    progress.exact = progress.is_singular = progress.has_pieces = false;
    progress.is_stale = true;
    return progress;
}

// Evaluates -ln L at the point of the round, if it is not known; accepts or rejects a trial point.
FN void take_value(const Context context, PRIVATE Progress* progress LANES_PARAM) {
    const bool is_elsewhere = progress->at == AT_FLIPPED || progress->at == AT_TRIAL;
    WHERE (is_elsewhere || (progress->is_stale && !progress->has_pieces)) {
        const real found = evaluate(context, is_elsewhere ? WORK(trial) : WORK(point) LANES_ARG);
        progress->is_stale = is_elsewhere;
        if (progress->at == AT_POINT && progress->iterations == 0u) {
            progress->value = found;
            if (!IS_FINITE(found)) progress->status = NOT_FINITE;
        }
        bool is_accepted = false;
        if (progress->at == AT_TRIAL) {
            progress->at = AT_POINT;
            is_accepted = accept_trial(progress, found, progress->promised);
            progress->is_stale = !is_accepted;
        }
        WHERE (is_accepted) copy_params(context, WORK(trial), WORK(point) LANES_ARG);
    }
}

// Returns true if the fit has ended. If only the variance is left, moves to that round.
FN bool is_over(PRIVATE Progress* progress, uint max_iterations, uint variance_param) {
    if (progress->at == AT_END) return false;
    if (progress->status == ITERATION_LIMIT && progress->iterations != max_iterations) return false;
    if (progress->status != CONVERGED || variance_param == NONE) return true;
    progress->at = AT_END;
    progress->exact = true;
    progress->has_pieces = false;
    return false;
}

// Computes the derivatives, and chooses the sides of kinks by them. Returns false if another round
// must come before a step.
FN bool take_pieces(const Context context, const Box box, PRIVATE Progress* progress LANES_PARAM) {
    differentiate(context, progress->at == AT_FLIPPED ? WORK(trial) : WORK(point), progress->exact LANES_ARG);
    const uint at = progress->at;
    bool is_ready = true;
    WHERE (at == AT_POINT) {
        progress->n_flipped = flip_kinks(context, box LANES_ARG);
        is_ready = progress->n_flipped == R(0.0);
        if (!is_ready) progress->at = AT_FLIPPED;
    }
    WHERE (at == AT_FLIPPED) {
        progress->at = AT_SETTLED;
        progress->is_stale = keep_flips(context LANES_ARG) != progress->n_flipped;
        is_ready = !progress->is_stale;
    }
    if (is_ready && progress->at == AT_SETTLED) progress->at = AT_POINT;
    progress->has_pieces = is_ready;
    return is_ready;
}

// Takes a step to a trial point, or at the end solves for the column of the inverse with the
// variance. Returns true if that was the last step.
FN bool take_step(const Context context, const Box box, uint variance_param, PRIVATE Progress* progress, PRIVATE real* variance LANES_PARAM) {
    const bool is_end = progress->at == AT_END;
    if (!is_end) ++progress->iterations;
    set_bounds(context, box, is_end ? variance_param : NONE LANES_ARG);
    const real damping = is_end ? R(0.0) : progress->exact ? progress->damping : MAX(progress->damping, LEAST_DAMPING);
    const uint found = bounded_step(context, box, damping, progress->exact, is_end LANES_ARG);
    const bool is_refused = found == STEP_INDEFINITE || found == STEP_UNSETTLED;
    // Asked anew: keeping the answer would cost a register too many.
    if (progress->at == AT_END) {
        if (found == STEP_FOUND && is_free(context, variance_param)) *variance = WORK(step)[variance_param];
    } else if (is_refused) {
        refuse_matrix(progress, found == STEP_UNSETTLED);
    }
    WHERE (progress->at != AT_END && !is_refused) {
        progress->promised = try_step(context, box, damping, found == STEP_AT_BOUND LANES_ARG);
        progress->at = AT_TRIAL;
    }
    return progress->at == AT_END;
}

// Fits one data set from `params` (P), and writes the minimum there. A variance that does not exist
// is NaN.
//
// Every round uses the same single call of `evaluate`, of `differentiate` and of `bounded_step`:
// they are inlined, and a second call would be a second copy.
FN void fit_one(const Context context, const Box box, uint max_iterations, uint variance_param, GLOBAL real* params, GLOBAL real* result LANES_PARAM) {
    Progress progress = begin(context, box, params LANES_ARG);
    real variance = INF - INF;
    bool is_done = false;
    while (!is_done) {
        take_value(context, &progress LANES_ARG);
        is_done = is_over(&progress, max_iterations, variance_param);
        // The yields may be those of the trial point: then another round evaluates first.
        bool is_ready = !is_done && (progress.has_pieces || progress.at != AT_END || !progress.is_stale);
        WHERE (is_ready && !progress.has_pieces) is_ready = take_pieces(context, box, &progress LANES_ARG);
        WHERE (is_ready) is_done = take_step(context, box, variance_param, &progress, &variance LANES_ARG);
    }
    copy_params(context, WORK(point), params LANES_ARG);
    if (LANE == 0u) {
        result[RESULT_NLL] = progress.value;
        result[RESULT_EDM] = progress.edm;
        result[RESULT_STATUS] = real(progress.status);
        result[RESULT_ITERATIONS] = real(progress.iterations);
        result[RESULT_VARIANCE] = variance;
    }
    BARRIER();
}
