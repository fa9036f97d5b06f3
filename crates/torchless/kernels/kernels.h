// The kernels: each finds what its block has to do, and does it.

// out (T, columns): the rows of a matrix that the tokens name; a block has one token.
KERNEL(embedding)(CONSTANTS(EmbeddingLayout, layout, 0), IN(ushort, matrix, 1), IN(uint, tokens, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    GLOBAL real* to = out + BLOCK * layout.columns;
    WITH_FORMAT(layout.format, unpack_row, matrix, layout, tokens[BLOCK], to LANES_ARG)
}

// to (T, width) = x / sqrt(mean(x^2) + epsilon) * weight; a block has one row.
KERNEL(rmsnorm)(CONSTANTS(RowLayout, layout, 0), IN(real, x, 1), IN(real, weight, 2), OUT(real, to, 3) LANES) {
    ENTER(shared);
    const uint row = BLOCK * layout.width;
    norm_of_row(layout, x + row, weight, to + row, shared LANES_ARG);
}

// x (T, width) <- softmax of each row; a block has one row.
KERNEL(softmax)(CONSTANTS(RowLayout, layout, 0), OUT(real, x, 1) LANES) {
    ENTER(shared);
    softmax_of_row(layout.width, x + BLOCK * layout.width, shared LANES_ARG);
}

// x (n) <- silu(x).
KERNEL(silu)(CONSTANTS(ElementLayout, layout, 0), OUT(real, x, 1) LANES) {
    ENTER(shared);
    for (uint i = BLOCK * N_LANES + LANE; i < layout.n; i += N_LANES * N_BLOCKS) x[i] = silu_of(x[i]);
}

// gate (n) <- silu(gate) * up.
KERNEL(silu_mul)(CONSTANTS(ElementLayout, layout, 0), OUT(real, gate, 1), IN(real, up, 2) LANES) {
    ENTER(shared);
    for (uint i = BLOCK * N_LANES + LANE; i < layout.n; i += N_LANES * N_BLOCKS) gate[i] = silu_of(gate[i]) * up[i];
}

// x (n) <- x + y.
KERNEL(add)(CONSTANTS(ElementLayout, layout, 0), OUT(real, x, 1), IN(real, y, 2) LANES) {
    ENTER(shared);
    for (uint i = BLOCK * N_LANES + LANE; i < layout.n; i += N_LANES * N_BLOCKS) x[i] += y[i];
}

// x (T, heads, D) <- turned to its token's position; turns (positions, D) has D/2 cosines, then D/2 sines.
KERNEL(rope)(CONSTANTS(RopeLayout, layout, 0), IN(real, turns, 1), IN(uint, positions, 2), OUT(real, x, 3) LANES) {
    ENTER(shared);
    const uint half_dim = layout.head_dim / 2u, n = layout.n_rows * layout.n_heads * half_dim;
    for (uint i = BLOCK * N_LANES + LANE; i < n; i += N_LANES * N_BLOCKS) {
        const uint head = i / half_dim, position = positions[layout.positions_offset + head / layout.n_heads];
        turn_pair(half_dim, layout.pairs, i % half_dim, turns + position * layout.head_dim,
                  x + layout.x_offset + head * layout.head_dim);
    }
}

// out (rows) = matrix (rows x columns) . x (columns).
KERNEL(matvec)(CONSTANTS(ProductLayout, layout, 0), IN(ushort, matrix, 1), IN(real, x, 2), IN(real, bias, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    WITH_FORMAT(layout.format, plain_product, layout, matrix, x, bias, out LANES_ARG)
}

// The same, the vector through shared memory.
KERNEL(matvec_tiled)(CONSTANTS(ProductLayout, layout, 0), IN(ushort, matrix, 1), IN(real, x, 2), IN(real, bias, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    WITH_FORMAT(layout.format, tiled_vector, layout, matrix, x, bias, out, shared LANES_ARG)
}

// out (T, rows) = x (T, columns) . matrix^T.
KERNEL(matmul)(CONSTANTS(ProductLayout, layout, 0), IN(ushort, matrix, 1), IN(real, x, 2), IN(real, bias, 3), OUT(real, out, 4) LANES) {
    ENTER(shared);
    WITH_FORMAT(layout.format, tiled_vectors, layout, matrix, x, bias, out, shared LANES_ARG)
}

// out (T, heads, D): attention of every head of every token. places (T positions, T rows of position 0 in keys and values) begins at an offset.
KERNEL(attention)(CONSTANTS(AttentionLayout, layout, 0), IN(uint, places, 1), IN(real, queries, 2), IN(real, keys, 3), IN(real, values, 4),
                  OUT(real, out, 5) LANES) {
    ENTER(shared);
    const uint row = BLOCK / layout.n_heads, head = BLOCK % layout.n_heads;
    const uint kv_head = head / (layout.n_heads / layout.n_kv_heads);
    const uint position = places[layout.places_offset + row], start = places[layout.places_offset + layout.n_rows + row];
    const uint at = (start * layout.n_kv_heads + kv_head) * layout.head_dim;
    attend(layout, queries + BLOCK * layout.head_dim, keys + at, values + at, position, out + BLOCK * layout.head_dim, shared LANES_ARG);
}

// scores (heads, positions) = q . k * scale, of one token.
KERNEL(attention_scores)(CONSTANTS(AttentionLayout, layout, 0), IN(real, queries, 1), IN(real, keys, 2), OUT(real, scores, 3) LANES) {
    ENTER(shared);
    const uint head = BLOCK % layout.n_heads, kv_head = head / (layout.n_heads / layout.n_kv_heads);
    const uint position = BLOCK / layout.n_heads * (N_LANES / GROUP) + LANE / GROUP;
    const uint row = MIN(position, layout.n_rows - 1u);
    const real score = score_of(queries + head * layout.head_dim, keys + (row * layout.n_kv_heads + kv_head) * layout.head_dim,
                                layout.head_dim LANES_ARG);
    if (LANE % GROUP == 0u && position < layout.n_rows) scores[head * layout.n_rows + position] = score * layout.scale;
}

// out (heads, D) = weights (heads, positions) . values, of one token; a block has one head.
KERNEL(weighted_sum)(CONSTANTS(AttentionLayout, layout, 0), IN(real, weights, 1), IN(real, values, 2), OUT(real, out, 3) LANES) {
    ENTER(shared);
    const uint kv_head = BLOCK / (layout.n_heads / layout.n_kv_heads);
    real sums[SUMS_OF_LANE];
    UNROLLED for (uint j = 0u; j < SUMS_OF_LANE; ++j) sums[j] = R(0.0);
    add_values(weights + BLOCK * layout.n_rows, layout.n_rows, values + kv_head * layout.head_dim,
               layout.n_kv_heads * layout.head_dim, layout.head_dim, sums LANES_ARG);
    write_values(sums, layout.head_dim, R(1.0), shared, out + BLOCK * layout.head_dim LANES_ARG);
}
