// Derivatives of -ln L at the point of the last `evaluate`: the Jacobian, the gradient, and the
// pieces that the Hessian is assembled from.
//
// A channel's Jacobian has a row for each of its bins and a column for each global parameter that
// acts on it. The pieces stay valid while trial points are evaluated, so that a rejected step only
// needs another assembly. No number is written by two lanes.

// Returns the contribution of one modifier to d lambda / d parameter in bin `inside` of its
// channel.
FN real entry_derivative(const Context context, const GLOBAL real* params, uint entry, uint inside) {
    const uint use = INDEX(entry_use)[entry];
    const uint cell = INDEX(template_cell)[INDEX(entry_template)[entry]] + inside;
    const uint kind = INDEX(entry_kind)[entry];
    if (kind == SCALAR_ENTRY) return WORK(cell_yield)[cell] * WORK(scalar_derivative)[use];
    if (kind == HISTOSYS_ENTRY) {
        const GLOBAL real* weight = WORK(weights) + 6u * INDEX(histosys_weight)[use];
        const uint at = INDEX(histosys_cell)[use] + inside;
        return WORK(cell_scale)[cell] * (weight[2] * REAL_TABLE(up)[at] + weight[3] * REAL_TABLE(down)[at]);
    }
    if (INDEX(entry_bin)[entry] != inside) return R(0.0);
    return WORK(cell_yield)[cell] / nonzero(params[INDEX(factor_param)[use] + inside]);
}

// Computes the Jacobian. PERF: every entry looks its template, kind and tables up again in every
// bin; a list of cells for each number of the Jacobian would not.
FN void fill_jacobian(const Context context, const GLOBAL real* params LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    for (uint channel = 0u; channel < layout->n_channels; ++channel) {
        const uint stride = INDEX(channel_stride)[channel];
        const uint first = INDEX(channel_column)[channel];
        const uint n_columns = INDEX(channel_column)[channel + 1u] - first;
        const uint n_bins = INDEX(channel_bin)[channel + 1u] - INDEX(channel_bin)[channel];
        GLOBAL real* rows = WORK(jacobian) + INDEX(channel_jacobian)[channel];
        for (uint item = LANE; item < n_bins * stride; item += N_LANES) {
            const uint inside = item / stride;
            const uint column = item - inside * stride;
            real sum = R(0.0);
            if (column < n_columns) {
                const uint end = INDEX(column_entry)[first + column + 1u];
                for (uint entry = INDEX(column_entry)[first + column]; entry < end; ++entry)
                    sum += entry_derivative(context, params, entry, inside);
            }
            rows[item] = sum;
        }
    }
    // d lambda / d gamma of the local parameters.
    for (uint place = LANE; place < layout->n_local; place += N_LANES) {
        const uint bin = INDEX(local_bin)[place];
        const uint inside = bin - INDEX(channel_bin)[INDEX(bin_channel)[bin]];
        real sum = R(0.0);
        for (uint i = INDEX(local_entry)[place]; i < INDEX(local_entry)[place + 1u]; ++i)
            sum += WORK(cell_yield)[INDEX(template_cell)[INDEX(local_template)[i]] + inside];
        WORK(local_derivative)[place] = sum / nonzero(params[INDEX(local_param)[place]]);
    }
}

