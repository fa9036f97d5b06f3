// The encoders' kernels: each finds what its block has to do, and does it.
//
// Tensors are strided; `views` has their axes (views.h), and a layout where the first element of
// each tensor is. Results are written without gaps, the last axis running fastest, unless a kernel
// says otherwise.

#define EACH_ELEMENT(i) for (uint i = BLOCK * N_LANES + LANE; i < layout->n; i += N_LANES * N_BLOCKS)
#define AT(tensor, i) (layout->tensor + place_of(views + layout->view, layout->n_axes, OF_##tensor, i))
#define OF_a 0u
#define OF_b 1u
#define OF_c 2u
#define OF_out 1u

// out (n) = f(a).
KERNEL(map_reals)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = function_of(layout->operation, a[AT(a, i)]);
}

// out (n) = a op b.
KERNEL(combine_reals)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), IN(real, b, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = arithmetic_of(layout->operation, a[AT(a, i)], b[AT(b, i)]);
}

// out (n): 1 where a is to b as the operation says, else 0.
KERNEL(compare_reals)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), IN(real, b, 3), OUT(int, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        const real x = a[AT(a, i)], y = b[AT(b, i)];
        const uint operation = layout->operation;
        bool holds = x <= y;
        if (operation == BINARY_EQUAL) holds = x == y;
        if (operation == BINARY_GREATER) holds = x > y;
        if (operation == BINARY_GREATER_OR_EQUAL) holds = x >= y;
        if (operation == BINARY_LESS) holds = x < y;
        out[i] = holds ? 1 : 0;
    }
}

// The same of integers, and what is made of truth values.
KERNEL(combine_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), IN(int, b, 3), OUT(int, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        const int x = a[AT(a, i)], y = b[AT(b, i)];
        const uint operation = layout->operation;
        int number = x <= y ? 1 : 0;
        if (operation == BINARY_EQUAL) number = x == y ? 1 : 0;
        if (operation == BINARY_GREATER) number = x > y ? 1 : 0;
        if (operation == BINARY_GREATER_OR_EQUAL) number = x >= y ? 1 : 0;
        if (operation == BINARY_LESS) number = x < y ? 1 : 0;
        if (operation == BINARY_AND) number = x != 0 && y != 0 ? 1 : 0;
        if (operation == BINARY_OR) number = x != 0 || y != 0 ? 1 : 0;
        if (operation == BINARY_XOR) number = (x != 0) != (y != 0) ? 1 : 0;
        if (operation == BINARY_MAX) number = MAX(x, y);
        if (operation == BINARY_MIN) number = MIN(x, y);
        out[i] = number;
    }
}

// out (n) = a op b of whole numbers; `check_ints` reports results of more than 32 bits.
KERNEL(compute_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), IN(int, b, 3), OUT(int, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = int_arithmetic_of(layout->operation, a[AT(a, i)], b[AT(b, i)]);
}

// out (n) = f(a) of whole numbers.
KERNEL(map_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), OUT(int, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = int_function_of(layout->operation, a[AT(a, i)]);
}

// out (n) = whether a is 0, or whether it is not.
KERNEL(truth_of_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), OUT(int, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = (a[AT(a, i)] == 0) == (layout->operation == TRUTH_IS_ZERO) ? 1 : 0;
}

// out (n) = whether a is not 0, or whether it is NaN.
KERNEL(truth_of_reals)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), OUT(int, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        const real x = a[AT(a, i)];
        const bool holds = layout->operation == TRUTH_IS_NAN ? !(x == x) : x != R(0.0);
        out[i] = holds ? 1 : 0;
    }
}

// out (n) = a.
KERNEL(reals_of_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = real(a[AT(a, i)]);
}

// out (n, 2) = a as pairs, which have all of its digits.
KERNEL(wide_of_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        const int x = a[AT(a, i)], lower = x % 65536;
        const Wide number = exact_sum(real(x - lower), real(lower));
        out[2u * i] = number.high;
        out[2u * i + 1u] = number.low;
    }
}

// out (n) = a where the condition c holds, and b elsewhere.
KERNEL(choose_reals)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), IN(real, b, 3), IN(int, c, 4), OUT(real, out, 5) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = c[AT(c, i)] != 0 ? a[AT(a, i)] : b[AT(b, i)];
}

KERNEL(choose_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), IN(int, b, 3), IN(int, c, 4), OUT(int, out, 5) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = c[AT(c, i)] != 0 ? a[AT(a, i)] : b[AT(b, i)];
}

