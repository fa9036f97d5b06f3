// Attention of one head of one token: scores, their softmax, and the weighted sum of values, tile
// by tile of positions.
//
// Legend: D width of a head. A tile has N_LANES positions, the first of them the first that the
// token sees; the last tile may have fewer. GROUP lanes share a position's score, the lanes of a
// warp share a position's values. A tile is weighed against its own greatest score, and tiles are
// added in order by `add_tile` and `added_value`, whether one block walks over them or each has a
// block of its own: the bits are the same, and depend on the positions alone.

// What a lane loads before it computes, so that as much is on its way at once: keys of as many
// positions, as many numbers of each; as many numbers of rows of values; as many tiles.
#define SCORES_AT_ONCE 8u
#define NUMBERS_OF_KEY 4u
#define NUMBERS_OF_VALUES 16u
#define TILES_AT_ONCE 8u

// What one head of one token sees.
STRUCT(Attended) {
    uint first; // where the first position's key and value are
    uint n; // positions
};

// `index` counts the heads of all tokens. Head h of queries uses head h / (heads / KV heads) of
// keys and values.
FN Attended attended_by(CONSTANT AttentionLayout* layout, GLOBAL const uint* places, uint index) {
    const uint row = index / layout->n_heads, head = index % layout->n_heads;
    const uint kv_head = head / (layout->n_heads / layout->n_kv_heads);
    const uint position = places[layout->places_offset + row], start = places[layout->places_offset + layout->n_rows + row];
    const uint n = layout->window == 0u ? position + 1u : MIN(position + 1u, layout->window);
    const Attended attended = {((start + position + 1u - n) * layout->n_kv_heads + kv_head) * layout->head_dim, n};
    return attended;
}

// OpenCL C has no templates: what depends on the address space of a query or of weights, and on how
// many sums a lane has, is in headers that are included for each.
#define SCORED(name) JOINED(name, tile)
#define AT_ONCE SCORES_AT_ONCE
#define SPACE SHARED
#include "scores.h"
#undef SCORED
#undef AT_ONCE
#undef SPACE

#define SCORED(name) JOINED(name, one)
#define AT_ONCE 1u
#define SPACE GLOBAL
#include "scores.h"
#undef SCORED
#undef AT_ONCE
#undef SPACE

#define WEIGHED(name) JOINED(name, tile)
#define SPACE SHARED
#include "weighted.h"
#undef WEIGHED
#undef SPACE

#define WEIGHED(name) JOINED(name, whole)
#define SPACE GLOBAL
#include "weighted.h"
#undef WEIGHED
#undef SPACE

// Scores of `n` positions from `keys` on, `stride` apart: scores (n). Every lane takes part, so
// that no shuffle misses one.
FN void scores_of_tile(CONSTANT AttentionLayout* layout, SHARED const real* query, GLOBAL const real* keys, uint n, uint stride,
                       SHARED real* scores LANES_PARAM) {
    const uint n_groups = N_LANES / GROUP;
    for (uint base = 0u; base < n; base += SCORES_AT_ONCE * n_groups) {
        const uint first = base + LANE / GROUP;
        uint at[SCORES_AT_ONCE];
        real found[SCORES_AT_ONCE];
        UNROLLED for (uint i = 0u; i < SCORES_AT_ONCE; ++i) at[i] = MIN(first + i * n_groups, n - 1u) * stride;
        scores_tile(query, keys, at, layout->head_dim, found LANES_ARG);
        UNROLLED for (uint i = 0u; i < SCORES_AT_ONCE; ++i) {
            if (LANE % GROUP == 0u && first + i * n_groups < n) scores[first + i * n_groups] = found[i] * layout->scale;
        }
    }
    BARRIER();
}

// Number `d` of what the warps have summed.
FN real sum_of_warps(SHARED const real* parts, uint head_dim, uint d LANES_PARAM) {
    real sum = R(0.0);
    for (uint warp = 0u; warp < N_LANES / WARP; ++warp) sum += parts[warp * head_dim + d];
    return sum;
}

// Of one tile or several: the greatest score, and the sum of exp(score - greatest).
STRUCT(RunningSoftmax) {
    real greatest, sum;
};

// Turns the scores of a tile (n) into weights.
FN RunningSoftmax weights_of_tile(SHARED real* scores, uint n, SHARED real* partial LANES_PARAM) {
    const real score = LANE < n ? scores[LANE] : -INF;
    const real greatest = greatest_of_block(partial, score LANES_ARG);
    const real weight = score == -INF ? R(0.0) : EXP(score - greatest);
    if (LANE < n) scores[LANE] = weight;
    const RunningSoftmax softmax = {greatest, sum_of_block(partial, weight LANES_ARG)};
    return softmax;
}

// How much of what was there stays, and how much of the next tile is added.
STRUCT(Shares) {
    real before, tile;
};

// Adds a tile to those before it. Source of the running softmax: Milakov and Gimelshein,
// arXiv:1805.02867.
FN Shares add_tile(PRIVATE RunningSoftmax* all, RunningSoftmax tile) {
    const real greatest = MAX(all->greatest, tile.greatest);
    const Shares shares = {all->greatest == -INF ? R(0.0) : EXP(all->greatest - greatest),
                           tile.greatest == -INF ? R(0.0) : EXP(tile.greatest - greatest)};
    all->sum = FMA(all->sum, shares.before, tile.sum * shares.tile);
    all->greatest = greatest;
    return shares;
}