// Computes the gradient (P), and the diagonals of the constraint terms' curvature and of the
// Gauss-Newton matrix (both P).
FN void fill_gradient(const Context context, const GLOBAL real* params LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    for (uint position = LANE; position < layout->n_params; position += N_LANES) {
        real derivative = R(0.0), curve = R(0.0);
        uint param;
        if (position < layout->n_global) {
            param = INDEX(global_param)[position];
            for (uint i = INDEX(position_column)[position]; i < INDEX(position_column)[position + 1u]; ++i) {
                const uint channel = INDEX(use_channel)[i];
                const uint stride = INDEX(channel_stride)[channel];
                const uint first_bin = INDEX(channel_bin)[channel];
                const uint n_bins = INDEX(channel_bin)[channel + 1u] - first_bin;
                const GLOBAL real* column = WORK(jacobian) + INDEX(channel_jacobian)[channel] + INDEX(use_column)[i];
                for (uint inside = 0u; inside < n_bins; ++inside) {
                    const real j = column[inside * stride];
                    derivative += j * WORK(first)[first_bin + inside];
                    curve += j * j * WORK(second)[first_bin + inside];
                }
            }
        } else {
            const uint place = position - layout->n_global;
            param = INDEX(local_param)[place];
            const uint bin = INDEX(local_bin)[place];
            const real j = WORK(local_derivative)[place];
            derivative = j * WORK(first)[bin];
            curve = j * j * WORK(second)[bin];
        }
        real constraint = R(0.0);
        const uint term = INDEX(param_term)[param];
        if (term != NONE) {
            const Jet jet = constraint_term(INDEX(term_is_poisson)[term], REAL_TABLE(term_scale)[term], context.aux[term], params[param]);
            derivative += jet.first;
            constraint = jet.second;
        }
        WORK(gradient)[param] = derivative;
        WORK(constraint)[param] = constraint;
        WORK(diagonal)[param] = curve + constraint;
    }
    for (uint bin = LANE; bin < layout->n_bins; bin += N_LANES) WORK(row_weight)[bin] = WORK(second)[bin];
}

// Computes the sums over bins that the exact Hessian needs: of weighted yields for each template,
// of weighted derivatives and curvatures for each histosys.
FN void fill_sums(const Context context LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    const GLOBAL real* first = WORK(first);
    for (uint i = LANE; i < layout->n_templates + layout->n_histosys; i += N_LANES) {
        const bool is_template = i < layout->n_templates;
        const uint h = i - layout->n_templates;
        const uint t = is_template ? i : INDEX(histosys_template)[h];
        const uint channel = INDEX(template_channel)[t];
        const uint first_bin = INDEX(channel_bin)[channel];
        const uint n_bins = INDEX(channel_bin)[channel + 1u] - first_bin;
        const uint cell = INDEX(template_cell)[t];
        if (is_template) {
            real sum = R(0.0);
            for (uint inside = 0u; inside < n_bins; ++inside) sum += first[first_bin + inside] * WORK(cell_yield)[cell + inside];
            WORK(template_sum)[t] = sum;
        } else {
            real up = R(0.0), down = R(0.0);
            for (uint inside = 0u; inside < n_bins; ++inside) {
                const real weight = first[first_bin + inside] * WORK(cell_scale)[cell + inside];
                up += weight * REAL_TABLE(up)[INDEX(histosys_cell)[h] + inside];
                down += weight * REAL_TABLE(down)[INDEX(histosys_cell)[h] + inside];
            }
            const GLOBAL real* weights = WORK(weights) + 6u * INDEX(histosys_weight)[h];
            WORK(histosys_derivative)[h] = weights[2] * up + weights[3] * down;
            WORK(histosys_curve)[h] = weights[4] * up + weights[5] * down;
        }
    }
    BARRIER();
}

// Returns the part of d lambda / d column that comes from template `t`, which has the per-bin
// factor of an entry: the derivative with respect to that factor adds it.
FN real restricted_derivative(const Context context, const GLOBAL real* params, uint column, uint last_factor, uint t, uint inside) {
    real sum = R(0.0);
    for (uint entry = INDEX(column_entry)[column]; entry < INDEX(column_entry)[column + 1u]; ++entry) {
        // Of two per-bin factors only the later one counts their product.
        if (INDEX(entry_kind)[entry] == FACTOR_ENTRY && column >= last_factor) continue;
        if (INDEX(entry_template)[entry] == t) sum += entry_derivative(context, params, entry, inside);
    }
    return sum;
}

