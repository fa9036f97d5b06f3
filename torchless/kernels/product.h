// The sums of ROWS rows of one format with VECTORS vectors, AT_ONCE parts of a lane at a time,
// where the vectors are in the address space SPACE. products_of_format.h includes this with each
// SHAPE.

// The weights of part `item` of ROWS rows: weights (ROWS, N).
FN void SHAPED(unpack_part)(GLOBAL const ushort* matrix, CONSTANT ProductLayout* layout, uint first_row, uint item,
                            PRIVATE real* weights) {
    const uint block = item / uint(OF(PARTS)), part = item % uint(OF(PARTS));
    UNROLLED for (uint row = 0u; row < ROWS; ++row) {
        // Rows past the end repeat the last one; their sums are not used.
        const uint at = MIN(first_row + row, layout->rows - 1u);
        OF(unpack)(matrix + at * layout->row_words + block * uint(OF(WORDS)), part, weights + row * uint(OF(N)));
    }
}

// Adds the weights' products to `sums` (ROWS, VECTORS); `x` (VECTORS, x_stride) begins at
// `first_column`.
FN void SHAPED(add_part)(PRIVATE const real* weights, uint item, SPACE const real* x, uint x_stride, uint first_column,
                         PRIVATE real* sums) {
    const uint block = item / uint(OF(PARTS)), part = item % uint(OF(PARTS));
    UNROLLED for (uint i = 0u; i < uint(OF(N)); ++i) {
        const uint column = block * uint(OF(LEN)) + OF(at)(part, i) - first_column;
        UNROLLED for (uint vector = 0u; vector < VECTORS; ++vector) {
            const real number = x[vector * x_stride + column];
            UNROLLED for (uint row = 0u; row < ROWS; ++row) {
                PRIVATE real* sum = sums + row * VECTORS + vector;
                *sum = FMA(weights[row * uint(OF(N)) + i], number, *sum);
            }
        }
    }
}

// Adds the products of the parts from `first` to `last`, AT_ONCE of a lane's at a time, so that as
// many loads are on their way; in the same order.
FN void SHAPED(add_products)(GLOBAL const ushort* matrix, CONSTANT ProductLayout* layout, uint first_row, uint first, uint last,
                             SPACE const real* x, uint x_stride, uint first_column, PRIVATE real* sums LANES_PARAM) {
    const uint size = ROWS * uint(OF(N));
    uint item = first + LANE % WARP;
    if (AT_ONCE > 1u) {
        for (; item + (AT_ONCE - 1u) * WARP < last; item += AT_ONCE * WARP) {
            real weights[AT_ONCE * ROWS * uint(OF(N))];
            UNROLLED for (uint d = 0u; d < AT_ONCE; ++d)
                SHAPED(unpack_part)(matrix, layout, first_row, item + d * WARP, weights + d * size);
            UNROLLED for (uint d = 0u; d < AT_ONCE; ++d)
                SHAPED(add_part)(weights + d * size, item + d * WARP, x, x_stride, first_column, sums);
        }
    }
    for (; item < last; item += WARP) {
        real weights[ROWS * uint(OF(N))];
        SHAPED(unpack_part)(matrix, layout, first_row, item, weights);
        SHAPED(add_part)(weights, item, x, x_stride, first_column, sums);
    }
}

// Adds up what the lanes of a warp have, and writes it: bias added, and what was there before if
// the layout says so.
FN void SHAPED(write_sums)(CONSTANT ProductLayout* layout, uint first_row, uint first_vector, PRIVATE real* sums,
                           GLOBAL const real* bias, GLOBAL real* out LANES_PARAM) {
    UNROLLED for (uint row = 0u; row < ROWS; ++row) {
        UNROLLED for (uint vector = 0u; vector < VECTORS; ++vector) {
            real sum = sum_of_lanes(sums[row * VECTORS + vector], WARP LANES_ARG);
            if (LANE % WARP == 0u && first_row + row < layout->rows && first_vector + vector < layout->n_vectors) {
                GLOBAL real* to = out + layout->out_offset + (first_vector + vector) * layout->out_stride + first_row + row;
                if (layout->has_bias != 0u) sum += bias[first_row + row];
                *to = layout->adds != 0u ? *to + sum : sum;
            }
        }
    }
}
