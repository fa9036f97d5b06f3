// One damped Newton step: local parameters are eliminated bin by bin, what remains is factorised by
// Cholesky in panels.
//
// With the Hessian (A C'; C E), E block-diagonal with factors E = L L' and Z = L^-1 C, the matrix
// of the global parameters is A - Z'Z. The right-hand side is carried along as its last row, so
// that the factorisation solves the first triangle too. Parameters that are fixed or at a bound are
// left out.

// Returns true if the active set leaves the parameter free.
FN bool is_free(const Context context, uint param) {
    return WORK(bound_status)[param] == real(BOUND_FREE);
}

// Returns the diagonal that constraint term and damping add to a parameter.
FN real damped(const Context context, uint param, real damping) {
    return WORK(constraint)[param] + damping * WORK(scale)[param];
}

// Returns the right-hand side of a parameter, zero for one that is not free.
FN real right_hand_side(const Context context, uint param) {
    return is_free(context, param) ? WORK(rhs)[param] : R(0.0);
}

// Returns the product of one row of a channel, which has one number per column, with `x` (P).
FN real row_product(const Context context, uint channel, const GLOBAL real* row, const GLOBAL real* x) {
    const uint first = INDEX(channel_column)[channel];
    const uint n_columns = INDEX(channel_column)[channel + 1u] - first;
    real sum = R(0.0);
    for (uint column = 0u; column < n_columns; ++column) sum += row[column] * x[INDEX(global_param)[INDEX(column_position)[first + column]]];
    return sum;
}

// Returns the number of pairs of rows that the exact Hessian has in a channel.
FN uint n_pairs_of(const Context context, uint channel) {
    const uint n_templates = INDEX(channel_template)[channel + 1u] - INDEX(channel_template)[channel];
    return n_templates + INDEX(channel_factor)[channel + 1u] - INDEX(channel_factor)[channel];
}

// Returns the contribution of one use of a global position to the Hessian times `x`.
FN real column_product(const Context context, uint channel, uint column, real own, const GLOBAL real* x, bool exact) {
    const uint stride = INDEX(channel_stride)[channel];
    const uint first_bin = INDEX(channel_bin)[channel];
    const uint n_bins = INDEX(channel_bin)[channel + 1u] - first_bin;
    const GLOBAL real* dots = WORK(dots) + INDEX(channel_dots)[channel];
    const GLOBAL real* rows = WORK(jacobian) + INDEX(channel_jacobian)[channel] + column;
    real sum = R(0.0);
    for (uint bin = 0u; bin < n_bins; ++bin) sum += WORK(row_weight)[first_bin + bin] * rows[bin * stride] * dots[bin];
    const uint first_local = INDEX(bin_local)[first_bin];
    const uint end_local = INDEX(bin_local)[first_bin + n_bins];
    for (uint place = first_local; place < end_local; ++place)
        sum += WORK(coupling)[INDEX(local_coupling)[place] + column] * x[INDEX(local_param)[place]];
    if (!exact) return sum;
    dots += n_bins;
    rows = WORK(pairs) + INDEX(channel_pairs)[channel] + column;
    const uint n_pairs = n_pairs_of(context, channel);
    for (uint pair = 0u; pair < n_pairs; ++pair) {
        const real a = rows[2u * pair * stride], v = rows[(2u * pair + 1u) * stride];
        sum += a * (dots[2u * pair + 1u] - v * own) + v * (dots[2u * pair] - a * own);
    }
    return sum + own * WORK(column_diagonal)[INDEX(channel_column)[channel] + column];
}

