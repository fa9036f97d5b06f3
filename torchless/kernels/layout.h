// Generated from src/device/layout_fields.rs by the build script; do not edit.

// A matrix, and which vectors it is multiplied with.
STRUCT(ProductLayout) {
    uint rows;  // outputs of a vector
    uint columns;  // numbers of a vector
    uint row_words;  // words of 16 bits of a stored row
    uint format;  // how rows are stored
    uint n_vectors;  // T
    uint x_offset;  // where the first vector begins
    uint out_offset;  // where the first output goes
    uint out_stride;  // distance between the outputs of two vectors, `rows` at least
    uint has_bias;  // whether a bias is added
    uint adds;  // whether outputs are added to what is there
};

// A matrix whose rows are wanted as numbers.
STRUCT(EmbeddingLayout) {
    uint columns;  // numbers of a row
    uint row_words;  // words of 16 bits of a stored row
    uint format;  // how rows are stored
};

// Rows that are normed, or turned into probabilities.
STRUCT(RowLayout) {
    uint width;  // numbers of a row
    real epsilon;  // added to the mean square
};

// Numbers that are treated one by one.
STRUCT(ElementLayout) {
    uint n;  // how many there are
};

// Gates, each with the number behind it that it lets through.
STRUCT(GateLayout) {
    uint n;  // T times width
    uint width;  // gates of a row
};

// Queries, keys and values side by side, which are turned and put where they belong.
STRUCT(RopeLayout) {
    uint n_rows;  // T
    uint n_heads;  // heads of a token's queries
    uint n_kv_heads;  // heads of its keys, and of its values
    uint head_dim;  // D, even
    uint pairs;  // which numbers make a pair
    uint kv_row;  // the row of keys and values of the first token
    uint positions_offset;  // where the positions of the tokens begin
};

// Sizes of attention.
STRUCT(AttentionLayout) {
    uint n_rows;  // T tokens; of the kernels of one token, positions
    uint n_heads;  // heads of queries
    uint n_kv_heads;  // heads of keys and values
    uint head_dim;  // D
    uint window;  // positions that a token sees, its own included; 0 for all
    uint places_offset;  // where the places of the tokens begin
    uint n_tiles;  // tiles that there is room for, where each has a block of its own
    real scale;  // scores are multiplied by it
};

#define FORMAT_F32 0u // IEEE single precision
#define FORMAT_F16 1u // IEEE half precision
#define FORMAT_BF16 2u // the upper half of single precision
#define FORMAT_Q8_0 3u // blocks of 32 signed bytes
#define FORMAT_Q4_0 4u // blocks of 32 numbers of 4 bits
#define FORMAT_Q4_1 5u // the same with a minimum
#define FORMAT_Q5_0 6u // blocks of 32 numbers of 5 bits
#define FORMAT_Q4K 7u // blocks of 256 numbers of 4 bits
#define FORMAT_Q5K 8u // blocks of 256 numbers of 5 bits
#define FORMAT_Q6K 9u // blocks of 256 numbers of 6 bits
#define PAIRS_HALVES 0u // pairs of i and i + D/2
#define PAIRS_NEIGHBOURS 1u // pairs of 2i and 2i + 1
#define ROWS_OF_VECTOR 2u // rows that a warp has of one vector
#define ROWS_OF_VECTORS 4u // rows that a warp has of several vectors
#define VECTORS_AT_ONCE 8u // vectors of a product that share a tile
#define TILE 512u // columns of a tile: whole blocks of every format, and of each of them parts for whole warps
#define MAX_HEAD_DIM 256u // the widest head
#define GROUP 8u // lanes that share a score