// out (n) = a, not below b and not above c, as far as the layout asks for these.
KERNEL(clip_reals)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), IN(real, b, 3), IN(real, c, 4), OUT(real, out, 5) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        real number = a[AT(a, i)];
        if (layout->operation != CLIP_ABOVE) number = arithmetic_of(BINARY_MAX, number, b[AT(b, i)]);
        if (layout->operation != CLIP_BELOW) number = arithmetic_of(BINARY_MIN, number, c[AT(c, i)]);
        out[i] = number;
    }
}

// The elements of a to those of out, which is strided, too.
KERNEL(place_reals)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[AT(out, i)] = a[AT(a, i)];
}

KERNEL(place_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), OUT(int, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[AT(out, i)] = a[AT(a, i)];
}

// out (n) = one number.
KERNEL(fill_reals)(CONSTANTS(FillLayout, layout, 0), OUT(real, out, 1) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = layout->number;
}

KERNEL(fill_ints)(CONSTANTS(FillLayout, layout, 0), OUT(int, out, 1) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = int_of_bits(layout->integer);
}

// Writes whether any lane of the block has found something wrong, a number above 0, to *fault.
FN void report_fault(real n_wrong, GLOBAL uint* fault, SHARED real* shared LANES_PARAM) {
    for (uint mask = WARP / 2u; mask > 0u; mask /= 2u) n_wrong += SHUFFLE_XOR(n_wrong, mask);
    if (LANE % WARP == 0u) shared[LANE / WARP] = n_wrong;
    BARRIER();
    if (LANE == 0u) {
        real sum = R(0.0);
        for (uint warp = 0u; warp < N_LANES / WARP; ++warp) sum += shared[warp];
        *fault = sum > R(0.0) ? 1u : 0u;
    }
}

// faults (1 for each check) = whether an index is out of range; one block.
KERNEL(check_indices)(CONSTANTS(IndicesLayout, layout, 0), IN(uint, views, 1), IN(int, indices, 2), OUT(uint, faults, 3) LANES) {
    ENTER(shared);
    real n_wrong = R(0.0);
    for (uint i = LANE; i < layout->n; i += N_LANES) {
        const int index = indices[layout->indices + place_of(views + layout->view, layout->n_axes, 0u, i)];
        const int size = int_of_bits(layout->size);
        if (index < -size || index >= size) n_wrong = R(1.0);
    }
    report_fault(n_wrong, faults + layout->fault, shared LANES_ARG);
}

// faults (1 for each check) = whether a result of a op b has more than 32 bits; one block.
KERNEL(check_ints)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), IN(int, b, 3), OUT(uint, faults, 4) LANES) {
    ENTER(shared);
    real n_wrong = R(0.0);
    for (uint i = LANE; i < layout->n; i += N_LANES) {
        if (is_too_large(layout->operation, a[AT(a, i)], b[AT(b, i)])) n_wrong = R(1.0);
    }
    report_fault(n_wrong, faults + layout->out, shared LANES_ARG);
}

