// Products of a stored matrix with vectors: every output is one sum in one order, whichever kernel
// computes it.
//
// A warp has ROWS rows and VECTORS vectors. Its lanes go along the rows together: lane l has the
// parts l, l + 32, … of a row, whose sums are added at the end. Neither tiles nor the number of
// vectors change that order, so a token's numbers do not depend on its company.


// The weights of part `item` of ROWS rows: weights (ROWS, N).
template <class W, uint ROWS>
FN void unpack_part(GLOBAL const ushort* matrix, CONSTANT ProductLayout* layout, uint first_row, uint item, PRIVATE real* weights) {
    const uint block = item / uint(W::PARTS), part = item % uint(W::PARTS);
    UNROLLED for (uint row = 0u; row < ROWS; ++row) {
        // Rows past the end repeat the last one; their sums are not used.
        const uint at = MIN(first_row + row, layout->rows - 1u);
        W::unpack(matrix + at * layout->row_words + block * uint(W::WORDS), part, weights + row * uint(W::N));
    }
}

// Adds the weights' products to `sums` (ROWS, VECTORS); `x` (VECTORS, x_stride) begins at
// `first_column`.
template <class W, uint ROWS, uint VECTORS, class X>
FN void add_part(PRIVATE const real* weights, uint item, X x, uint x_stride, uint first_column, PRIVATE real* sums) {
    const uint block = item / uint(W::PARTS), part = item % uint(W::PARTS);
    UNROLLED for (uint i = 0u; i < uint(W::N); ++i) {
        const uint column = block * uint(W::LEN) + W::at(part, i) - first_column;
        UNROLLED for (uint vector = 0u; vector < VECTORS; ++vector) {
            const real number = x[vector * x_stride + column];
            UNROLLED for (uint row = 0u; row < ROWS; ++row) {
                PRIVATE real* sum = sums + row * VECTORS + vector;
                *sum = FMA(weights[row * uint(W::N) + i], number, *sum);
            }
        }
    }
}

// Adds the products of the parts from `first` to `last`, DEPTH of a lane's at a time, so that as
// many loads are on their way; in the same order.
template <class W, uint ROWS, uint VECTORS, uint DEPTH, class X>
FN void add_products(GLOBAL const ushort* matrix, CONSTANT ProductLayout* layout, uint first_row, uint first, uint last, X x,
                     uint x_stride, uint first_column, PRIVATE real* sums LANES_PARAM) {
    const uint size = ROWS * uint(W::N);
    uint item = first + LANE % WARP;
    if (DEPTH > 1u) {
        for (; item + (DEPTH - 1u) * WARP < last; item += DEPTH * WARP) {
            real weights[DEPTH * ROWS * uint(W::N)];
            UNROLLED for (uint d = 0u; d < DEPTH; ++d)
                unpack_part<W, ROWS>(matrix, layout, first_row, item + d * WARP, weights + d * size);
            UNROLLED for (uint d = 0u; d < DEPTH; ++d)
                add_part<W, ROWS, VECTORS>(weights + d * size, item + d * WARP, x, x_stride, first_column, sums);
        }
    }
    for (; item < last; item += WARP) {
        real weights[ROWS * uint(W::N)];
        unpack_part<W, ROWS>(matrix, layout, first_row, item, weights);
        add_part<W, ROWS, VECTORS>(weights, item, x, x_stride, first_column, sums);
    }
}