// Writes the undamped Hessian times `x` (P) to `product` (P).
FN void multiply(const Context context, const GLOBAL real* x, bool exact LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    for (uint channel = 0u; channel < layout->n_channels; ++channel) {
        const uint n_bins = INDEX(channel_bin)[channel + 1u] - INDEX(channel_bin)[channel];
        const uint stride = INDEX(channel_stride)[channel];
        const uint n_rows = n_bins + (exact ? 2u * n_pairs_of(context, channel) : 0u);
        for (uint row = LANE; row < n_rows; row += N_LANES) {
            const GLOBAL real* jacobian = WORK(jacobian) + INDEX(channel_jacobian)[channel] + row * stride;
            const GLOBAL real* pairs = WORK(pairs) + INDEX(channel_pairs)[channel] + (row - n_bins) * stride;
            WORK(dots)[INDEX(channel_dots)[channel] + row] = row_product(context, channel, row < n_bins ? jacobian : pairs, x);
        }
    }
    BARRIER();
    for (uint position = LANE; position < layout->n_params; position += N_LANES) {
        real sum;
        uint param;
        if (position < layout->n_global) {
            param = INDEX(global_param)[position];
            sum = WORK(constraint)[param] * x[param];
            for (uint i = INDEX(position_column)[position]; i < INDEX(position_column)[position + 1u]; ++i)
                sum += column_product(context, INDEX(use_channel)[i], INDEX(use_column)[i], x[param], x, exact);
        } else {
            const uint place = position - layout->n_global;
            const uint bin = INDEX(local_bin)[place];
            const uint first = INDEX(bin_local)[bin];
            const uint m = INDEX(bin_local)[bin + 1u] - first;
            const GLOBAL real* block = WORK(blocks) + INDEX(bin_block)[bin] + (place - first) * m;
            param = INDEX(local_param)[place];
            sum = WORK(constraint)[param] * x[param] + row_product(context, INDEX(bin_channel)[bin], WORK(coupling) + INDEX(local_coupling)[place], x);
            for (uint other = 0u; other < m; ++other) sum += block[other] * x[INDEX(local_param)[first + other]];
        }
        WORK(product)[param] = sum;
    }
    BARRIER();
}

// Returns the row of entry `index` of a lower triangle that is counted row by row.
FN uint triangle_row(uint index) {
    uint row = uint((SQRT(R(8.0) * real(index) + R(1.0)) - R(1.0)) * R(0.5));
    while ((row + 1u) * (row + 2u) / 2u <= index) ++row;
    while (row * (row + 1u) / 2u > index) --row;
    return row;
}

// Computes the Cholesky factors of the blocks of local parameters, and L^-1 times their right-hand
// sides. Returns true if all blocks are positive definite.
FN bool factor_locals(const Context context, real damping LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    Compensated n_failed = nothing();
    for (uint bin = LANE; bin < layout->n_bins; bin += N_LANES) {
        const uint first = INDEX(bin_local)[bin];
        const uint m = INDEX(bin_local)[bin + 1u] - first;
        const GLOBAL real* source = WORK(blocks) + INDEX(bin_block)[bin];
        GLOBAL real* factor = WORK(block_factors) + INDEX(bin_block)[bin];
        for (uint i = 0u; i < m; ++i) {
            const uint param = INDEX(local_param)[first + i];
            const bool is_fixed = !is_free(context, param);
            real rhs = right_hand_side(context, param);
            for (uint j = 0u; j <= i; ++j) {
                const bool is_other_fixed = !is_free(context, INDEX(local_param)[first + j]);
                real value = is_fixed || is_other_fixed ? R(0.0) : source[i * m + j];
                if (i == j) value = is_fixed ? R(1.0) : value + damped(context, param, damping);
                for (uint k = 0u; k < j; ++k) value -= factor[i * m + k] * factor[j * m + k];
                if (i != j) {
                    factor[i * m + j] = value / factor[j * m + j];
                } else {
                    if (!(value > R(0.0)) || !IS_FINITE(value)) {
                        n_failed = plus(n_failed, R(1.0));
                        value = R(1.0);
                    }
                    factor[i * m + i] = SQRT(value);
                }
            }
            for (uint k = 0u; k < i; ++k) rhs -= factor[i * m + k] * WORK(local_rhs)[first + k];
            WORK(local_rhs)[first + i] = rhs / factor[i * m + i];
        }
    }
    return block_sum(context, n_failed LANES_ARG) == R(0.0);
}

