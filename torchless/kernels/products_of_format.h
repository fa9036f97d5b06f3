// The products of matrices of one FORMAT; products.h includes this with each.

// One vector, read where it is.
#define SHAPE plain
#define ROWS ROWS_OF_VECTOR
#define VECTORS 1u
#define AT_ONCE uint(OF(DEPTH))
#define SPACE GLOBAL
#include "product.h"
FN void SHAPED(product)(CONSTANT ProductLayout* layout, GLOBAL const ushort* matrix, GLOBAL const real* x,
                        GLOBAL const real* bias, GLOBAL real* out LANES_PARAM) {
    const uint warp = BLOCK * (N_LANES / WARP) + LANE / WARP;
    const uint first_row = warp * ROWS;
    const uint n_parts = layout->columns / uint(OF(LEN)) * uint(OF(PARTS));
    real sums[ROWS];
    UNROLLED for (uint i = 0u; i < ROWS; ++i) sums[i] = R(0.0);
    SHAPED(add_products)(matrix, layout, first_row, 0u, n_parts, x + layout->x_offset, 0u, 0u, sums LANES_ARG);
    SHAPED(write_sums)(layout, first_row, 0u, sums, bias, out LANES_ARG);
}
#undef SHAPE
#undef SPACE

// One vector, tile by tile.
#define SHAPE tiled
#define SPACE SHARED
#include "product.h"
#include "tiled_product.h"
#undef SHAPE
#undef ROWS
#undef VECTORS
#undef AT_ONCE

// Several vectors, tile by tile.
#define SHAPE several
#define ROWS ROWS_OF_VECTORS
#define VECTORS VECTORS_AT_ONCE
#define AT_ONCE 1u
#include "product.h"
#include "tiled_product.h"
#undef SHAPE
#undef ROWS
#undef VECTORS
#undef AT_ONCE
#undef SPACE

// Row `row` of a matrix as numbers: to (columns). A block's lanes share the row.
FN void OF(unpack_row)(GLOBAL const ushort* matrix, CONSTANT EmbeddingLayout* layout, uint row,
                       GLOBAL real* to LANES_PARAM) {
    for (uint item = LANE; item < layout->columns / uint(OF(LEN)) * uint(OF(PARTS)); item += N_LANES) {
        const uint block = item / uint(OF(PARTS)), part = item % uint(OF(PARTS));
        real weights[uint(OF(N))];
        OF(unpack)(matrix + row * layout->row_words + block * uint(OF(WORDS)), part, weights);
        for (uint i = 0u; i < uint(OF(N)); ++i) to[block * uint(OF(LEN)) + OF(at)(part, i)] = weights[i];
    }
}