// out (lines, indices, slice): the slices of each line that the indices name, which may count from
// the end. An index out of range, which `check_indices` reports, is taken for another one.
KERNEL(gather_reals)(CONSTANTS(GatherLayout, layout, 0), IN(uint, views, 1), IN(int, indices, 2), IN(real, values, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = values[gathered_place(layout, views, indices, i)];
}

KERNEL(gather_ints)(CONSTANTS(GatherLayout, layout, 0), IN(uint, views, 1), IN(int, indices, 2), IN(int, values, 3), OUT(int, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = values[gathered_place(layout, views, indices, i)];
}

// out (n): an element of each line along an axis for every index, which may count from the end. Of
// indices out of range the same holds.
KERNEL(pick_reals)(CONSTANTS(PickLayout, layout, 0), IN(uint, views, 1), IN(int, indices, 2), IN(real, values, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = values[picked_place(layout, views, indices, i)];
}

KERNEL(pick_ints)(CONSTANTS(PickLayout, layout, 0), IN(uint, views, 1), IN(int, indices, 2), IN(int, values, 3), OUT(int, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = values[picked_place(layout, views, indices, i)];
}

// out (tuples, inner): the blocks that tuples of indices name.
KERNEL(points_of_reals)(CONSTANTS(PointsLayout, layout, 0), IN(uint, views, 1), IN(int, indices, 2), IN(real, values, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = values[pointed_place(layout, views, indices, i)];
}

KERNEL(points_of_ints)(CONSTANTS(PointsLayout, layout, 0), IN(uint, views, 1), IN(int, indices, 2), IN(int, values, 3), OUT(int, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = values[pointed_place(layout, views, indices, i)];
}

// out (n) = a on one side of the diagonals of matrices, and 0 on the other.
KERNEL(triangle_of_reals)(CONSTANTS(TriangleLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = is_in_triangle(layout, i) ? a[AT(a, i)] : R(0.0);
}

KERNEL(triangle_of_ints)(CONSTANTS(TriangleLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), OUT(int, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) out[i] = is_in_triangle(layout, i) ? a[AT(a, i)] : 0;
}

// out (outer, length, inner): sums of a along the middle axis up to each element, in the CPU's
// order: a lane has a whole line. PERF: a few long lines leave most lanes without work.
KERNEL(running_reals)(CONSTANTS(RunningLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(line) {
        real sum = R(0.0);
        for (uint step = 0u; step < layout->length; ++step) {
            const uint at = running_place(layout, line, step);
            const real next = sum + a[AT(a, at)];
            out[at] = layout->is_exclusive != 0u ? sum : next;
            sum = next;
        }
    }
}

// Of whole numbers; `check_ints` reports sums of more than 32 bits.
KERNEL(running_ints)(CONSTANTS(RunningLayout, layout, 0), IN(uint, views, 1), IN(int, a, 2), OUT(int, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(line) {
        int sum = 0;
        for (uint step = 0u; step < layout->length; ++step) {
            const uint at = running_place(layout, line, step);
            const int next = int_arithmetic_of(BINARY_ADD, sum, a[AT(a, at)]);
            out[at] = layout->is_exclusive != 0u ? sum : next;
            sum = next;
        }
    }
}

// out (outer, length, inner, 2): of numbers that are pairs, whose first element a view finds.
KERNEL(running_wide)(CONSTANTS(RunningLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(line) {
        Wide sum = wide_of(R(0.0), R(0.0));
        for (uint step = 0u; step < layout->length; ++step) {
            const uint at = running_place(layout, line, step);
            GLOBAL const real* x = a + AT(a, at);
            const Wide next = sum_of(sum, wide_of(x[0], x[1]));
            const Wide number = layout->is_exclusive != 0u ? sum : next;
            out[2u * at] = number.high;
            out[2u * at + 1u] = number.low;
            sum = next;
        }
    }
}

// Blocks of `inner` updates to out, each where its point says; no two points are the same. Others
// stay.
KERNEL(scatter_reals)(CONSTANTS(ScatterLayout, layout, 0), IN(uint, points, 1), IN(real, updates, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        const uint block = i / layout->inner, at = i % layout->inner;
        out[points[2u * block] + at] = updates[layout->updates + points[2u * block + 1u] + at];
    }
}

// out (n, 2) = f(a) of numbers that are pairs, whose first element a view finds.
KERNEL(map_wide)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        GLOBAL const real* x = a + AT(a, i);
        const Wide number = wide_function_of(layout->operation, wide_of(x[0], x[1]));
        out[2u * i] = number.high;
        out[2u * i + 1u] = number.low;
    }
}

// out (n, 2) = a op b of such numbers.
KERNEL(combine_wide)(CONSTANTS(ElementsLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), IN(real, b, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    EACH_ELEMENT(i) {
        GLOBAL const real* x = a + AT(a, i);
        GLOBAL const real* y = b + AT(b, i);
        const Wide number = wide_arithmetic_of(layout->operation, wide_of(x[0], x[1]), wide_of(y[0], y[1]));
        out[2u * i] = number.high;
        out[2u * i + 1u] = number.low;
    }
}

// out (n, 2) = sums of rows of such numbers; ROW_LANES lanes have a row.
KERNEL(sum_wide)(CONSTANTS(ReduceLayout, layout, 0), IN(uint, views, 1), IN(real, values, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    const uint row = BLOCK * (N_LANES / ROW_LANES) + LANE / ROW_LANES;
    const uint at = layout->values + place_of(views + layout->view, layout->n_axes, 0u, MIN(row, layout->n - 1u));
    Wide sum = wide_of(R(0.0), R(0.0));
    for (uint i = LANE % ROW_LANES; i < layout->length; i += ROW_LANES) {
        GLOBAL const real* x = values + (at + place_of(views + layout->inner, layout->inner_axes, 0u, i));
        sum = sum_of(sum, wide_of(x[0], x[1]));
    }
    sum = wide_sum_of_row_lanes(sum LANES_ARG);
    if (row < layout->n && LANE % ROW_LANES == 0u) {
        out[2u * row] = sum.high;
        out[2u * row + 1u] = sum.low;
    }
}

// out (n): reductions of rows; ROW_LANES lanes have a row.
KERNEL(reduce_reals)(CONSTANTS(ReduceLayout, layout, 0), IN(uint, views, 1), IN(real, values, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    const uint row = BLOCK * (N_LANES / ROW_LANES) + LANE / ROW_LANES;
    // Lanes behind the last row repeat it, and write nothing.
    const uint at = layout->values + place_of(views + layout->view, layout->n_axes, 0u, MIN(row, layout->n - 1u));
    const real value = reduction_of_row(layout, views + layout->inner, values, at LANES_ARG);
    if (row < layout->n && LANE % ROW_LANES == 0u) out[row] = value;
}

// out (n, length) = softmax of the rows of a, or of a + b; or its logarithm.
KERNEL(softmax_rows)(CONSTANTS(SoftmaxLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), IN(real, b, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    const uint row = BLOCK * (N_LANES / ROW_LANES) + LANE / ROW_LANES, near = MIN(row, layout->n - 1u), length = layout->length;
    const uint a_at = AT(a, near), b_at = AT(b, near), lane = LANE % ROW_LANES;
    real largest = -INF;
    for (uint i = lane; i < length; i += ROW_LANES) {
        const real x = a[a_at + i * layout->a_right];
        largest = MAX(largest, layout->is_sum != 0u ? x + b[b_at + i * layout->b_right] : x);
    }
    largest = largest_of_row_lanes(largest LANES_ARG);
    real sum = R(0.0);
    for (uint i = lane; i < length; i += ROW_LANES) {
        const real x = a[a_at + i * layout->a_right];
        const real below = (layout->is_sum != 0u ? x + b[b_at + i * layout->b_right] : x) - largest, power = exp_of(below);
        sum += power;
        if (row < layout->n) out[row * length + i] = layout->is_logarithm != 0u ? below : power;
    }
    sum = sum_of_row_lanes(sum LANES_ARG);
    const real logarithm = LN(sum), scale = R(1.0) / sum;
    // A lane changes the numbers that it wrote.
    if (row < layout->n) {
        for (uint i = lane; i < length; i += ROW_LANES) {
            const real number = out[row * length + i];
            out[row * length + i] = layout->is_logarithm != 0u ? number - logarithm : number * scale;
        }
    }
}

// out (n, length) = (x - mean) / sqrt(variance + epsilon) * weight + bias of the rows of x; of root
// mean squares, the mean is taken for 0.
KERNEL(norm_rows)(CONSTANTS(NormLayout, layout, 0), IN(real, x, 1), IN(real, weight, 2), IN(real, bias, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    const uint row = BLOCK * (N_LANES / ROW_LANES) + LANE / ROW_LANES, length = layout->length, lane = LANE % ROW_LANES;
    const uint at = layout->x + MIN(row, layout->n - 1u) * length;
    real sum = R(0.0);
    for (uint i = lane; i < length; i += ROW_LANES) sum += x[at + i];
    sum = sum_of_row_lanes(sum LANES_ARG);
    const real mean = layout->is_rms != 0u ? R(0.0) : sum / real(length);
    real squares = R(0.0);
    for (uint i = lane; i < length; i += ROW_LANES) {
        const real off = x[at + i] - mean, square = off * off;
        squares += square;
    }
    const real variance = sum_of_row_lanes(squares LANES_ARG) / real(length);
    const real scale = R(1.0) / SQRT(variance + layout->epsilon);
    if (row < layout->n) {
        for (uint i = lane; i < length; i += ROW_LANES) {
            const real number = (x[at + i] - mean) * scale * weight[layout->weight + i];
            out[row * length + i] = layout->has_bias != 0u ? number + bias[layout->bias + i] : number;
        }
    }
}

// out (stack, rows, columns) = activation(a . b + bias), for every matrix of a stack.
KERNEL(multiply_matrices)(CONSTANTS(MatricesLayout, layout, 0), IN(uint, views, 1), IN(real, a, 2), IN(real, b, 3), IN(real, bias, 4), OUT(real, out, 5) LANES) {
    ENTER(shared);
    multiply_tile(layout, views, a, b, bias, out, shared LANES_ARG);
}