// Computes Z = L^-1 C of every bin with local parameters.
FN void eliminate_locals(const Context context LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    for (uint bin = 0u; bin < layout->n_bins; ++bin) {
        const uint first = INDEX(bin_local)[bin];
        const uint m = INDEX(bin_local)[bin + 1u] - first;
        if (m == 0u) continue;
        const uint stride = INDEX(channel_stride)[INDEX(bin_channel)[bin]];
        const GLOBAL real* source = WORK(coupling) + INDEX(local_coupling)[first];
        GLOBAL real* out = WORK(eliminated) + INDEX(local_coupling)[first];
        const GLOBAL real* factor = WORK(block_factors) + INDEX(bin_block)[bin];
        for (uint column = LANE; column < stride; column += N_LANES) {
            for (uint i = 0u; i < m; ++i) {
                const bool is_fixed = !is_free(context, INDEX(local_param)[first + i]);
                real value = is_fixed ? R(0.0) : source[i * stride + column];
                for (uint k = 0u; k < i; ++k) value -= factor[i * m + k] * out[k * stride + column];
                out[i * stride + column] = value / factor[i * m + i];
            }
        }
    }
    BARRIER();
}

// Adds to `sum` the products of one tile of rows i with one tile of rows j.
FN void add_products(PRIVATE real* sum, const GLOBAL real* i, const GLOBAL real* j, real weight) {
    for (uint a = 0u; a < TILE; ++a) {
        const real left = weight * i[a];
        for (uint b = 0u; b < TILE; ++b) sum[a * TILE + b] += left * j[b];
    }
}

// Adds the part of one channel to A - Z'Z, for free parameters only. PERF: a tile reads 8 numbers
// for 32 operations, so that L1 is the limit where doubles are fast; tiles of 8 x 8 would halve
// that and need 128 registers for the sums. Rows of pairs, two for each template, outnumber rows of
// bins: a channel with many more templates than columns would be faster with its Hessian summed bin
// by bin.
FN void add_channel(const Context context, uint channel, bool exact LANES_PARAM) {
    const uint stride = INDEX(channel_stride)[channel];
    const uint first_column = INDEX(channel_column)[channel];
    const uint n_columns = INDEX(channel_column)[channel + 1u] - first_column;
    const uint first_bin = INDEX(channel_bin)[channel];
    const uint end_bin = INDEX(channel_bin)[channel + 1u];
    const uint first_local = INDEX(bin_local)[first_bin];
    const uint n_locals = INDEX(bin_local)[end_bin] - first_local;
    const uint n_pairs = exact ? n_pairs_of(context, channel) : 0u;
    const uint n_tiles = stride / TILE;
    const uint matrix_stride = context.layout->matrix_stride;
    for (uint tile = LANE; tile < n_tiles * (n_tiles + 1u) / 2u; tile += N_LANES) {
        const uint row = triangle_row(tile);
        const uint i = TILE * row;
        const uint j = TILE * (tile - row * (row + 1u) / 2u);
        real sum[TILE * TILE];
        for (uint k = 0u; k < TILE * TILE; ++k) sum[k] = R(0.0);
        const GLOBAL real* rows = WORK(jacobian) + INDEX(channel_jacobian)[channel];
        for (uint bin = first_bin; bin < end_bin; ++bin, rows += stride) add_products(sum, rows + i, rows + j, WORK(row_weight)[bin]);
        rows = WORK(eliminated) + (n_locals == 0u ? 0u : INDEX(local_coupling)[first_local]);
        for (uint place = 0u; place < n_locals; ++place, rows += stride) add_products(sum, rows + i, rows + j, R(-1.0));
        rows = WORK(pairs) + INDEX(channel_pairs)[channel];
        for (uint pair = 0u; pair < n_pairs; ++pair, rows += 2u * stride) {
            add_products(sum, rows + i, rows + stride + j, R(1.0));
            add_products(sum, rows + stride + i, rows + j, R(1.0));
        }
        for (uint a = 0u; a < TILE; ++a) {
            if (i + a >= n_columns) continue;
            const uint position = INDEX(column_position)[first_column + i + a];
            if (!is_free(context, INDEX(global_param)[position])) continue;
            for (uint b = 0u; b < TILE; ++b) {
                if (j + b > i + a) continue;
                const uint other = INDEX(column_position)[first_column + j + b];
                if (is_free(context, INDEX(global_param)[other])) WORK(matrix)[position * matrix_stride + other] += sum[a * TILE + b];
            }
        }
    }
    BARRIER();
}

