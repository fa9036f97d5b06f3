// A product with SHAPE's rows and vectors, which go through shared memory; after product.h.

// VECTORS vectors, tile by tile through shared memory, which the block's warps read with rows of
// their own.
FN void SHAPED(product)(CONSTANT ProductLayout* layout, GLOBAL const ushort* matrix, GLOBAL const real* x,
                        GLOBAL const real* bias, GLOBAL real* out, SHARED real* tile LANES_PARAM) {
    const uint rows_of_block = N_LANES / WARP * ROWS;
    const uint n_row_groups = (layout->rows + rows_of_block - 1u) / rows_of_block;
    const uint first_row = BLOCK % n_row_groups * rows_of_block + LANE / WARP * ROWS;
    const uint first_vector = BLOCK / n_row_groups * VECTORS;
    real sums[ROWS * VECTORS];
    UNROLLED for (uint i = 0u; i < ROWS * VECTORS; ++i) sums[i] = R(0.0);
    for (uint column = 0u; column < layout->columns; column += TILE) {
        load_tile(layout, VECTORS, first_vector, column, x, tile LANES_ARG);
        const uint end = MIN(column + TILE, layout->columns);
        const uint first = column / uint(OF(LEN)) * uint(OF(PARTS)), last = end / uint(OF(LEN)) * uint(OF(PARTS));
        SHAPED(add_products)(matrix, layout, first_row, first, last, tile, TILE, column, sums LANES_ARG);
        BARRIER();
    }
    SHAPED(write_sums)(layout, first_row, first_vector, sums, bias, out LANES_ARG);
}
