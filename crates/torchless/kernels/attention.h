// Attention of one head of one token: scores, their softmax, and the weighted sum of values, in one pass over the positions.
//
// Legend: D width of a head. Head h of queries uses head h / (heads / KV heads) of keys and values. A block has one head of one token; GROUP lanes share
// a position's score, the lanes of a warp share a position's values. The order of the sums depends on the positions alone.

// Lanes that share a score.
#define GROUP 8u
// Partial sums of a lane: those of the widest head.
#define SUMS_OF_LANE (MAX_HEAD_DIM / WARP)

// query . key (D each); every lane of the group gets it.
template <class Q> FN real score_of(Q query, GLOBAL const real* key, uint head_dim LANES_PARAM) {
    real sum = R(0.0);
    for (uint d = LANE % GROUP; d < head_dim; d += GROUP) sum = FMA(query[d], key[d], sum);
    return sum_of_lanes(sum, GROUP LANES_ARG);
}

// Adds weights (n) times rows of values, `stride` apart, to the warp's sums (D). Warp w has the rows w, w + warps, …
template <class P>
FN void add_values(P weights, uint n, GLOBAL const real* values, uint stride, uint head_dim, PRIVATE real* sums LANES_PARAM) {
    for (uint i = LANE / WARP; i < n; i += N_LANES / WARP) {
        const real weight = weights[i];
        UNROLLED for (uint j = 0u; j < SUMS_OF_LANE; ++j) {
            const uint d = j * WARP + LANE % WARP;
            if (d < head_dim) sums[j] = FMA(weight, values[i * stride + d], sums[j]);
        }
    }
}

// out (D) = the warps' sums, added and divided. `parts` has warps x D reals.
FN void write_values(PRIVATE real* sums, uint head_dim, real divisor, SHARED real* parts, GLOBAL real* out LANES_PARAM) {
    UNROLLED for (uint j = 0u; j < SUMS_OF_LANE; ++j) {
        const uint d = j * WARP + LANE % WARP;
        if (d < head_dim) parts[LANE / WARP * head_dim + d] = sums[j];
    }
    BARRIER();
    for (uint d = LANE; d < head_dim; d += N_LANES) {
        real sum = R(0.0);
        for (uint warp = 0u; warp < N_LANES / WARP; ++warp) sum += parts[warp * head_dim + d];
        out[d] = sum / divisor;
    }
}

// Scores of `n` positions from `keys` on, `stride` apart: scores (n). Every lane takes part, so that no shuffle misses one.
FN void scores_of_tile(CONSTANT AttentionLayout& layout, SHARED const real* query, GLOBAL const real* keys, uint n, uint stride,
                       SHARED real* scores LANES_PARAM) {
    for (uint base = 0u; base < n; base += N_LANES / GROUP) {
        const uint i = base + LANE / GROUP;
        const real score = score_of(query, keys + MIN(i, n - 1u) * stride, layout.head_dim LANES_ARG) * layout.scale;
        if (LANE % GROUP == 0u && i < n) scores[i] = score;
    }
    BARRIER();
}

// The greatest score so far, and the sum of exp(score - greatest).
struct Softmax_ {
    real greatest, sum;
};

// Turns scores (n, at most N_LANES) into weights for the greatest score so far; what was summed before is to be multiplied by the result.
FN real weights_of_tile(SHARED real* scores, uint n, SHARED real* partial, PRIVATE Softmax_* softmax LANES_PARAM) {
    const real score = LANE < n ? scores[LANE] : -INF;
    const real greatest = MAX(softmax->greatest, greatest_of_block(partial, score LANES_ARG));
    const real rescale = softmax->greatest == -INF ? R(0.0) : EXP(softmax->greatest - greatest);
    const real weight = score == -INF ? R(0.0) : EXP(score - greatest);
    if (LANE < n) scores[LANE] = weight;
    softmax->sum = softmax->sum * rescale + sum_of_block(partial, weight LANES_ARG);
    softmax->greatest = greatest;
    return rescale;
}

// One head of one token: `query` and `out` (D), keys and values of the token's sequence from position 0 on, (positions, KV heads, D).
// Source of the running softmax: Milakov and Gimelshein, arXiv:1805.02867.
FN void attend(CONSTANT AttentionLayout& layout, GLOBAL const real* query, GLOBAL const real* keys, GLOBAL const real* values,
               uint position, GLOBAL real* out, SHARED real* shared LANES_PARAM) {
    const uint stride = layout.n_kv_heads * layout.head_dim;
    SHARED real* own = shared;
    SHARED real* scores = own + layout.head_dim;
    SHARED real* partial = scores + N_LANES;
    SHARED real* parts = partial + N_LANES / WARP;
    for (uint d = LANE; d < layout.head_dim; d += N_LANES) own[d] = query[d];
    BARRIER();
    Softmax_ softmax = {-INF, R(0.0)};
    real sums[SUMS_OF_LANE];
    UNROLLED for (uint j = 0u; j < SUMS_OF_LANE; ++j) sums[j] = R(0.0);
    const uint seen = layout.window == 0u ? position + 1u : MIN(position + 1u, layout.window);
    for (uint first = position + 1u - seen; first <= position; first += N_LANES) {
        const uint n = MIN(position + 1u - first, N_LANES);
        scores_of_tile(layout, own, keys + first * stride, n, stride, scores LANES_ARG);
        const real rescale = weights_of_tile(scores, n, partial, &softmax LANES_ARG);
        UNROLLED for (uint j = 0u; j < SUMS_OF_LANE; ++j) sums[j] *= rescale;
        add_values(scores, n, values + first * stride, stride, layout.head_dim, sums LANES_ARG);
        BARRIER();
    }
    write_values(sums, layout.head_dim, softmax.sum, parts, out LANES_ARG);
}
