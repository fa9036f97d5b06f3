// What a device must get right before it is trusted: sums, products, functions, shuffles, barriers.
// No physics.
//
// Each kernel writes numbers whose right values the host computes in double precision
// (src/self_test.rs).

STRUCT(SelfTestLayout) {
    uint n, columns;
};

// Sum over the lanes of a block of one value each; every lane gets it. Needs N_LANES / WARP reals
// of shared memory.
FN real self_test_block_sum(SHARED real* partial, real value LANES_PARAM) {
    for (uint mask = WARP / 2; mask > 0; mask /= 2) value += SHUFFLE_XOR(value, mask);
    if (LANE % WARP == 0) partial[LANE / WARP] = value;
    BARRIER();
    real sum = R(0.0);
    for (uint warp = 0; warp < N_LANES / WARP; ++warp) sum += partial[warp];
    BARRIER();
    return sum;
}

// sums (N_BLOCKS): of values (N_BLOCKS x n).
KERNEL(self_test_sum)(CONSTANTS(SelfTestLayout, layout, 0), IN(real, values, 1), OUT(real, sums, 2) LANES) {
    ENTER(shared);
    real sum = R(0.0);
    for (uint i = LANE; i < layout->n; i += N_LANES) sum += values[BLOCK * layout->n + i];
    sum = self_test_block_sum(shared, sum LANES_ARG);
    if (LANE == 0) sums[BLOCK] = sum;
}

// product (n) = matrix (n x columns, by rows) . vector (columns), the vector through shared memory;
// one row per lane.
KERNEL(self_test_product)(CONSTANTS(SelfTestLayout, layout, 0), IN(real, matrix, 1), IN(real, vector, 2),
                          OUT(real, product, 3) LANES) {
    ENTER(shared);
    for (uint column = LANE; column < layout->columns; column += N_LANES) shared[column] = vector[column];
    BARRIER();
    for (uint row = BLOCK * N_LANES + LANE; row < layout->n; row += N_LANES * N_BLOCKS) {
        real sum = R(0.0);
        for (uint column = 0; column < layout->columns; ++column)
            sum = FMA(matrix[row * layout->columns + column], shared[column], sum);
        product[row] = sum;
    }
}

TABLE(real, SELF_TEST_SIGNS)[2] = {R(1.0), R(-1.0)};

FN real self_test_sign(CONSTANT real* signs, real x) { return signs[SIGN_BIT(x) ? 1 : 0]; }

FN uint self_test_at(CONSTANT SelfTestLayout* layout, uint row, uint i) { return row * layout->n + i; }

// values (8 x n): each function at each x (n, all positive).
KERNEL(self_test_functions)(CONSTANTS(SelfTestLayout, layout, 0), IN(real, x, 1), OUT(real, values, 2) LANES) {
    ENTER(shared);
    for (uint i = BLOCK * N_LANES + LANE; i < layout->n; i += N_LANES * N_BLOCKS) {
        values[self_test_at(layout, 0, i)] = LN(x[i]);
        values[self_test_at(layout, 1, i)] = EXP(-x[i]);
        values[self_test_at(layout, 2, i)] = SQRT(x[i]);
        values[self_test_at(layout, 3, i)] = POW(x[i], R(1.5));
        values[self_test_at(layout, 4, i)] = SIN(x[i]);
        values[self_test_at(layout, 5, i)] = COS(x[i]);
        values[self_test_at(layout, 6, i)] = R(1.0) / x[i];
        values[self_test_at(layout, 7, i)] = COPYSIGN(FLOOR(MIN(x[i], R(1000.0))), self_test_sign(SELF_TEST_SIGNS, -x[i]));
    }
}

// special (8): what must not be optimised away, one value per lane. zero is 0, so that no compiler
// knows the answers.
KERNEL(self_test_special)(IN(real, zero, 0), OUT(real, special, 1) LANES) {
    ENTER(shared);
    const real infinite = INF, nan = infinite * zero[0], tiny = TINY;
    if (LANE == 0) special[0] = IS_FINITE(nan) ? R(1.0) : R(0.0);
    if (LANE == 1) special[1] = IS_FINITE(infinite + zero[0]) ? R(1.0) : R(0.0);
    if (LANE == 2) special[2] = nan == nan ? R(1.0) : R(0.0);
    if (LANE == 3) special[3] = EXP(zero[0] - infinite);
    if (LANE == 4) special[4] = (R(1.0) + zero[0]) / infinite;
    if (LANE == 5) special[5] = tiny * tiny > zero[0] ? R(1.0) : R(0.0);
    // A fused multiply-add keeps what a product rounds off; a sum in the order written loses the 1.
    if (LANE == 6) special[6] = FMA(R(1.0) + EPSILON, R(1.0) - EPSILON, zero[0] - R(1.0)) / (EPSILON * EPSILON);
    if (LANE == 7) special[7] = ((R(1.0) / EPSILON * R(4.0) + zero[0]) + R(1.0)) - R(4.0) / EPSILON;
}

// exchanged (N_BLOCKS x N_LANES x 5): the global number of the lane at each distance within the
// warp.
KERNEL(self_test_shuffle)(OUT(real, exchanged, 0) LANES) {
    ENTER(shared);
    const uint me = BLOCK * N_LANES + LANE;
    uint step = 0;
    for (uint mask = 1; mask < WARP; mask *= 2, ++step) exchanged[me * 5 + step] = SHUFFLE_XOR(real(me), mask);
}

// trace (N_BLOCKS x N_LANES): n rounds in which a lane reads what another wrote to global memory
// before the barrier.
KERNEL(self_test_visibility)(CONSTANTS(SelfTestLayout, layout, 0), OUT(real, trace, 1) LANES) {
    ENTER(shared);
    GLOBAL real* mine = trace + BLOCK * N_LANES;
    mine[LANE] = real(LANE);
    BARRIER();
    for (uint round = 0; round < layout->n; ++round) {
        const real next = mine[(LANE + 1) % N_LANES];
        BARRIER();
        mine[LANE] = next + R(1.0);
        BARRIER();
    }
}
