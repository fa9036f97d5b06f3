// Products of matrices, tile by tile through shared memory. Every output is one chain of fused
// multiply-adds for each TILE_DEPTH numbers of the inner axis, whose sums are added, as on the CPU:
// neither tiles nor the number of rows change a bit.

// Copies columns `first` to `first + n` of TILE_ROWS rows, those behind the last one as zeros,
// which are not used.
FN void load_left(CONSTANT MatricesLayout* layout, GLOBAL const real* a, uint at, uint first_row, uint first, uint n,
                  SHARED real* tile LANES_PARAM) {
    for (uint item = LANE; item < TILE_ROWS * TILE_DEPTH; item += N_LANES) {
        const uint row = first_row + item / TILE_DEPTH, column = item % TILE_DEPTH;
        const bool is_there = row < layout->rows && column < n;
        tile[item] = is_there ? a[at + row * layout->a_down + (first + column) * layout->a_right] : R(0.0);
    }
}

// Copies rows `first` to `first + n` of TILE_COLUMNS columns.
FN void load_right(CONSTANT MatricesLayout* layout, GLOBAL const real* b, uint at, uint first_column, uint first, uint n,
                   SHARED real* tile LANES_PARAM) {
    for (uint item = LANE; item < TILE_DEPTH * TILE_COLUMNS; item += N_LANES) {
        const uint row = item / TILE_COLUMNS, column = first_column + item % TILE_COLUMNS;
        const bool is_there = row < n && column < layout->columns;
        tile[item] = is_there ? b[at + (first + row) * layout->b_down + column * layout->b_right] : R(0.0);
    }
}

FN real activation_of(uint activation, real x) {
    if (activation == ACTIVATION_GELU) return gelu_of(x);
    if (activation == ACTIVATION_GELU_TANH) return gelu_tanh_of(x);
    if (activation == ACTIVATION_RELU) return relu_of(x);
    if (activation == ACTIVATION_SILU) return silu_of(x);
    return x;
}

// One tile of one matrix of the stack: a lane has a column, and ROWS_OF_LANE rows.
FN void multiply_tile(CONSTANT MatricesLayout* layout, GLOBAL const uint* views, GLOBAL const real* a, GLOBAL const real* b,
                      GLOBAL const real* bias, GLOBAL real* out, SHARED real* shared LANES_PARAM) {
    const uint row_tiles = (layout->rows + TILE_ROWS - 1u) / TILE_ROWS;
    const uint column_tiles = (layout->columns + TILE_COLUMNS - 1u) / TILE_COLUMNS;
    const uint matrix = BLOCK / (row_tiles * column_tiles);
    const uint first_row = BLOCK / column_tiles % row_tiles * TILE_ROWS, first_column = BLOCK % column_tiles * TILE_COLUMNS;
    const uint a_at = layout->a + place_of(views + layout->view, layout->n_axes, 0u, matrix);
    const uint b_at = layout->b + place_of(views + layout->view, layout->n_axes, 1u, matrix);
    SHARED real* left = shared;
    SHARED real* right = shared + TILE_ROWS * TILE_DEPTH;
    const uint lane_row = LANE / TILE_COLUMNS * ROWS_OF_LANE, lane_column = LANE % TILE_COLUMNS;
    real sums[ROWS_OF_LANE];
    UNROLLED for (uint i = 0u; i < ROWS_OF_LANE; ++i) sums[i] = R(0.0);
    for (uint first = 0u; first < layout->inner; first += TILE_DEPTH) {
        const uint n = MIN(layout->inner - first, TILE_DEPTH);
        load_left(layout, a, a_at, first_row, first, n, left LANES_ARG);
        load_right(layout, b, b_at, first_column, first, n, right LANES_ARG);
        BARRIER();
        real here[ROWS_OF_LANE];
        UNROLLED for (uint i = 0u; i < ROWS_OF_LANE; ++i) here[i] = R(0.0);
        for (uint k = 0u; k < n; ++k) {
            const real factor = right[k * TILE_COLUMNS + lane_column];
            UNROLLED for (uint i = 0u; i < ROWS_OF_LANE; ++i) here[i] = FMA(left[(lane_row + i) * TILE_DEPTH + k], factor, here[i]);
        }
        UNROLLED for (uint i = 0u; i < ROWS_OF_LANE; ++i) sums[i] += here[i];
        BARRIER();
    }
    const uint column = first_column + lane_column;
    UNROLLED for (uint i = 0u; i < ROWS_OF_LANE; ++i) {
        const uint row = first_row + lane_row + i;
        if (row < layout->rows && column < layout->columns) {
            real sum = sums[i];
            if (layout->bias_of == BIAS_OF_COLUMNS) sum += bias[layout->bias + column];
            if (layout->bias_of == BIAS_OF_ROWS) sum += bias[layout->bias + row];
            out[(matrix * layout->rows + row) * layout->columns + column] = activation_of(layout->activation, sum);
        }
    }
}
