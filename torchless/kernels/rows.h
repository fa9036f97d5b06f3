// What is done to rows of numbers between the products: norm, softmax, activation, rotary
// positions.

// to = x / sqrt(mean(x^2) + epsilon) * weight, a row (width) by a block. Source: Zhang and
// Sennrich, arXiv:1910.07467, eq. 4.
FN void norm_of_row(CONSTANT RowLayout* layout, GLOBAL const real* x, GLOBAL const real* weight, GLOBAL real* to,
                    SHARED real* partial LANES_PARAM) {
    real squares = R(0.0);
    for (uint i = LANE; i < layout->width; i += N_LANES) squares = FMA(x[i], x[i], squares);
    const real mean = sum_of_block(partial, squares LANES_ARG) / real(layout->width);
    const real factor = R(1.0) / SQRT(mean + layout->epsilon);
    for (uint i = LANE; i < layout->width; i += N_LANES) to[i] = x[i] * factor * weight[i];
}

// x <- exp(x - max x) / sum, a row (width) by a block. Entries of -infinity become 0; nothing but
// them, all 0.
FN void softmax_of_row(uint width, GLOBAL real* x, SHARED real* partial LANES_PARAM) {
    real greatest = -INF;
    for (uint i = LANE; i < width; i += N_LANES) greatest = MAX(greatest, x[i]);
    greatest = greatest_of_block(partial, greatest LANES_ARG);
    real sum = R(0.0);
    for (uint i = LANE; i < width; i += N_LANES) {
        const real power = greatest == -INF ? R(0.0) : EXP(x[i] - greatest);
        x[i] = power;
        sum += power;
    }
    sum = sum_of_block(partial, sum LANES_ARG);
    if (greatest != -INF) {
        for (uint i = LANE; i < width; i += N_LANES) x[i] /= sum;
    }
}

// x / (1 + exp(-x)).
FN real silu_of(real x) { return x / (R(1.0) + EXP(-x)); }

// Turns pair `pair` of a head (D) by the angle whose cosines and sines are `turns` (D/2, then D/2).
// (a, b) -> (a cos - b sin, a sin + b cos). Source: Su et al., arXiv:2104.09864, eq. 34.
FN void turn_pair(uint half_dim, uint pairs, uint pair, GLOBAL const real* turns, GLOBAL const real* from, GLOBAL real* to) {
    const uint first = pairs == PAIRS_HALVES ? pair : 2u * pair;
    const uint second = pairs == PAIRS_HALVES ? pair + half_dim : 2u * pair + 1u;
    const real a = from[first], b = from[second], cosine = turns[pair], sine = turns[half_dim + pair];
    const real a_cosine = a * cosine, b_sine = b * sine, a_sine = a * sine, b_cosine = b * cosine;
    to[first] = a_cosine - b_sine;
    to[second] = a_sine + b_cosine;
}

// Copies pair `pair` of a head.
FN void copy_pair(uint pair, GLOBAL const real* from, GLOBAL real* to) {
    to[2u * pair] = from[2u * pair];
    to[2u * pair + 1u] = from[2u * pair + 1u];
}
