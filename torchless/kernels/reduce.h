// Sums and maxima over the lanes of a warp, a group or a block, in one order whatever the lanes'
// own order is.

// Over `width` neighbouring lanes (a power of two, a warp at most); each of them gets it.
FN real sum_of_lanes(real value, uint width LANES_PARAM) {
    for (uint mask = width / 2u; mask > 0u; mask /= 2u) value += SHUFFLE_XOR(value, mask);
    return value;
}

FN real greatest_of_lanes(real value LANES_PARAM) {
    for (uint mask = WARP / 2u; mask > 0u; mask /= 2u) value = MAX(value, SHUFFLE_XOR(value, mask));
    return value;
}

// Over the block; every lane gets it. `partial` has a real for each warp, free again when this
// returns.
FN real sum_of_block(SHARED real* partial, real value LANES_PARAM) {
    value = sum_of_lanes(value, WARP LANES_ARG);
    if (LANE % WARP == 0u) partial[LANE / WARP] = value;
    BARRIER();
    real sum = R(0.0);
    for (uint warp = 0u; warp < N_LANES / WARP; ++warp) sum += partial[warp];
    BARRIER();
    return sum;
}

FN real greatest_of_block(SHARED real* partial, real value LANES_PARAM) {
    value = greatest_of_lanes(value LANES_ARG);
    if (LANE % WARP == 0u) partial[LANE / WARP] = value;
    BARRIER();
    real greatest = partial[0];
    for (uint warp = 1u; warp < N_LANES / WARP; ++warp) greatest = MAX(greatest, partial[warp]);
    BARRIER();
    return greatest;
}