FN real added_value(Shares shares, real before, real tile) { return FMA(before, shares.before, tile * shares.tile); }

// What a block keeps of one head, in shared memory.
STRUCT(Room) {
    SHARED real* query; // (D)
    SHARED real* scores; // (N_LANES)
    SHARED real* partial; // (warps)
    SHARED real* parts; // (warps, D)
    SHARED real* values; // (D): of all tiles so far; each number is one lane's
};

// Makes room, and copies the query there.
FN Room room_of(uint head_dim, GLOBAL const real* query, SHARED real* shared LANES_PARAM) {
    Room room;
    room.query = shared;
    room.scores = room.query + head_dim;
    room.partial = room.scores + N_LANES;
    room.parts = room.partial + N_LANES / WARP;
    room.values = room.parts + N_LANES / WARP * head_dim;
    for (uint d = LANE; d < head_dim; d += N_LANES) room.query[d] = query[d];
    BARRIER();
    return room;
}

// Weighs the `n` positions of a tile; what the warps have summed of its values is in `parts` then.
FN RunningSoftmax weigh_tile(CONSTANT AttentionLayout* layout, Room room, uint n, GLOBAL const real* keys, GLOBAL const real* values LANES_PARAM) {
    const uint stride = layout->n_kv_heads * layout->head_dim;
    SHARED const real* query = room.query;
    scores_of_tile(layout, query, keys, n, stride, room.scores LANES_ARG);
    const RunningSoftmax softmax = weights_of_tile(room.scores, n, room.partial LANES_ARG);
    SHARED const real* weights = room.scores;
    sum_values_tile(weights, n, values, stride, layout->head_dim, room.parts LANES_ARG);
    return softmax;
}

// All `n` positions, one tile after the other: `query` and `out` (D), keys and values (n, KV heads,
// D).
FN void attend(CONSTANT AttentionLayout* layout, uint n, GLOBAL const real* query, GLOBAL const real* keys, GLOBAL const real* values,
               GLOBAL real* out, SHARED real* shared LANES_PARAM) {
    const uint head_dim = layout->head_dim, stride = layout->n_kv_heads * head_dim;
    const Room room = room_of(head_dim, query, shared LANES_ARG);
    for (uint d = LANE; d < head_dim; d += N_LANES) room.values[d] = R(0.0);
    RunningSoftmax all = {-INF, R(0.0)};
    for (uint first = 0u; first < n; first += N_LANES) {
        const uint n_here = MIN(n - first, N_LANES);
        const RunningSoftmax tile = weigh_tile(layout, room, n_here, keys + first * stride, values + first * stride LANES_ARG);
        const Shares shares = add_tile(&all, tile);
        for (uint d = LANE; d < head_dim; d += N_LANES)
            room.values[d] = added_value(shares, room.values[d], sum_of_warps(room.parts, head_dim, d LANES_ARG));
    }
    for (uint d = LANE; d < head_dim; d += N_LANES) out[d] = room.values[d] / all.sum;
}

// One tile of `n` positions: tile (2 + D) has its greatest score, its sum, and its values.
FN void write_tile(CONSTANT AttentionLayout* layout, uint n, GLOBAL const real* query, GLOBAL const real* keys, GLOBAL const real* values,
                   GLOBAL real* tile, SHARED real* shared LANES_PARAM) {
    const Room room = room_of(layout->head_dim, query, shared LANES_ARG);
    const RunningSoftmax softmax = weigh_tile(layout, room, n, keys, values LANES_ARG);
    if (LANE == 0u) {
        tile[0] = softmax.greatest;
        tile[1] = softmax.sum;
    }
    for (uint d = LANE; d < layout->head_dim; d += N_LANES) tile[2u + d] = sum_of_warps(room.parts, layout->head_dim, d LANES_ARG);
}

// out (D) from `n` tiles (n, 2 + D), in order. A lane loads several before it adds them.
FN void add_tiles(uint head_dim, uint n, GLOBAL const real* tiles, GLOBAL real* out LANES_PARAM) {
    for (uint d = LANE; d < head_dim; d += N_LANES) {
        RunningSoftmax all = {-INF, R(0.0)};
        real value = R(0.0);
        for (uint first = 0u; first < n; first += TILES_AT_ONCE) {
            real greatest[TILES_AT_ONCE], sums[TILES_AT_ONCE], values[TILES_AT_ONCE];
            UNROLLED for (uint i = 0u; i < TILES_AT_ONCE; ++i) {
                GLOBAL const real* tile = tiles + MIN(first + i, n - 1u) * (2u + head_dim);
                greatest[i] = tile[0];
                sums[i] = tile[1];
                values[i] = tile[2u + d];
            }
            UNROLLED for (uint i = 0u; i < TILES_AT_ONCE; ++i) {
                const RunningSoftmax tile = {greatest[i], sums[i]};
                if (first + i < n) value = added_value(add_tile(&all, tile), value, values[i]);
            }
        }
        out[d] = value / all.sum;
    }
}