// Assembles the matrix of the global parameters, with the right-hand side as its last row.
FN void assemble_globals(const Context context, real damping, bool exact LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    const uint n = layout->n_global;
    const uint stride = layout->matrix_stride;
    for (uint item = LANE; item < n * stride; item += N_LANES) WORK(matrix)[item] = R(0.0);
    BARRIER();
    for (uint channel = 0u; channel < layout->n_channels; ++channel) add_channel(context, channel, exact LANES_ARG);
    for (uint position = LANE; position < n; position += N_LANES) {
        const uint param = INDEX(global_param)[position];
        const bool is_fixed = !is_free(context, param);
        // Summed anew, since pairs of rows are for what is off the diagonal.
        real diagonal = WORK(diagonal)[param] + damping * WORK(scale)[param];
        real rhs = right_hand_side(context, param);
        for (uint i = INDEX(position_column)[position]; i < INDEX(position_column)[position + 1u]; ++i) {
            const uint channel = INDEX(use_channel)[i];
            const uint column = INDEX(use_column)[i];
            const uint channel_stride = INDEX(channel_stride)[channel];
            if (exact) diagonal += WORK(column_diagonal)[INDEX(channel_column)[channel] + column];
            const uint first = INDEX(bin_local)[INDEX(channel_bin)[channel]];
            const uint end = INDEX(bin_local)[INDEX(channel_bin)[channel + 1u]];
            for (uint place = first; place < end; ++place) {
                const real z = WORK(eliminated)[INDEX(local_coupling)[first] + (place - first) * channel_stride + column];
                diagonal -= z * z;
                rhs -= z * WORK(local_rhs)[place];
            }
        }
        WORK(matrix)[position * stride + position] = is_fixed ? R(1.0) : diagonal;
        WORK(matrix)[n * stride + position] = is_fixed ? R(0.0) : rhs;
    }
    BARRIER();
}

// Factorises the diagonal block of a panel in shared memory. Returns true to every lane if it is
// positive definite.
//
// Columns are divided by the roots of their pivots at the end: no column is read and written
// between two barriers.
FN bool factor_diagonal(SHARED real* block, uint size LANES_PARAM) {
    bool is_positive = true;
    for (uint k = 0u; k < size && is_positive; ++k) {
        const real pivot = block[k * PANEL + k];
        is_positive = pivot > R(0.0) && IS_FINITE(pivot);
        const real weight = R(1.0) / pivot;
        for (uint item = LANE; item < PANEL * PANEL; item += N_LANES) {
            const uint i = item / PANEL;
            const uint j = item % PANEL;
            if (j > k && j <= i && i < size) block[i * PANEL + j] -= block[i * PANEL + k] * (block[j * PANEL + k] * weight);
        }
        BARRIER();
    }
    for (uint item = LANE; item < PANEL * PANEL; item += N_LANES) {
        const uint i = item / PANEL;
        const uint j = item % PANEL;
        if (j < i && i < size) block[i * PANEL + j] /= SQRT(block[j * PANEL + j]);
    }
    BARRIER();
    for (uint i = LANE; i < size; i += N_LANES) block[i * PANEL + i] = SQRT(block[i * PANEL + i]);
    BARRIER();
    return is_positive;
}

