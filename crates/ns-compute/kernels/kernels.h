// The kernels: each block takes every N_BLOCKS-th item of a batch, and works in its own part of
// `work`.
//
// An item is a data set with a point. Items that share their data or their point have a step of 0.
// `reals` has the tables of every set of templates: the numbers of templates can be replaced
// (`set_templates`), everything else is the same for all sets.

FN Context context_of(CONSTANT Layout* layout, const GLOBAL uint* indices, const GLOBAL real* reals, GLOBAL real* work, SHARED real* shared LANES_PARAM) {
    Context context;
    context.layout = layout;
    context.indices = indices;
    context.reals = reals;
    context.work = work + BLOCK * layout->workspace;
    context.shared = shared;
    context.counts = reals;
    context.aux = reals;
    return context;
}

FN void take_item(PRIVATE Context* context, CONSTANT Task* task, const GLOBAL real* reals, const GLOBAL real* counts, const GLOBAL real* aux, uint item) {
    context->reals = reals + (task->first_item + item) % task->n_rows * context->layout->n_row_reals;
    context->counts = counts + item * task->counts_step;
    context->aux = aux + item * task->aux_step;
}

// Writes -ln L of every item, without constants.
KERNEL(nll)(CONSTANTS(Layout, layout, 0), CONSTANTS(Task, task, 1), IN(uint, indices, 2), IN(real, reals, 3), IN(real, counts, 4), IN(real, aux, 5),
            IN(real, params, 6), OUT(real, values, 7), OUT(real, work, 8) LANES) {
    ENTER(shared);
    Context context = context_of(layout, indices, reals, work, shared LANES_ARG);
    for (uint item = BLOCK; item < task->n_items; item += N_BLOCKS) {
        take_item(&context, task, reals, counts, aux, item);
        const real value = evaluate(context, params + item * layout->n_params LANES_ARG);
        if (LANE == 0u) values[item] = value;
    }
}

// Writes -ln L of every item, without constants, and its gradient (P), which is zero outside the
// domain.
KERNEL(nll_and_gradient)(CONSTANTS(Layout, layout, 0), CONSTANTS(Task, task, 1), IN(uint, indices, 2), IN(real, reals, 3), IN(real, counts, 4),
                         IN(real, aux, 5), IN(real, params, 6), OUT(real, values, 7), OUT(real, gradients, 8), OUT(real, work, 9) LANES) {
    ENTER(shared);
    Context context = context_of(layout, indices, reals, work, shared LANES_ARG);
    for (uint item = BLOCK; item < task->n_items; item += N_BLOCKS) {
        take_item(&context, task, reals, counts, aux, item);
        const GLOBAL real* x = params + item * layout->n_params;
        const real value = evaluate(context, x LANES_ARG);
        fill_jacobian(context, x LANES_ARG);
        BARRIER();
        fill_gradient(context, x LANES_ARG);
        BARRIER();
        if (LANE == 0u) values[item] = value;
        for (uint i = LANE; i < layout->n_params; i += N_LANES)
            gradients[item * layout->n_params + i] = IS_FINITE(value) ? WORK(gradient)[i] : R(0.0);
        BARRIER();
    }
}

// Writes -ln L of every item with its constants, and its gradients by the parameters (P) and by the
// inputs (M), which are NaN outside the domain: zeros would look like a minimum.
KERNEL(nll_and_gradients)(CONSTANTS(Layout, layout, 0), CONSTANTS(Task, task, 1), IN(uint, indices, 2), IN(real, reals, 3), IN(real, counts, 4),
                          IN(real, aux, 5), IN(real, constants, 6), IN(real, params, 7), OUT(real, values, 8), OUT(real, gradients, 9),
                          OUT(real, by_inputs, 10), OUT(real, work, 11) LANES) {
    ENTER(shared);
    Context context = context_of(layout, indices, reals, work, shared LANES_ARG);
    for (uint item = BLOCK; item < task->n_items; item += N_BLOCKS) {
        take_item(&context, task, reals, counts, aux, item);
        const GLOBAL real* x = params + item * task->point_step;
        const real value = evaluate(context, x LANES_ARG);
        fill_jacobian(context, x LANES_ARG);
        BARRIER();
        fill_gradient(context, x LANES_ARG);
        BARRIER();
        const bool is_inside = IS_FINITE(value);
        if (LANE == 0u) values[item] = value + constants[0];
        for (uint i = LANE; i < layout->n_params; i += N_LANES)
            gradients[item * layout->n_params + i] = is_inside ? WORK(gradient)[i] : INF - INF;
        for (uint i = LANE; i < layout->n_inputs; i += N_LANES)
            by_inputs[item * layout->n_inputs + i] = is_inside ? input_derivative(context, x, i) : INF - INF;
        BARRIER();
    }
}

