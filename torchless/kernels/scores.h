// Scores of AT_ONCE keys with a query in the address space SPACE; attention.h includes this for
// each kind.

// query . key (D each) of AT_ONCE keys, which are at `at`: scores (AT_ONCE), the same for every
// lane of the group, each of which has the numbers l, l + GROUP, … of a key.
FN void SCORED(scores)(SPACE const real* query, GLOBAL const real* keys, PRIVATE const uint* at, uint head_dim,
                       PRIVATE real* scores LANES_PARAM) {
    UNROLLED for (uint i = 0u; i < AT_ONCE; ++i) scores[i] = R(0.0);
    uint d = LANE % GROUP;
    for (; d + (NUMBERS_OF_KEY - 1u) * GROUP < head_dim; d += NUMBERS_OF_KEY * GROUP) {
        real numbers[NUMBERS_OF_KEY * AT_ONCE];
        UNROLLED for (uint j = 0u; j < NUMBERS_OF_KEY; ++j) {
            UNROLLED for (uint i = 0u; i < AT_ONCE; ++i) numbers[j * AT_ONCE + i] = keys[at[i] + d + j * GROUP];
        }
        UNROLLED for (uint j = 0u; j < NUMBERS_OF_KEY; ++j) {
            const real number = query[d + j * GROUP];
            UNROLLED for (uint i = 0u; i < AT_ONCE; ++i) scores[i] = FMA(number, numbers[j * AT_ONCE + i], scores[i]);
        }
    }
    for (; d < head_dim; d += GROUP) {
        const real number = query[d];
        UNROLLED for (uint i = 0u; i < AT_ONCE; ++i) scores[i] = FMA(number, keys[at[i] + d], scores[i]);
    }
    UNROLLED for (uint i = 0u; i < AT_ONCE; ++i) scores[i] = sum_of_lanes(scores[i], GROUP LANES_ARG);
}