// Replaces the rows below a panel's diagonal block by their part of the factor, and keeps a
// transposed copy.
FN void solve_panel(const Context context, const SHARED real* block, uint start, uint size LANES_PARAM) {
    const uint stride = context.layout->matrix_stride;
    const uint n_rows = context.layout->n_global + 1u;
    const uint panel_stride = context.layout->panel_stride;
    for (uint i = start + size + LANE; i < n_rows; i += N_LANES) {
        GLOBAL real* row = WORK(matrix) + i * stride + start;
        real values[PANEL];
        UNROLLED for (uint k = 0u; k < PANEL; ++k) {
            values[k] = R(0.0);
            if (k < size) {
                real value = row[k];
                UNROLLED for (uint l = 0u; l < k; ++l) value -= block[k * PANEL + l] * values[l];
                value = value / block[k * PANEL + k];
                values[k] = value;
                row[k] = value;
                WORK(panel)[k * panel_stride + i] = value;
            }
        }
    }
    BARRIER();
}

// Subtracts the panel's products from the rows and columns after it. They are added up with their
// own sign: of sums with a factor of -1, Intel's compiler for processors (2026.2) changed the sign
// of 8 terms of 16 in single precision.
FN void update_rest(const Context context, uint start, uint size LANES_PARAM) {
    const uint stride = context.layout->matrix_stride;
    const uint panel_stride = context.layout->panel_stride;
    const uint n = context.layout->n_global;
    const uint first = start + size;
    const uint n_tiles = first < n ? (n + 1u - first + TILE - 1u) / TILE : 0u;
    for (uint tile = LANE; tile < n_tiles * (n_tiles + 1u) / 2u; tile += N_LANES) {
        const uint tile_row = triangle_row(tile);
        const uint i = first + TILE * tile_row;
        const uint j = first + TILE * (tile - tile_row * (tile_row + 1u) / 2u);
        real sum[TILE * TILE];
        for (uint k = 0u; k < TILE * TILE; ++k) sum[k] = R(0.0);
        for (uint k = 0u; k < size; ++k) {
            const GLOBAL real* column = WORK(panel) + k * panel_stride;
            add_products(sum, column + i, column + j, R(1.0));
        }
        for (uint a = 0u; a < TILE; ++a)
            for (uint b = 0u; b < TILE; ++b)
                if (i + a <= n && j + b < n && j + b <= i + a) WORK(matrix)[(i + a) * stride + j + b] -= sum[a * TILE + b];
    }
    BARRIER();
}

// Factorises the matrix in place, whose last row then solves the first triangle. Returns true if it
// is positive definite.
FN bool factor_globals(const Context context LANES_PARAM) {
    const uint n = context.layout->n_global;
    const uint stride = context.layout->matrix_stride;
    SHARED real* block = context.shared + 2u * N_LANES;
    bool is_positive = true;
    for (uint start = 0u; start < n && is_positive; start += PANEL) {
        const uint size = n - start < PANEL ? n - start : PANEL;
        for (uint item = LANE; item < PANEL * PANEL; item += N_LANES) {
            const uint i = item / PANEL;
            const uint j = item % PANEL;
            if (i < size && j <= i) block[item] = WORK(matrix)[(start + i) * stride + start + j];
        }
        BARRIER();
        is_positive = factor_diagonal(block, size LANES_ARG);
        WHERE (is_positive) {
            for (uint item = LANE; item < PANEL * PANEL; item += N_LANES) {
                const uint i = item / PANEL;
                const uint j = item % PANEL;
                if (i < size && j <= i) WORK(matrix)[(start + i) * stride + start + j] = block[item];
            }
            solve_panel(context, block, start, size LANES_ARG);
            update_rest(context, start, size LANES_ARG);
        }
    }
    return is_positive;
}