// Writes the tables of every set of templates, from its inputs (M) and the tables of the model, and
// the index of the first invalid input: M if all are valid.
KERNEL(set_templates)(CONSTANTS(Layout, layout, 0), CONSTANTS(Task, task, 1), IN(uint, indices, 2), IN(real, reals, 3), IN(real, inputs, 4),
                      OUT(real, tables, 5), OUT(real, verdicts, 6) LANES) {
    ENTER(shared);
    Context context;
    context.layout = layout;
    context.indices = indices;
    context.reals = context.counts = context.aux = reals;
    context.shared = shared;
    for (uint row = BLOCK; row < task->n_rows; row += N_BLOCKS) {
        context.work = tables + row * layout->n_row_reals;
        const GLOBAL real* own = inputs + row * layout->n_inputs;
        set_tables(context, own LANES_ARG);
        const uint refused = first_refused(context, own LANES_ARG);
        if (LANE == 0u) verdicts[row] = real(refused);
    }
}

// Writes one Newton step of every item from its point (P), with the exact Hessian or with the
// Gauss-Newton matrix: NaN if that is not positive definite.
KERNEL(newton)(CONSTANTS(Layout, layout, 0), CONSTANTS(Task, task, 1), IN(uint, indices, 2), IN(real, reals, 3), IN(real, counts, 4),
               IN(real, aux, 5), IN(real, domain, 6), IN(real, params, 7), OUT(real, steps, 8), OUT(real, work, 9) LANES) {
    ENTER(shared);
    Context context = context_of(layout, indices, reals, work, shared LANES_ARG);
    for (uint item = BLOCK; item < task->n_items; item += N_BLOCKS) {
        take_item(&context, task, reals, counts, aux, item);
        const Box box = box_of(domain, layout->n_params, item * task->fixed_step);
        copy_params(context, params + item * layout->n_params, WORK(point) LANES_ARG);
        const real value = evaluate(context, WORK(point) LANES_ARG);
        differentiate(context, WORK(point), task->exact != 0u LANES_ARG);
        set_bounds(context, box, NONE LANES_ARG);
        const bool done = newton_step(context, R(0.0), task->exact != 0u LANES_ARG) && IS_FINITE(value);
        for (uint i = LANE; i < layout->n_params; i += N_LANES) steps[item * layout->n_params + i] = done ? WORK(step)[i] : INF - INF;
        BARRIER();
    }
}

// Fits every item from its point (P), which the minimum replaces.
KERNEL(fit)(CONSTANTS(Layout, layout, 0), CONSTANTS(Task, task, 1), IN(uint, indices, 2), IN(real, reals, 3), IN(real, counts, 4), IN(real, aux, 5),
            IN(real, domain, 6), OUT(real, params, 7), OUT(real, results, 8), OUT(real, work, 9) LANES) {
    ENTER(shared);
    Context context = context_of(layout, indices, reals, work, shared LANES_ARG);
    for (uint item = BLOCK; item < task->n_items; item += N_BLOCKS) {
        take_item(&context, task, reals, counts, aux, item);
        const Box box = box_of(domain, layout->n_params, item * task->fixed_step);
        fit_one(context, box, task->max_iterations, task->variance_param, params + item * layout->n_params, results + item * RESULT_SIZE LANES_ARG);
    }
}