// Computes the pairs of the templates of `channel`, and their additions to the diagonal.
FN void fill_template_pairs(const Context context, uint channel LANES_PARAM) {
    const uint stride = INDEX(channel_stride)[channel];
    const uint first = INDEX(channel_column)[channel];
    const uint n_columns = INDEX(channel_column)[channel + 1u] - first;
    const uint first_template = INDEX(channel_template)[channel];
    const uint n_templates = INDEX(channel_template)[channel + 1u] - first_template;
    GLOBAL real* pairs = WORK(pairs) + INDEX(channel_pairs)[channel];
    for (uint column = LANE; column < stride; column += N_LANES) {
        for (uint row = 0u; row < 2u * n_templates; ++row) pairs[row * stride + column] = R(0.0);
        if (column >= n_columns) continue;
        // Entries are ordered by template; these are sums over earlier entries of the same
        // template.
        real diagonal = R(0.0), derivatives = R(0.0), shifts = R(0.0);
        uint last = NONE;
        for (uint entry = INDEX(column_entry)[first + column]; entry < INDEX(column_entry)[first + column + 1u]; ++entry) {
            const uint use = INDEX(entry_use)[entry];
            const uint t = INDEX(entry_template)[entry];
            if (t != last) derivatives = shifts = R(0.0);
            last = t;
            GLOBAL real* a = pairs + 2u * (t - first_template) * stride + column;
            if (INDEX(entry_kind)[entry] == SCALAR_ENTRY) {
                const real u = WORK(scalar_derivative)[use];
                const real sum = WORK(template_sum)[t];
                a[0] += u;
                a[stride] += R(0.5) * sum * u;
                diagonal += sum * WORK(scalar_curve)[use] + R(2.0) * u * (sum * derivatives + shifts);
                derivatives += u;
            } else if (INDEX(entry_kind)[entry] == HISTOSYS_ENTRY) {
                const real d = WORK(histosys_derivative)[use];
                a[stride] += d;
                diagonal += WORK(histosys_curve)[use] + R(2.0) * derivatives * d;
                shifts += d;
            }
        }
        WORK(column_diagonal)[first + column] = diagonal;
    }
}

// Returns an element of the second row of the pair of the per-bin factor of column `own` of
// `channel`.
FN real factor_pair(const Context context, const GLOBAL real* params, uint channel, uint own, uint column) {
    const uint first = INDEX(channel_column)[channel];
    real sum = R(0.0);
    for (uint entry = INDEX(column_entry)[first + own]; entry < INDEX(column_entry)[first + own + 1u]; ++entry) {
        const uint inside = INDEX(entry_bin)[entry];
        const real gamma = nonzero(params[INDEX(factor_param)[INDEX(entry_use)[entry]] + inside]);
        const real derivative = restricted_derivative(context, params, first + column, first + own, INDEX(entry_template)[entry], inside);
        sum += WORK(first)[INDEX(channel_bin)[channel] + inside] * derivative / gamma;
    }
    return sum;
}

// Computes the pairs of the per-bin factors that `channel` shares with others.
FN void fill_factor_pairs(const Context context, const GLOBAL real* params, uint channel LANES_PARAM) {
    const uint stride = INDEX(channel_stride)[channel];
    const uint n_columns = INDEX(channel_column)[channel + 1u] - INDEX(channel_column)[channel];
    const uint n_templates = INDEX(channel_template)[channel + 1u] - INDEX(channel_template)[channel];
    GLOBAL real* pairs = WORK(pairs) + INDEX(channel_pairs)[channel] + 2u * n_templates * stride;
    const uint first_factor = INDEX(channel_factor)[channel];
    const uint n_factors = INDEX(channel_factor)[channel + 1u] - first_factor;
    for (uint item = LANE; item < n_factors * stride; item += N_LANES) {
        const uint row = item / stride;
        const uint column = item - row * stride;
        const uint own = INDEX(factor_column)[first_factor + row];
        pairs[2u * row * stride + column] = column == own ? R(1.0) : R(0.0);
        pairs[(2u * row + 1u) * stride + column] = column < n_columns ? factor_pair(context, params, channel, own, column) : R(0.0);
    }
}