// Solves the second triangle for the step of the global parameters, in panels from the last one on.
// PERF: the triangle is a chain of as many dependent divisions as there are rows; inverting the
// diagonal blocks while they are in shared memory would leave products only.
FN void solve_globals(const Context context LANES_PARAM) {
    const uint n = context.layout->n_global;
    const uint stride = context.layout->matrix_stride;
    GLOBAL real* rhs = WORK(matrix) + n * stride;
    for (uint end = n; end > 0u;) {
        const uint size = end % PANEL == 0u ? PANEL : end % PANEL;
        const uint start = end - size;
        // Every lane solves the triangle of the panel redundantly.
        real values[PANEL];
        UNROLLED for (uint back = 0u; back < PANEL; ++back) {
            const uint k = PANEL - 1u - back;
            values[k] = R(0.0);
            if (k < size) {
                real value = rhs[start + k];
                UNROLLED for (uint l = k + 1u; l < PANEL; ++l)
                    if (l < size) value -= WORK(matrix)[(start + l) * stride + start + k] * values[l];
                values[k] = value / WORK(matrix)[(start + k) * stride + start + k];
            }
        }
        BARRIER();
        for (uint i = LANE; i < end; i += N_LANES) {
            real value = rhs[i];
            UNROLLED for (uint k = 0u; k < PANEL; ++k) {
                if (k < size && i < start) value -= WORK(matrix)[(start + k) * stride + i] * values[k];
                if (k < size && i == start + k) value = values[k];
            }
            rhs[i] = value;
        }
        BARRIER();
        end = start;
    }
}

// Writes the step of all parameters (P), zero unless free, from the solution for the global ones.
FN void spread_step(const Context context LANES_PARAM) {
    CONSTANT Layout* layout = context.layout;
    const GLOBAL real* solution = WORK(matrix) + layout->n_global * layout->matrix_stride;
    for (uint position = LANE; position < layout->n_global; position += N_LANES)
        WORK(step)[INDEX(global_param)[position]] = solution[position];
    for (uint bin = LANE; bin < layout->n_bins; bin += N_LANES) {
        const uint first = INDEX(bin_local)[bin];
        const uint m = INDEX(bin_local)[bin + 1u] - first;
        if (m == 0u) continue;
        const uint channel = INDEX(bin_channel)[bin];
        const uint stride = INDEX(channel_stride)[channel];
        const uint first_column = INDEX(channel_column)[channel];
        const uint n_columns = INDEX(channel_column)[channel + 1u] - first_column;
        const GLOBAL real* rows = WORK(eliminated) + INDEX(local_coupling)[first];
        const GLOBAL real* factor = WORK(block_factors) + INDEX(bin_block)[bin];
        for (uint back = 0u; back < m; ++back) {
            const uint i = m - 1u - back;
            const uint param = INDEX(local_param)[first + i];
            real value = WORK(local_rhs)[first + i];
            for (uint column = 0u; column < n_columns; ++column)
                value -= rows[i * stride + column] * solution[INDEX(column_position)[first_column + column]];
            for (uint k = i + 1u; k < m; ++k) value -= factor[k * m + i] * WORK(step)[INDEX(local_param)[first + k]];
            WORK(step)[param] = is_free(context, param) ? value / factor[i * m + i] : R(0.0);
        }
    }
    BARRIER();
}

// Computes the step (H + damping * scale)^-1 rhs of the free parameters. Returns true if the matrix
// is positive definite.
FN bool newton_step(const Context context, real damping, bool exact LANES_PARAM) {
    bool is_positive = factor_locals(context, damping LANES_ARG);
    WHERE (is_positive) {
        eliminate_locals(context LANES_ARG);
        assemble_globals(context, damping, exact LANES_ARG);
        is_positive = factor_globals(context LANES_ARG);
        WHERE (is_positive) {
            solve_globals(context LANES_ARG);
            spread_step(context LANES_ARG);
        }
    }
    return is_positive;
}
