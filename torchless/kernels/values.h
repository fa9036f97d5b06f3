// Sums of weighted values for heads of SUMS warps' width at most, with weights in the address space
// SPACE; weighted.h includes this for each width.

// What the function `sum_values` does. Rows of values are loaded before they are added, as many as
// have NUMBERS_OF_VALUES numbers of a lane's.
FN void SUMMED(sum_rows)(SPACE const real* weights, uint n, GLOBAL const real* values, uint stride, uint head_dim,
                         SHARED real* parts LANES_PARAM) {
    const uint n_warps = N_LANES / WARP;
    real sums[SUMS];
    uint at[SUMS];
    UNROLLED for (uint j = 0u; j < SUMS; ++j) {
        sums[j] = R(0.0);
        // Past the end of the head is the last number again; its sum is not used.
        at[j] = MIN(j * WARP + LANE % WARP, head_dim - 1u);
    }
    uint row = LANE / WARP;
    for (; row + (NUMBERS_OF_VALUES / SUMS - 1u) * n_warps < n; row += NUMBERS_OF_VALUES / SUMS * n_warps) {
        real numbers[NUMBERS_OF_VALUES];
        UNROLLED for (uint i = 0u; i < NUMBERS_OF_VALUES / SUMS; ++i) {
            UNROLLED for (uint j = 0u; j < SUMS; ++j) numbers[i * SUMS + j] = values[(row + i * n_warps) * stride + at[j]];
        }
        UNROLLED for (uint i = 0u; i < NUMBERS_OF_VALUES / SUMS; ++i) {
            const real weight = weights[row + i * n_warps];
            UNROLLED for (uint j = 0u; j < SUMS; ++j) sums[j] = FMA(weight, numbers[i * SUMS + j], sums[j]);
        }
    }
    for (; row < n; row += n_warps) {
        const real weight = weights[row];
        UNROLLED for (uint j = 0u; j < SUMS; ++j) sums[j] = FMA(weight, values[row * stride + at[j]], sums[j]);
    }
    UNROLLED for (uint j = 0u; j < SUMS; ++j) {
        const uint d = j * WARP + LANE % WARP;
        if (d < head_dim) parts[LANE / WARP * head_dim + d] = sums[j];
    }
}
