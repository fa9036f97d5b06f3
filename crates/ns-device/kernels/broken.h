// Kernels that break the dialect's rules on purpose: each is something that the emulation must
// catch. Never compiled for a GPU.

// One lane is at another barrier.
KERNEL(broken_barrier)(OUT(real, out, 0) LANES) {
    ENTER(shared);
    if (LANE == 3) {
        BARRIER();
    } else {
        BARRIER();
    }
    out[LANE] = R(0.0);
}

// Half of the lanes leave while the others wait.
KERNEL(broken_end)(OUT(real, out, 0) LANES) {
    ENTER(shared);
    if (LANE < N_LANES / 2) BARRIER();
    out[LANE] = R(0.0);
}

// A lane misses its warp's shuffle.
KERNEL(broken_shuffle)(OUT(real, out, 0) LANES) {
    ENTER(shared);
    if (LANE != 5) out[LANE] = SHUFFLE_XOR(R(1.0), 1);
}

// Writes one real more than it has.
KERNEL(broken_shared)(OUT(real, out, 0) LANES) {
    ENTER(shared);
    shared[LANE + 1] = R(1.0);
    BARRIER();
    out[LANE] = shared[LANE + 1];
}

// Reads shared memory that no lane wrote.
KERNEL(broken_unwritten)(OUT(real, out, 0) LANES) {
    ENTER(shared);
    if (LANE > 0) shared[LANE] = R(1.0);
    BARRIER();
    out[LANE] = shared[LANE];
}

// The self-test's sum without its barrier: right in no order of lanes but one.
KERNEL(broken_sum)(CONSTANTS(SelfTestLayout, layout, 0), IN(real, values, 1), OUT(real, sums, 2) LANES) {
    ENTER(shared);
    real sum = R(0.0);
    for (uint i = LANE; i < layout->n; i += N_LANES) sum += values[BLOCK * layout->n + i];
    for (uint mask = WARP / 2; mask > 0; mask /= 2) sum += SHUFFLE_XOR(sum, mask);
    if (LANE % WARP == 0) shared[LANE / WARP] = sum;
    real total = R(0.0);
    for (uint warp = 0; warp < N_LANES / WARP; ++warp) total += shared[warp];
    if (LANE == 0) sums[BLOCK] = total;
}

// Writes two reals past its lanes: within what the pool rounds up to, so that AddressSanitizer
// alone sees it.
KERNEL(broken_bounds)(OUT(real, out, 0) LANES) {
    ENTER(shared);
    out[LANE + 2] = R(0.0);
}
