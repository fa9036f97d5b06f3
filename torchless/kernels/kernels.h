// The kernels: each finds what its block has to do, and does it.

// out (T, columns): the rows of a matrix that the tokens name; a block has one token.
KERNEL(embedding)(CONSTANTS(EmbeddingLayout, layout, 0), IN(ushort, matrix, 1), IN(uint, tokens, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    GLOBAL real* to = out + BLOCK * layout->columns;
    WITH_FORMAT(layout->format, unpack_row, matrix, layout, tokens[BLOCK], to LANES_ARG)
}

// to (T, width) = x / sqrt(mean(x^2) + epsilon) * weight; a block has one row.
KERNEL(rmsnorm)(CONSTANTS(RowLayout, layout, 0), IN(real, x, 1), IN(real, weight, 2), OUT(real, to, 3) LANES) {
    ENTER(shared);
    const uint row = BLOCK * layout->width;
    norm_of_row(layout, x + row, weight, to + row, shared LANES_ARG);
}

// x (T, width) <- softmax of each row; a block has one row.
KERNEL(softmax)(CONSTANTS(RowLayout, layout, 0), OUT(real, x, 1) LANES) {
    ENTER(shared);
    softmax_of_row(layout->width, x + BLOCK * layout->width, shared LANES_ARG);
}

// x (n) <- silu(x).
KERNEL(silu)(CONSTANTS(ElementLayout, layout, 0), OUT(real, x, 1) LANES) {
    ENTER(shared);
    for (uint i = BLOCK * N_LANES + LANE; i < layout->n; i += N_LANES * N_BLOCKS) x[i] = silu_of(x[i]);
}

// out (T, width) = silu(gates) * what they let through: joined (T, 2 width) has a row's gates, then
// its other numbers.
KERNEL(silu_mul)(CONSTANTS(GateLayout, layout, 0), IN(real, joined, 1), OUT(real, out, 2) LANES) {
    ENTER(shared);
    for (uint i = BLOCK * N_LANES + LANE; i < layout->n; i += N_LANES * N_BLOCKS) {
        GLOBAL const real* gate = joined + i + i / layout->width * layout->width;
        out[i] = silu_of(gate[0]) * gate[layout->width];
    }
}

// x (n) <- x + y.
KERNEL(add)(CONSTANTS(ElementLayout, layout, 0), OUT(real, x, 1), IN(real, y, 2) LANES) {
    ENTER(shared);
    for (uint i = BLOCK * N_LANES + LANE; i < layout->n; i += N_LANES * N_BLOCKS) x[i] += y[i];
}

// joined (T, heads + 2 KV heads, D) has a token's queries, keys and values. Queries and keys are
// turned to the token's position: queries (T, heads, D); keys and values (positions, KV heads, D)
// from a row on. turns (positions, D) has D/2 cosines, then D/2 sines.
KERNEL(rope)(CONSTANTS(RopeLayout, layout, 0), IN(real, turns, 1), IN(uint, positions, 2), IN(real, joined, 3), OUT(real, queries, 4),
             OUT(real, keys, 5), OUT(real, values, 6) LANES) {
    ENTER(shared);
    const uint half_dim = layout->head_dim / 2u, n_heads = layout->n_heads, n_kv_heads = layout->n_kv_heads;
    const uint n_joined = n_heads + 2u * n_kv_heads, n = layout->n_rows * n_joined * half_dim;
    for (uint i = BLOCK * N_LANES + LANE; i < n; i += N_LANES * N_BLOCKS) {
        const uint pair = i % half_dim, head = i / half_dim % n_joined, row = i / half_dim / n_joined;
        GLOBAL const real* from = joined + i / half_dim * layout->head_dim;
        GLOBAL const real* turn = turns + positions[layout->positions_offset + row] * layout->head_dim;
        const uint first_kv = (layout->kv_row + row) * n_kv_heads;
        if (head < n_heads) {
            turn_pair(half_dim, layout->pairs, pair, turn, from, queries + (row * n_heads + head) * layout->head_dim);
        } else if (head < n_heads + n_kv_heads) {
            turn_pair(half_dim, layout->pairs, pair, turn, from, keys + (first_kv + head - n_heads) * layout->head_dim);
        } else {
            copy_pair(pair, from, values + (first_kv + head - n_heads - n_kv_heads) * layout->head_dim);
        }
    }
}

// out (rows) = matrix (rows x columns) . x (columns).
KERNEL(matvec)(CONSTANTS(ProductLayout, layout, 0), IN(ushort, matrix, 1), IN(real, x, 2), IN(real, bias, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    WITH_FORMAT(layout->format, product_plain, layout, matrix, x, bias, out LANES_ARG)
}

// The same, the vector through shared memory.
KERNEL(matvec_tiled)(CONSTANTS(ProductLayout, layout, 0), IN(ushort, matrix, 1), IN(real, x, 2), IN(real, bias, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    WITH_FORMAT(layout->format, product_tiled, layout, matrix, x, bias, out, shared LANES_ARG)
}

// out (T, rows) = x (T, columns) . matrix^T, rows of `out` as far apart as the layout says.
KERNEL(matmul)(CONSTANTS(ProductLayout, layout, 0), IN(ushort, matrix, 1), IN(real, x, 2), IN(real, bias, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    WITH_FORMAT(layout->format, product_several, layout, matrix, x, bias, out, shared LANES_ARG)
}

// out (T, heads, D): attention of every head of every token, each a block that walks over its
// positions. places (T positions, T rows of position 0 in keys and values) begins at an offset.
KERNEL(attention)(CONSTANTS(AttentionLayout, layout, 0), IN(uint, places, 1), IN(real, queries, 2), IN(real, keys, 3), IN(real, values, 4),
                  OUT(real, out, 5) LANES) {
    ENTER(shared);
    const Attended attended = attended_by(layout, places, BLOCK);
    const uint at = BLOCK * layout->head_dim;
    attend(layout, attended.n, queries + at, keys + attended.first, values + attended.first, out + at, shared LANES_ARG);
}

// The same in two launches. tiles (T, heads, tiles, 2 + D): every tile of positions that a head of
// a token sees, weighed by a block of its own.
KERNEL(attention_tiles)(CONSTANTS(AttentionLayout, layout, 0), IN(uint, places, 1), IN(real, queries, 2), IN(real, keys, 3), IN(real, values, 4),
                        OUT(real, tiles, 5) LANES) {
    ENTER(shared);
    const uint head = BLOCK / layout->n_tiles, first = BLOCK % layout->n_tiles * N_LANES;
    const Attended attended = attended_by(layout, places, head);
    WHERE (first < attended.n) {
        const uint at = attended.first + first * layout->n_kv_heads * layout->head_dim;
        write_tile(layout, MIN(attended.n - first, N_LANES), queries + head * layout->head_dim, keys + at, values + at,
                   tiles + BLOCK * (2u + layout->head_dim), shared LANES_ARG);
    }
}

// Then out (T, heads, D): a head's tiles, added in order.
KERNEL(attention_sum)(CONSTANTS(AttentionLayout, layout, 0), IN(uint, places, 1), IN(real, tiles, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    const uint n = (attended_by(layout, places, BLOCK).n + N_LANES - 1u) / N_LANES;
    add_tiles(layout->head_dim, n, tiles + BLOCK * layout->n_tiles * (2u + layout->head_dim), out + BLOCK * layout->head_dim LANES_ARG);
}

// scores (heads, positions) = q . k * scale, of one token.
KERNEL(attention_scores)(CONSTANTS(AttentionLayout, layout, 0), IN(real, queries, 1), IN(real, keys, 2), OUT(real, scores, 3) LANES) {
    ENTER(shared);
    const uint head = BLOCK % layout->n_heads, kv_head = head / (layout->n_heads / layout->n_kv_heads);
    const uint position = BLOCK / layout->n_heads * (N_LANES / GROUP) + LANE / GROUP;
    const uint at[1] = {(MIN(position, layout->n_rows - 1u) * layout->n_kv_heads + kv_head) * layout->head_dim};
    real score[1];
    scores_one(queries + head * layout->head_dim, keys, at, layout->head_dim, score LANES_ARG);
    if (LANE % GROUP == 0u && position < layout->n_rows) scores[head * layout->n_rows + position] = score[0] * layout->scale;
}

// out (heads, D) = weights (heads, positions) . values, of one token; a block has one head.
KERNEL(weighted_sum)(CONSTANTS(AttentionLayout, layout, 0), IN(real, weights, 1), IN(real, values, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    const uint kv_head = BLOCK / (layout->n_heads / layout->n_kv_heads), head_dim = layout->head_dim;
    sum_values_whole(weights + BLOCK * layout->n_rows, layout->n_rows, values + kv_head * head_dim, layout->n_kv_heads * head_dim, head_dim,
               shared LANES_ARG);
    for (uint d = LANE; d < head_dim; d += N_LANES) out[BLOCK * head_dim + d] = sum_of_warps(shared, head_dim, d LANES_ARG);
}
