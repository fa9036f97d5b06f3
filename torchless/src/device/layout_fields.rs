// The fields of the structs that kernels are launched with and the numbers that they share with the
// host, for `layout.rs`, which has macros `constants!` and `numbers!` of its own, and for the build
// script, which has those of ns-device-build.
//
// After a change here: `UPDATE_LAYOUT=1 cargo build -p torchless` writes `kernels/layout.h` anew; a
// build with an old one says so.

constants! {
    /// A matrix, and which vectors it is multiplied with.
    ProductLayout {
        /// outputs of a vector
        rows: uint,
        /// numbers of a vector
        columns: uint,
        /// words of 16 bits of a stored row
        row_words: uint,
        /// how rows are stored
        format: uint,
        /// T
        n_vectors: uint,
        /// where the first vector begins
        x_offset: uint,
        /// where the first output goes
        out_offset: uint,
        /// distance between the outputs of two vectors, `rows` at least
        out_stride: uint,
        /// whether a bias is added
        has_bias: uint,
        /// whether outputs are added to what is there
        adds: uint,
    }
}

constants! {
    /// A matrix whose rows are wanted as numbers.
    EmbeddingLayout {
        /// numbers of a row
        columns: uint,
        /// words of 16 bits of a stored row
        row_words: uint,
        /// how rows are stored
        format: uint,
    }
}

constants! {
    /// Rows that are normed, or turned into probabilities.
    RowLayout {
        /// numbers of a row
        width: uint,
        /// added to the mean square
        epsilon: real,
    }
}

constants! {
    /// Numbers that are treated one by one.
    ElementLayout {
        /// how many there are
        n: uint,
    }
}

constants! {
    /// Gates, each with the number behind it that it lets through.
    GateLayout {
        /// T times width
        n: uint,
        /// gates of a row
        width: uint,
    }
}

constants! {
    /// Queries, keys and values side by side, which are turned and put where they belong.
    RopeLayout {
        /// T
        n_rows: uint,
        /// heads of a token's queries
        n_heads: uint,
        /// heads of its keys, and of its values
        n_kv_heads: uint,
        /// D, even
        head_dim: uint,
        /// which numbers make a pair
        pairs: uint,
        /// the row of keys and values of the first token
        kv_row: uint,
        /// where the positions of the tokens begin
        positions_offset: uint,
    }
}

constants! {
    /// Sizes of attention.
    AttentionLayout {
        /// T tokens; of the kernels of one token, positions
        n_rows: uint,
        /// heads of queries
        n_heads: uint,
        /// heads of keys and values
        n_kv_heads: uint,
        /// D
        head_dim: uint,
        /// positions that a token sees, its own included; 0 for all
        window: uint,
        /// where the places of the tokens begin
        places_offset: uint,
        /// tiles that there is room for, where each has a block of its own
        n_tiles: uint,
        /// scores are multiplied by it
        scale: real,
    }
}

numbers! {
    /// IEEE single precision
    FORMAT_F32 = 0,
    /// IEEE half precision
    FORMAT_F16 = 1,
    /// the upper half of single precision
    FORMAT_BF16 = 2,
    /// blocks of 32 signed bytes
    FORMAT_Q8_0 = 3,
    /// blocks of 32 numbers of 4 bits
    FORMAT_Q4_0 = 4,
    /// the same with a minimum
    FORMAT_Q4_1 = 5,
    /// blocks of 32 numbers of 5 bits
    FORMAT_Q5_0 = 6,
    /// blocks of 256 numbers of 4 bits
    FORMAT_Q4K = 7,
    /// blocks of 256 numbers of 5 bits
    FORMAT_Q5K = 8,
    /// blocks of 256 numbers of 6 bits
    FORMAT_Q6K = 9,
    /// pairs of i and i + D/2
    PAIRS_HALVES = 0,
    /// pairs of 2i and 2i + 1
    PAIRS_NEIGHBOURS = 1,
    /// rows that a warp has of one vector
    ROWS_OF_VECTOR = 2,
    /// rows that a warp has of several vectors
    ROWS_OF_VECTORS = 4,
    /// vectors of a product that share a tile
    VECTORS_AT_ONCE = 8,
    /// columns of a tile: whole blocks of every format, and of each of them parts for whole warps
    TILE = 512,
    /// the widest head
    MAX_HEAD_DIM = 256,
    /// lanes that share a score
    GROUP = 8,
}