// Adds up what the lanes of a warp have, and writes it: bias added, and what was there before if
// the layout says so.
template <uint ROWS, uint VECTORS>
FN void write_sums(CONSTANT ProductLayout* layout, uint first_row, uint first_vector, PRIVATE real* sums,
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

// One vector, read where it is.
template <class W>
FN void plain_product(CONSTANT ProductLayout* layout, GLOBAL const ushort* matrix, GLOBAL const real* x,
                      GLOBAL const real* bias, GLOBAL real* out LANES_PARAM) {
    const uint warp = BLOCK * (N_LANES / WARP) + LANE / WARP;
    const uint first_row = warp * ROWS_OF_VECTOR;
    const uint n_parts = layout->columns / uint(W::LEN) * uint(W::PARTS);
    real sums[ROWS_OF_VECTOR];
    UNROLLED for (uint i = 0u; i < ROWS_OF_VECTOR; ++i) sums[i] = R(0.0);
    add_products<W, ROWS_OF_VECTOR, 1u, uint(W::DEPTH)>(matrix, layout, first_row, 0u, n_parts, x + layout->x_offset, 0u, 0u,
                                                        sums LANES_ARG);
    write_sums<ROWS_OF_VECTOR, 1u>(layout, first_row, 0u, sums, bias, out LANES_ARG);
}

// Copies columns of VECTORS vectors to `tile` (VECTORS, TILE); what is past the end of a vector, or
// past the last vector, is 0.
template <uint VECTORS>
FN void load_tile(CONSTANT ProductLayout* layout, uint first_vector, uint first_column, GLOBAL const real* x,
                  SHARED real* tile LANES_PARAM) {
    for (uint item = LANE; item < VECTORS * TILE; item += N_LANES) {
        const uint vector = first_vector + item / TILE, column = first_column + item % TILE;
        const bool is_there = vector < layout->n_vectors && column < layout->columns;
        tile[item] = is_there ? x[layout->x_offset + vector * layout->columns + column] : R(0.0);
    }
    BARRIER();
}

// VECTORS vectors, tile by tile through shared memory, which the block's warps read with rows of
// their own.
template <class W, uint ROWS, uint VECTORS, uint DEPTH>
FN void tiled_product(CONSTANT ProductLayout* layout, GLOBAL const ushort* matrix, GLOBAL const real* x,
                      GLOBAL const real* bias, GLOBAL real* out, SHARED real* tile LANES_PARAM) {
    const uint rows_of_block = N_LANES / WARP * ROWS;
    const uint n_row_groups = (layout->rows + rows_of_block - 1u) / rows_of_block;
    const uint first_row = BLOCK % n_row_groups * rows_of_block + LANE / WARP * ROWS;
    const uint first_vector = BLOCK / n_row_groups * VECTORS;
    real sums[ROWS * VECTORS];
    UNROLLED for (uint i = 0u; i < ROWS * VECTORS; ++i) sums[i] = R(0.0);
    for (uint column = 0u; column < layout->columns; column += TILE) {
        load_tile<VECTORS>(layout, first_vector, column, x, tile LANES_ARG);
        const uint end = MIN(column + TILE, layout->columns);
        const uint first = column / uint(W::LEN) * uint(W::PARTS), last = end / uint(W::LEN) * uint(W::PARTS);
        SHARED const real* from = tile;
        add_products<W, ROWS, VECTORS, DEPTH>(matrix, layout, first_row, first, last, from, TILE, column, sums LANES_ARG);
        BARRIER();
    }
    write_sums<ROWS, VECTORS>(layout, first_row, first_vector, sums, bias, out LANES_ARG);
}

template <class W>
FN void tiled_vector(CONSTANT ProductLayout* layout, GLOBAL const ushort* matrix, GLOBAL const real* x,
                     GLOBAL const real* bias, GLOBAL real* out, SHARED real* tile LANES_PARAM) {
    tiled_product<W, ROWS_OF_VECTOR, 1u, uint(W::DEPTH)>(layout, matrix, x, bias, out, tile LANES_ARG);
}

template <class W>
FN void tiled_vectors(CONSTANT ProductLayout* layout, GLOBAL const ushort* matrix, GLOBAL const real* x,
                      GLOBAL const real* bias, GLOBAL real* out, SHARED real* tile LANES_PARAM) {
    tiled_product<W, ROWS_OF_VECTORS, VECTORS_AT_ONCE, 1u>(layout, matrix, x, bias, out, tile LANES_ARG);
}

// Row `row` of a matrix as numbers: to (columns). A block's lanes share the row.
template <class W>
FN void unpack_row(GLOBAL const ushort* matrix, CONSTANT EmbeddingLayout* layout, uint row, GLOBAL real* to LANES_PARAM) {
    for (uint item = LANE; item < layout->columns / uint(W::LEN) * uint(W::PARTS); item += N_LANES) {
        const uint block = item / uint(W::PARTS), part = item % uint(W::PARTS);
        real weights[uint(W::N)];
        W::unpack(matrix + row * layout->row_words + block * uint(W::WORDS), part, weights);
        for (uint i = 0u; i < uint(W::N); ++i) to[block * uint(W::LEN) + W::at(part, i)] = weights[i];
    }
}