// Computes what the exact Hessian adds to the Gauss-Newton matrix between global parameters: pairs
// of rows (a, v) over a channel's columns, whose symmetric products a v' + v a' are added off the
// diagonal, and additions to the diagonal, where the products of a factor of zero would cancel with
// its curvature, as both are divided by a tiny number twice. A template with weighted yield Y,
// logarithmic derivatives u and weighted shifts d has a = u and v = Y u / 2 + d; a per-bin factor
// shared between channels has a = its unit vector.
FN void fill_pairs(const Context context, const GLOBAL real* params LANES_PARAM) {
    for (uint channel = 0u; channel < context.layout->n_channels; ++channel) {
        fill_template_pairs(context, channel LANES_ARG);
        fill_factor_pairs(context, params, channel LANES_ARG);
    }
}

// Computes the rows of the local parameters: coupling to the columns of their channel, and the
// blocks of the parameters of one bin without the constraint terms (lower triangle, row by row).
FN void fill_locals(const Context context, const GLOBAL real* params, bool exact LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    for (uint bin = 0u; bin < layout->n_bins; ++bin) {
        const uint first_local = INDEX(bin_local)[bin];
        const uint n_slots = INDEX(bin_local)[bin + 1u] - first_local;
        if (n_slots == 0u) continue;
        const uint channel = INDEX(bin_channel)[bin];
        const uint inside = bin - INDEX(channel_bin)[channel];
        const uint stride = INDEX(channel_stride)[channel];
        const uint first = INDEX(channel_column)[channel];
        const uint n_columns = INDEX(channel_column)[channel + 1u] - first;
        const uint first_template = INDEX(channel_template)[channel];
        const uint n_templates = INDEX(channel_template)[channel + 1u] - first_template;
        const GLOBAL real* jacobian = WORK(jacobian) + INDEX(channel_jacobian)[channel] + inside * stride;
        const real weight = WORK(first)[bin];
        for (uint item = LANE; item < n_slots * stride; item += N_LANES) {
            const uint slot = item / stride;
            const uint column = item - slot * stride;
            real value = WORK(second)[bin] * WORK(local_derivative)[first_local + slot] * jacobian[column];
            if (exact && column < n_columns) {
                const GLOBAL uint* mask = INDEX(slot_mask) + INDEX(channel_mask)[channel] + slot * n_templates;
                real restricted = R(0.0);
                for (uint entry = INDEX(column_entry)[first + column]; entry < INDEX(column_entry)[first + column + 1u]; ++entry)
                    if (mask[INDEX(entry_template)[entry] - first_template] != 0u)
                        restricted += entry_derivative(context, params, entry, inside);
                value += weight * restricted / nonzero(params[INDEX(local_param)[first_local + slot]]);
            }
            WORK(coupling)[INDEX(local_coupling)[first_local] + item] = value;
        }
        for (uint item = LANE; item < n_slots * n_slots; item += N_LANES) {
            const uint i = item / n_slots;
            const uint j = item - i * n_slots;
            real value = WORK(second)[bin] * WORK(local_derivative)[first_local + i] * WORK(local_derivative)[first_local + j];
            if (exact && i != j) {
                const GLOBAL uint* mask = INDEX(slot_mask) + INDEX(channel_mask)[channel];
                real both = R(0.0);
                for (uint t = 0u; t < n_templates; ++t)
                    if (mask[i * n_templates + t] != 0u && mask[j * n_templates + t] != 0u)
                        both += WORK(cell_yield)[INDEX(template_cell)[first_template + t] + inside];
                const real gammas = nonzero(params[INDEX(local_param)[first_local + i]]) * nonzero(params[INDEX(local_param)[first_local + j]]);
                value += weight * both / gammas;
            }
            WORK(blocks)[INDEX(bin_block)[bin] + item] = value;
        }
    }
}

// Computes everything that an assembly of the Hessian needs at the point of the last `evaluate`,
// for the exact Hessian or for the Gauss-Newton matrix.
FN void differentiate(const Context context, const GLOBAL real* params, bool exact LANES_PARAM) {
    fill_jacobian(context, params LANES_ARG);
    BARRIER();
    fill_gradient(context, params LANES_ARG);
    WHERE (exact) {
        fill_sums(context LANES_ARG);
        fill_pairs(context, params LANES_ARG);
    }
    fill_locals(context, params, exact LANES_ARG);
    BARRIER();
}
